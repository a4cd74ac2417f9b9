"""Files of somebody else, such as a pull request's: refused in one line, in a moment, within the usual memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rollout_lws.cli.main import program
from rollout_lws.cli.manifests import read_manifests
from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig.context import load
from rollout_lws.kubeconfig.target import Target

pytestmark = pytest.mark.rare(3)

LAUGHS = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
)
MERGES = "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10))
#: Each mapping merges the one before it and has a key more, and one merges a large mapping again and again.
CHAIN = "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}, k{n}: 1}}\n" for n in range(1, 3_000))
OFTEN = f"a: &a {{{', '.join(f'k{n}: 1' for n in range(2_000))}}}\nb: {{<<: [{', '.join(['*a'] * 20_000)}]}}\n"
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
HOSTILE = {
    "laughs": (HEAD + LAUGHS, "its anchors make more than 1000000 values of this: write out what is meant"),
    "chain": (HEAD + CHAIN, "its merges copy more than 1000000 values: write out what is meant"),
    "often": (HEAD + OFTEN, "its merges copy more than 1000000 values: write out what is meant"),
    "itself": (HEAD + "data: &d [*d]\n", "this anchor contains itself: write its value out"),
    "merges itself": (HEAD + "data: &d {<<: {<<: *d}}\n", "this mapping merges itself: write its value out"),
    "nested": (HEAD + "data: " + "[" * 200_000, "line 1: not YAML: it is nested more than 250 levels deep"),
    "nested well": (HEAD + "data: " + "[" * 3_000 + "]" * 3_000, "it is nested more than 250 levels deep"),
    "blocks": (HEAD + "data:\n  " + "- " * 100_000 + "a\n", "it is nested more than 250 levels deep"),
    "keys": (HEAD + "data:\n  " + "? " * 100_000 + "a\n", "it is nested more than 250 levels deep"),
    "steps": (
        HEAD + "data:\n" + "".join(" " * n + "a:\n" for n in range(1, 2_000)),
        "it is nested more than 250 levels deep",
    ),
    "number": (HEAD + "data: " + "9" * 10_000, "cannot be read as int: quote it"),
    "hexadecimal": (
        HEAD + "data: 0x" + "f" * 400,
        "ffff...' cannot be read as int",
    ),
    "octal": (HEAD + "data: 0" + "7" * 4_000, "cannot be read as int: quote it"),
    "binary": (HEAD + "data: -0b" + "1" * 4_000, "cannot be read as int: quote it"),
    "exponent": (HEAD + "data: 1e999", "cannot be read as float: quote it"),
    "infinite": (HEAD + "data: -.inf", "cannot be read as float: quote it"),
    "none": (HEAD + "data: .nan", "cannot be read as float: quote it"),
    "items": ("kind: List\nitems: 5\n", "holds something that is no Kubernetes object"),
    "a number for a name": (
        HEAD.replace("name: a", "name: 12"),
        "it needs texts as apiVersion, kind, metadata.name",
    ),
    "scalar": ("just text", "holds something that is no Kubernetes object"),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_in_a_line(case: str, tmp_path: Path) -> None:
    text, told = HOSTILE[case]
    file = tmp_path / "hostile.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        read_manifests([str(file)])
    assert told in str(refused.value)
    assert len(str(refused.value)) < 500 + len(str(file)), str(refused.value)[:300]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("case", HOSTILE)
def test_lint_finds_something_and_ends(case: str, tmp_path: Path) -> None:
    file = tmp_path / "hostile.yaml"
    file.write_text(HOSTILE[case][0])
    result = CliRunner().invoke(program, ["lint", str(file)])
    assert result.exception is None or isinstance(result.exception, SystemExit | UsageError)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        (MERGES, {"k": 1}),
        ("a9: !!python/object/apply:os.system [id]\n", ["id"]),
        ("a9: 2026-99-99\n", "2026-99-99"),
        ("a9: 190:20:30\n", "190:20:30"),
    ],
)
def test_a_strange_file_is_read_as_kubectl_reads_it(text: str, read_as: object, tmp_path: Path) -> None:
    """Merges of merges cost what they hold, tags make no objects, dates and numbers to the base of 60 are text."""
    file = tmp_path / "strange.yaml"
    file.write_text(HEAD + text)
    assert read_manifests([str(file)])[0]["a9"] == read_as


def test_a_json_stream_is_read_as_kubectl_reads_it(tmp_path: Path) -> None:
    """Objects without separators, tabs, characters beyond 16 bits; an error names the line of the file."""
    first, second, third = (
        '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "' + name + '"}}'
        for name in ("a", "b", "\\ud83d\\ude00")
    )
    file = tmp_path / "stream.json"
    file.write_text(f"{first}\n\t{second}{third}")
    assert [each["metadata"]["name"] for each in read_manifests([str(file)])] == ["a", "b", "\N{GRINNING FACE}"]
    file.write_text(f"{first}\n{second}\n---\n[")
    with pytest.raises(UsageError, match=r"stream\.json, line 4: not YAML: "):
        read_manifests([str(file)])


def test_an_empty_directory_beside_files_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(HEAD)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"empty holds no \.yaml, \.yml or \.json file"):
        read_manifests([str(file), str(tmp_path / "empty")])


@pytest.mark.timeout(20)
def test_a_kubeconfig_is_read_by_the_same_rules(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(f"current-context: c\n{CHAIN}")
    with pytest.raises(UsageError, match="line 1416 has a value that no kubeconfig has"):
        load(Target(kubeconfig=str(file)))


_MANY = 30_000
LONG = {
    "braces": "{{" * _MANY,
    "braces that close before": "}}" + "{{ a " * _MANY,
    "separators": "---\n" * (_MANY // 10),
    "tabs": "\t" * _MANY,
    "blanks": " " * _MANY,
    "quotes": "a: [" + "'b', " * _MANY + "{{",
    "comments": " #" * _MANY,
    "escapes": '{"a": "' + "\\ud800" * _MANY,
    "name": HEAD.replace("name: a", "name: " + "a-" * _MANY),
    "labels": HEAD.replace("name: a", "name: a, labels: {'" + "a." * _MANY + "/b': '" + "a-" * _MANY + "'}"),
    "nothing": "\x00" * _MANY,
    "objects": "{}" * _MANY,
    "directives": "%YAML 1.1\n" * _MANY,
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("case", LONG)
def test_lint_takes_no_longer_than_a_text_is_long(case: str, tmp_path: Path) -> None:
    """Nothing is looked for to the end of a file, again and again."""
    file = tmp_path / "long.yaml"
    file.write_text(LONG[case])
    result = CliRunner().invoke(program, ["lint", str(file)])
    assert result.exception is None or isinstance(result.exception, SystemExit | UsageError)
