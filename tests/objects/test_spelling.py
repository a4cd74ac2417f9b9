"""Quantities and templates are written in one way, whichever way a person has written them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.objects.quantities import canonical, exact
from rollout_lws.objects.spelling import in_full, plain


@pytest.mark.parametrize(
    ("written", "told"),
    [
        *(("1000m", "1"), ("0.5", "500m"), ("0.1m", "100u"), ("1.5", "1500m"), ("8", "8"), ("10", "10")),
        *(("1000", "1k"), ("1500", "1500"), ("2000M", "2G"), ("0", "0"), ("0Gi", "0"), ("-1000m", "-1")),
        *(("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("1000Ki", "1000Ki"), ("512Ki", "512Ki"), ("0.5Ki", "512")),
        *(("1e3", "1e3"), ("1E3", "1E3"), ("10e2", "1e3"), ("1e4", "10e3"), ("1.5e3", "1500"), ("1e-3", "1e-3")),
        *(("2E", "2E"), ("1024Pi", "1Ei"), ("0.1Gi", "107374182400m"), ("1.1Ki", "1126400m"), ("0.1n", "1n")),
        *(
            ("+1", "+1"),
            ("+1.0", "1"),
            ("5.", "5."),
            ("5e0", "5e0"),
            ("007", "007"),
            ("1500e-3", "1500e-3"),
            (".5", "500m"),
        ),
        *(("0.0015e0", "1500e-6"), ("123456e1", "1234560"), ("0e3", "0"), ("15e-10", "2e-9"), ("1e30", "1e30")),
        *(("16Ei", "9223372036854775807"), ("1023.5Ki", "1048064"), ("1.0005Ki", "1024512m"), ("-1.5Gi", "-1536Mi")),
    ],
)
def test_a_quantity_is_told_as_kubernetes_tells_it(written: str, told: str) -> None:
    assert canonical(written) == told
    assert canonical(told) == told


@given(st.decimals(0, 10**9, places=3), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi", "e3", "E-3"]))
def test_no_quantity_changes_its_value(number: Decimal, suffix: str) -> None:
    text = f"{number}{suffix}"
    assert exact(canonical(text)) == exact(text)
    assert canonical(canonical(text)) == canonical(text)


@pytest.mark.parametrize(
    ("one", "other"), [("1Gi", "1073741824"), ("1k", "1e3"), ("1000Ki", "1024k"), ("1E3", "1e3"), ("1.1Ki", "1127")]
)
def test_quantities_that_leaderworkerset_tells_apart_stay_different(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)
    assert plain(spec(resources={"limits": {"a": one}})) != plain(spec(resources={"limits": {"a": other}}))


@pytest.mark.parametrize("text", ["", "many", "1.2.3", "NaN", "Infinity", "1e9999999", "-1e9999999", "1e400"])
def test_what_is_no_quantity_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        exact(text)


def spec(**container: Any) -> dict[str, Any]:
    return {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [container]}}}}


def pod(**members: Any) -> dict[str, Any]:
    return {"leaderWorkerTemplate": {"workerTemplate": {"metadata": {}, "spec": members}}}


def volume(reference: dict[str, Any]) -> dict[str, Any]:
    items = [{"path": "cpu", "resourceFieldRef": reference}]
    pod = {"volumes": [{"name": "a", "projected": {"sources": [{"downwardAPI": {"items": items}}]}}]}
    return {"leaderWorkerTemplate": {"leaderTemplate": {"spec": pod}}}


@pytest.mark.parametrize(
    ("written", "otherwise"),
    [
        (spec(name="a"), spec(name="a", resources={})),
        (spec(resources={"limits": {"gpu": 8}}), spec(resources={"limits": {"gpu": "8"}})),
        (
            spec(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]),
            spec(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}]),
        ),
        (spec(resources={"limits": {"gpu": "10e2"}}), spec(resources={"limits": {"gpu": "1e3"}})),
        (spec(args=[], env=[], resources={"limits": {}}), spec()),
        (pod(nodeSelector={}, overhead={}, tolerations=[]), pod()),
        (volume({"resource": "limits.cpu"}), volume({"resource": "limits.cpu", "divisor": "0"})),
    ],
    ids=[
        "empty resources",
        "a number",
        "no divisor",
        "a power of ten",
        "empty",
        "a pod's",
        "no divisor of a volume",
    ],
)
def test_two_ways_to_write_a_version_are_one(written: dict[str, Any], otherwise: dict[str, Any]) -> None:
    assert plain(written) == plain(otherwise)
    assert plain(in_full(written)) == plain(in_full(otherwise)) == plain(written)


def test_resources_of_null_are_written_back_as_empty() -> None:
    assert in_full(spec(resources=None)) == in_full(spec())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (spec(resources={"limits": {"gpu": "8"}}), spec(resources={"limits": {"gpu": "4"}})),
        (spec(name="a", env=[{"name": "A", "value": "1000m"}]), spec(name="a", env=[{"name": "A", "value": "1"}])),
        (spec(name="a"), spec(name="a", securityContext={})),
    ],
    ids=["another amount", "a text that looks like an amount", "another empty member"],
)
def test_versions_that_differ_stay_different(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert plain(one) != plain(other)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, _JSON)
def test_what_has_another_form_than_a_template_stays_as_it_is(inner: Any, resources: Any) -> None:
    for odd in ({"leaderWorkerTemplate": inner}, spec(resources=resources), {"other": inner}):
        assert plain(plain(odd)) == plain(odd)
        assert in_full(in_full(odd)) == in_full(odd)
