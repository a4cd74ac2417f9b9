"""Files of somebody else, such as a pull request's: refused in one line, in a moment, within the usual memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rollout_lws.cli.lint.nodes import MOST_VALUES as LINTS
from rollout_lws.cli.main import program
from rollout_lws.cli.manifests import MOST_VALUES, read
from rollout_lws.errors import UsageError

LAUGHS = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
)
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
HOSTILE = {
    "laughs": (HEAD + LAUGHS, "has anchors that make more than 1000000 values: write out what is meant"),
    "itself": (HEAD + "data: &d [*d]\n", "has an anchor that contains itself: write its value out"),
    "nested": (HEAD + "data: " + "[" * 200_000, "is no YAML"),
    "nested well": (HEAD + "data: " + "[" * 3_000 + "]" * 3_000, "it is nested more than 250 levels deep"),
    "blocks": (HEAD + "data:\n  " + "- " * 100_000 + "a\n", "it is nested more than 250 levels deep"),
    "keys": (HEAD + "data:\n  " + "? " * 100_000 + "a\n", "it is nested more than 250 levels deep"),
    "steps": (
        HEAD + "data:\n" + "".join(" " * n + "a:\n" for n in range(1, 2_000)),
        "it is nested more than 250 levels deep",
    ),
    "object": (HEAD + "data: !!python/object/apply:os.system [id]\n", "is no YAML"),
    "number": (HEAD + "data: " + "9" * 10_000, "is no YAML"),
    "scalar": ("just text", "holds something that is no Kubernetes object"),
    "time": (HEAD + "data: 2026-99-99\n", "is no YAML"),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_in_a_line(case: str, tmp_path: Path) -> None:
    text, told = HOSTILE[case]
    file = tmp_path / "hostile.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        read(str(file))
    assert told in str(refused.value)
    assert len(str(refused.value)) < 500 + len(str(file)), str(refused.value)[:300]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("case", HOSTILE)
def test_lint_finds_something_and_ends(case: str, tmp_path: Path) -> None:
    file = tmp_path / "hostile.yaml"
    file.write_text(HOSTILE[case][0])
    result = CliRunner().invoke(program, ["lint", str(file)])
    assert result.exception is None or isinstance(result.exception, SystemExit | UsageError)


def test_both_readers_of_manifests_have_one_limit() -> None:
    assert MOST_VALUES == LINTS


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
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("case", LONG)
def test_lint_takes_no_longer_than_a_text_is_long(case: str, tmp_path: Path) -> None:
    """Nothing is looked for to the end of a file, again and again."""
    file = tmp_path / "long.yaml"
    file.write_text(LONG[case])
    result = CliRunner().invoke(program, ["lint", str(file)])
    assert result.exception is None or isinstance(result.exception, SystemExit | UsageError)
