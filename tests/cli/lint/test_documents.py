"""YAML as kubectl reads it: values, and where each of them stands."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.lint.documents import Document, read
from rollout_lws.cli.lint.paths import Path
from rollout_lws.cli.manifests import Source


def one(text: str) -> Document:
    documents, findings = read(Source("a.yaml", text))
    assert findings == []
    (document,) = documents
    return document


def at(document: Document, *path: str | int) -> tuple[int, int]:
    mark = document.mark(path)
    return mark.line, mark.column


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", {"a": 1}),
        ("a: 2026-01-01", {"a": "2026-01-01"}),
        ("a: 10:30", {"a": "10:30"}),
        ("a: 0x1f", {"a": 31}),
        ("a: yes", {"a": True}),
        ("a: =", {"a": "="}),
        ("a: ~", {"a": None}),
        ("a: |\n  b\n  c\n", {"a": "b\nc\n"}),
        ("1: a\ntrue: b\noff: c", {"1": "a", "true": "b", "false": "c"}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("a: &x {b: 1}\nz: &y {c: 2}\nd: {<<: [*x, *y]}", {"a": {"b": 1}, "z": {"c": 2}, "d": {"b": 1, "c": 2}}),
        ('{\n\t"a": [1,\t2]\n}', {"a": [1, 2]}),
        ('{"a": "\\ud83d\\ude00", "b": "\\\\ud83d", "c": "\\ud83d"}', {"a": "😀", "b": "\\ud83d", "c": "\ufffd"}),
        ("a: [y, N, on, OFF, oN]", {"a": [True, False, True, False, "oN"]}),
        ("a: [1e-5, 1e3, 0o17, 017, 08, -0x1F, 0b11, 1_000]", {"a": [1e-05, 1000, 15, 15, 8, -31, 3, 1000]}),
        ("a: [1.0, .5, +7, 1.2.3, 1e, -]", {"a": [1.0, 0.5, 7, "1.2.3", "1e", "-"]}),
        ("a: ['y', \"1\", !!str 1, !!str y]", {"a": ["y", "1", "1", "y"]}),
        ("a: 1000000000000000000000000000000", {"a": 1e30}),
        ("y: 1\nn: 2\n08: 3", {"true": 1, "false": 2, "08": 3}),
        ("a: !Ref b", {"a": "b"}),
        ("a: !Sub {b: 1}", {"a": {"b": 1}}),
        ("a: !!python/name:x.y\nb: !vault |\n  c\n", {"a": "", "b": "c\n"}),
    ],
)
def test_values_are_those_that_kubectl_sends(text: str, value: Any) -> None:
    assert one(text).value == value


@pytest.mark.parametrize(
    ("text", "path", "place"),
    [
        ("a:\n  b: 1", ("a", "b"), (2, 3)),
        ("a:\n- b\n- c", ("a", 1), (3, 3)),
        ("a: {b: 1}", ("a", "b"), (1, 5)),
        ("a: {b: 1}", ("a", "c", "d"), (1, 1)),
        ("a: 1", (), (1, 1)),
        ("a: [x]", ("a", 7), (1, 1)),
        ("a: &x {b: 1}\nc:\n  <<: *x", ("c", "b"), (1, 8)),
        ("# said\n---\n\na: 1", ("a",), (4, 1)),
        ("é: {ö: 1}", ("é", "ö"), (1, 5)),
    ],
)
def test_a_member_stands_where_its_key_is(text: str, path: Path, place: tuple[int, int]) -> None:
    assert at(one(text), *path) == place


def test_documents_of_a_file_have_the_lines_of_the_file() -> None:
    documents, findings = read(Source("a.yaml", "a: 1\n---\n# said\nb: 2\n--- # more\nc: 3\n---\n"))
    assert findings == []
    assert [(each.value, at(each, *each.value)) for each in documents] == [
        ({"a": 1}, (1, 1)),
        ({"b": 2}, (4, 1)),
        ({"c": 3}, (6, 1)),
    ]


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ('{"a": 1}\n{"b": 2}\n', [("a", (1, 2)), ("b", (2, 2))]),
        ('{"a": {"x": 0}} {"b": 2}{"c": 3}', [("a", (1, 2)), ("b", (1, 18)), ("c", (1, 26))]),
        ('--- {"a": "\\ud83d\\ude00"}\n{"b":\n 2}', [("a", (1, 6)), ("b", (2, 2))]),
        ('\n{"a": 1}\n\n\n {"b":\n 2}', [("a", (2, 2)), ("b", (5, 3))]),
        ("%YAML 1.1\n---\na: 1\n---\nb: 2", [("a", (3, 1)), ("b", (5, 1))]),
        ('---\n{"a": 1}\n---\n{"b": 2}', [("a", (2, 2)), ("b", (4, 2))]),
        ("a: 1\n---\n\ufeffb: 2\n", [("a", (1, 1)), ("b", (3, 1))]),
        ("a: 1\n\ufeff---\nb: 2\n", [("a", (1, 1)), ("b", (3, 1))]),
    ],
)
def test_objects_that_follow_each_other_as_kubectl_takes_them(
    text: str, members: list[tuple[str, tuple[int, int]]]
) -> None:
    documents, findings = read(Source("a.json", text))
    assert findings == []
    assert [(name, at(each, name)) for each in documents for name in each.value] == members


def test_mappings_that_merge_each_other_are_merged_once() -> None:
    lines = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))]
    assert one("\n".join(lines)).value["a59"] == {"x": 1}


def test_what_is_no_yaml_hides_no_other_document() -> None:
    text = "a: 1\n---\nkind: Rollout\nb: [\n---\nc: 3\n---\n{kind: Service}\nd: 'x\n"
    documents, findings = read(Source("a.yaml", text))
    assert [each.value for each in documents] == [{"a": 1}, {"c": 3}]
    assert [(each.line, each.code) for each in findings] == [(4, "LWS001"), (9, "LWS001")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: &x [*x]", "this anchor contains itself: write its value out"),
        ("a: &x {b: *x}", "this anchor contains itself"),
        ("[a]: 1", "a key must be plain text"),
        ("a: {<<: 1}", "only a mapping can be merged by <<"),
        ("a: .nan", "'.nan' cannot be read as float: quote it"),
        ("a: !!bool maybe", "'maybe' cannot be read as bool: quote it"),
        ("a: !!int x", "'x' cannot be read as int: quote it"),
        ("a: *x", "found undefined alias"),
        ("a: \x00", "not YAML: "),
        ("[" * 5000, "not YAML: "),
    ],
)
def test_what_no_manifest_can_have_is_told(text: str, told: str) -> None:
    documents, (finding,) = read(Source("a.yaml", f"# kind: Rollout\n{text}"))
    assert (documents, finding.code) == ([], "LWS001")
    assert told in finding.message


def test_anchors_that_grow_into_a_billion_values_are_told() -> None:
    lines = ["kind: Rollout", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    documents, (finding,) = read(Source("a.yaml", "\n".join(lines)))
    assert documents == []
    assert (
        finding.message == "not a manifest: its anchors make more than 1000000 values of this: write out what is meant"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: {{ .Values.a }}", "LWS002"),
        ("a: 1\n{{- end }}", "LWS002"),
        ("{% if x %}\na: 1\n{% endif %}", "LWS002"),
        ("a: 1 # {{ said }}\nb: [", "LWS001"),
        ("# {% said %}\nb: [", "LWS001"),
        ("a: '{{ .Values.a }}'\nb: [", "LWS001"),
        ("b: [\n---\na: {{ x }}", "LWS001 LWS002"),
        ("b: a: c\na: {{ x }}", "LWS001"),
        ("a: x-{{ y }}\nb: [", "LWS001"),
        ("a: [{{ .Values.a }}]", "LWS002"),
        ("a: |\n  {{ .Values.a }}\n  {% if x %}\nb: [", "LWS001"),
        ("a: '{{ .Values.a }}'", ""),
        ("a: |\n  {{ .Values.a }}", ""),
    ],
)
def test_a_template_is_one_where_its_braces_break_the_yaml(text: str, code: str) -> None:
    text = text.replace("---\n", "---\n# kind: Rollout\n")
    assert [each.code for each in read(Source("a.yaml", f"# kind: Rollout\n{text}"))[1]] == code.split()


def test_a_template_is_told_once_for_a_file() -> None:
    sign = "kind: LeaderWorkerSet"
    documents, findings = read(Source("a.yaml", f"a: 1\n---\n{sign}\nb: {{{{ x }}}}\n---\n{sign}\nc: {{{{ y }}}}\n"))
    assert [each.value for each in documents] == [{"a": 1}]
    assert [(each.code, each.line) for each in findings] == [("LWS002", 4)]


#: What lies beside manifests in repositories.
FOREIGN = {
    "CloudFormation": "Resources:\n  X:\n    Name: !Sub '${A}-b'\n    Y: !GetAtt [A, b]\n    Z: !If {a: b}\n",
    "mkdocs": "emoji_index: !!python/name:material.extensions.emoji.twemoji\n",
    "Ansible": "password: !vault |\n  $ANSIBLE_VAULT;1.1\n",
    "a playbook": "- hosts: {{ hosts }}\n  vars: {a: {{ b }}}\n",
    "GitLab": "job:\n  script: !reference [.a, script]\n",
    "tsconfig": '// what tsc reads\n{ "a": 1, /* x */ }\n',
    "a chart's Service": "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\n",
    "a chart's helpers": '{{- define "x" -}}\na: 1\n{{- end }}\n',
    "doubled keys": "services: {}\nservices: {}\n",
    "keys of two": "? [a, b]\n: c\n",
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_of_files_of_others_nothing_is_told(text: str) -> None:
    assert read(Source("a.yaml", text))[1] == []


@pytest.mark.parametrize("sign", ["kind: LeaderWorkerSet", '"kind": "Rollout"', "kind: Service", "kind: ScaledObject"])
def test_of_what_may_be_ours_it_is_told_that_it_cannot_be_read(sign: str) -> None:
    assert [each.code for each in read(Source("a.yaml", f"{sign}\na: [\n"))[1]] == ["LWS001"]


def test_a_key_that_is_merged_and_said_again_is_no_double() -> None:
    assert one("a: &x {b: 1}\nc: {<<: *x, b: 2}").value["c"] == {"b": 2}
