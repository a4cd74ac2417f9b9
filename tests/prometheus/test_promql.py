"""PromQL of users: what placeholders become, what is refused, and that no selector reads another namespace."""

from __future__ import annotations

import promql_parser
import pytest

from rollout_lws.prometheus.promql import NotPromQL, Places, confined, expanded, names_stable, problem

PLACES = Places("team", ("llama-canary-0", "a.b"), ("llama-0",), 600)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("rate(x{{{new}}}[{{window}}])", 'rate(x{namespace="team",pod=~"llama-canary-0|a[.]b"}[600s])'),
        ("x{{{ stable }}}", 'x{namespace="team",pod=~"llama-0"}'),
        ('x{pod=~"{{pods.new}}"}', 'x{pod=~"llama-canary-0|a[.]b"}'),
        ('x{pod=~"{{pods.stable}}", namespace="{{namespace}}"}', 'x{pod=~"llama-0", namespace="team"}'),
    ],
)
def test_placeholders(query: str, expected: str) -> None:
    assert expanded(query, PLACES) == expected


def test_of_no_pods_a_placeholder_fits_no_series() -> None:
    assert expanded("x{{{new}}}", Places("team", (), (), 60)) == 'x{namespace="team",pod=~"none of them"}'


@pytest.mark.parametrize(
    ("query", "selectors"),
    [
        ("x", 1),
        ("x{}", 1),
        ('x{a="b"} offset 5m', 1),
        ('{__name__="x"}', 1),
        ("sum by (pod) (rate(x[5m])) / on (pod) group_left () y", 2),
        ("max_over_time(rate(x[1m])[1h:5m] @ end())", 1),
        ("x unless y or z", 3),
        ('histogram_quantile(0.9, sum by (le) (rate(x_bucket{m="1"}[5m])))', 1),
        ('x{namespace="other"}', 1),
        ('x{namespace!="team"}', 1),
        ('x{namespace=~".+"}', 1),
        ("absent(x)", 1),
        ("vector(1)", 0),
    ],
)
def test_each_selector_is_confined(query: str, selectors: int) -> None:
    """Also beside matchers of the same label, which then both have to hold."""
    assert confined(query, {"namespace": "team"}).count('namespace="team"') == selectors


@pytest.mark.parametrize("value", ['te"am', "te\\am", "te\nam", "ümlaut", 'x",pod=~".*'])
def test_values_are_quoted(value: str) -> None:
    text = confined("x", {"namespace": value})
    selected = promql_parser.parse(text)
    assert isinstance(selected, promql_parser.VectorSelector)
    assert [(each.name, each.value) for each in selected.matchers.matchers] == [("namespace", value)]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("rate(x)", "not PromQL: expected type matrix"),
        ("sum(", "not PromQL"),
        ("x[5m]", "it is no number"),
        ('"text"', "it is no number"),
        ("x{{{neww}}}", "there is no placeholder {{neww}}: use one of {{new}}, {{stable}}"),
        ('x{a="b" or c="d"}', "alternatives of matchers"),
        ("-" * 40 + "x", "it has 40 operators and brackets, of at most 32"),
        ("(" * 4000, "it has 4000 operators and brackets"),
        ("", "not PromQL"),
        ("a offset 1e20", "not PromQL"),
        ("a[5m:1e30]", "not PromQL"),
        (" AND ".join("a" * 40), "it has 39 operators"),
        ('a{b=~"\\\\pL{200}"}', "takes long to compile"),
        ("a{b=~`x{3}`}", "takes long to compile"),
        ("a{" + ",".join(f'b{n}=~"x"' for n in range(17)) + "}", "it has 17 regular expressions, of at most 16"),
    ],
)
def test_what_is_no_query(query: str, why: str) -> None:
    assert why in problem(query)


def test_a_query_that_grows_with_its_pods_has_an_end() -> None:
    pods = tuple(f"llama-canary-{number}" for number in range(40))
    query = "a{" + "{{new}}," * 500 + "}"
    with pytest.raises(NotPromQL, match="of at most 16384"):
        expanded(query, Places("team", pods, (), 60))


def test_a_query_of_the_page_is_none() -> None:
    assert not problem("sum(rate(my_errors{{{new}}}[{{window}}])) / sum(rate(my_requests{{{new}}}[{{window}}]))")


def test_stable_is_asked_for_only_where_it_is_named() -> None:
    assert names_stable("x{{{stable}}}") and names_stable('x{pod=~"{{pods.stable}}"}')
    assert not names_stable("x{{{new}}}")
