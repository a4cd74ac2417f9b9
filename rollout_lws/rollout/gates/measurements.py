"""What gates of the current step and of the release need: figures to be measured, objects to be watched."""

from __future__ import annotations

from functools import reduce

from rollout_lws.rollout.decision import Wanted
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates import release
from rollout_lws.rollout.gates.kinds.table import kind_of
from rollout_lws.rollout.gates.records import begun
from rollout_lws.rollout.state import InSteps


def wanted(d: Draft) -> Wanted:
    """That of gates that were begun and have no result, while a release is in a step, paused or not."""
    return _of_step(d).plus(release.wanted(d))


def _of_step(d: Draft) -> Wanted:
    if not isinstance(d.state, InSteps) or d.o.stable is None or d.o.rollout.spec.strategy.style is None:
        return Wanted()
    each = (kind_of(gate).wanted(d, gate, record) for gate, record in begun(d) if record.result is None)
    return reduce(Wanted.plus, each, Wanted())
