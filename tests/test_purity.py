"""What counts as an effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.purity import found


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        ("d.verdict = None", "assigns to d.verdict"),
        ("d.status['phase'] += 1", "assigns to d.status['phase']"),
        ("del d.writes[0]", "assigns to d.writes[0]"),
        ("d.writes.append(1)", "changes d.writes"),
        ("d.set(phase=None)", "drops what d.set() answers"),
        ("judge(d)", "drops what judge() answers"),
        ("global known", "changes known"),
        ("d = d.set(phase=None)", ""),
        ("own = []; own.append(d)", ""),
        ("assert_never(d)", ""),
        ("return judge(d)", ""),
    ],
)
def test_an_effect_of_a_function_of_the_core_is_found(line: str, effect: str) -> None:
    effects = [what for _, what in found(Path("rollout/a.py"), f"def decides(d):\n    {line}\n")]
    assert effects == ([f"decides {effect}"] if effect else [])
