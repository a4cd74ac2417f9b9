"""What counts as reading a fact from a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sentences import found, main


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ('verdict.message.partition("%")', "verdict.message by partition()"),
        ('(said or "").startswith("group")', "said or '' by startswith()"),
        ('"ready" in told', "told by what is in it"),
        ("_WEIGHT.search(record.message)", "message by a regular expression"),
        ('f"{message}; {why}"', ""),
        ("after.message == before.message", ""),
        ('message.rstrip(". ")', ""),
        ('name.partition("-")', ""),
    ],
)
def test_what_looks_into_a_sentence_is_found(line: str, names: str) -> None:
    read = [what for _, what in found(Path("rollout/a.py"), f"def decides():\n    return {line}\n")]
    assert read == ([f"decides reads {names}"] if names else [])


def test_nothing_in_the_core_looks_into_a_sentence() -> None:
    assert main() == 0
