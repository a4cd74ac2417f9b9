"""Marks are annotations, which whoever may edit an object may write: what nobody can read counts as none."""

from __future__ import annotations

import pytest

from rollout_lws.objects.meta import Struct
from rollout_lws.rollout.decide import decide
from rollout_lws.rollout.observation import Observation
from rollout_lws.traffic import marks
from rollout_lws.workload.hold import hold_record
from tests.rollout.build import at_rest, held, in_step, rollout
from tests.workload.build import KEYS, NOW

HOSTILE = [
    "",
    "null",
    "[]",
    "7",
    '"text"',
    "{",
    "{}",
    '{"by":7,"original":[],"written":"x"}',
    '{"uid-rollout":{"original":7}}',
    '{"by":"uid-rollout","original":{"partition":"__import__"},"written":{"partition":-1}}',
    '{"by":"uid-rollout","original":{"partition":1e400},"written":null}',
    "[" * 100_000,
    '{"a":' * 50_000 + "1" + "}" * 50_000,
    "\\u0000\x1b[2J",
    "9" * 5_000,
]


class Form(Struct, frozen=True):
    original: dict[str, int]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_a_mark_that_nobody_can_read_is_none(text: str) -> None:
    live = {"metadata": {"annotations": {KEYS.original: text}}}
    assert marks.read_as(Form, live, "uid-rollout", KEYS) is None
    assert "uid-rollout" not in marks.others(live, "uid-rollout", KEYS)
    hold_record(held(annotations={KEYS.original: text}).workload, KEYS)


@pytest.mark.parametrize("status", [None, at_rest(), in_step(1)], ids=["new", "at rest", "in a step"])
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_a_rollout_is_decided_whatever_its_workload_has_in_our_annotations(
    text: str, status: dict[str, object] | None
) -> None:
    hostile = held(annotations={KEYS.original: text, KEYS.aborted: text, KEYS.held: text})
    decision = decide(Observation(NOW, KEYS, rollout(status=status), stable=hostile))
    assert decision.writes or decision.wake_at or status is not None
