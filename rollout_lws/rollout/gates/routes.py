"""The gates of traffic: requests have left the groups that the step removes, each pinned selector selects one version
only, and routers have accepted the step's traffic weight. From then on the new version is judged, and the pause runs.
"""

from __future__ import annotations

from rollout_lws.api import StepState, SummaryState
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.base import PASSED, Answer, CurrentStep, Failed, Gate, Waiting
from rollout_lws.rollout.gates.capacity import ready_of
from rollout_lws.rollout.groups.health import deadline_passed, keep_clock
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.routing import route
from rollout_lws.rollout.routing.route_result import Routed
from rollout_lws.rollout.routing.unmanaged_backends import and_requests


def _drained(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    return (d, PASSED) if step.drained.done else _not_routed(d, step.drained)


def _pinned(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    """Pins are asked for before any group exists, and have to be accepted before the step's weight is routed."""
    if step.pinned.done:
        return d, PASSED
    # Until then requests for stable reach the new version too, which would distort the traffic weight.
    if step.routed is None:
        d, _ = route.keep(d)
    return _not_routed(d, step.pinned)


def _routed(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    d, routed = (d, step.routed) if step.routed is not None else route.route(d, step.index)
    if not routed.done:
        return _not_routed(d, routed)
    if d.status.step is None or d.status.step.paused_at is None:
        d = d.set_step(routed_at=d.now, paused_at=d.now)
        # An approval that another writer recorded before this moment does not count.
        d = d.set_sub(current_step_state=StepState.STEP_PAUSED)
        d = d.event(EventReason.BATCH_READY, and_requests(d, f"step {step.index}: {ready_of(d, step.batch)}"))
    return d, PASSED


def _not_routed(d: Draft, routed: Routed) -> tuple[Draft, Answer]:
    """The answer while requests are not where the step wants them."""
    if routed.contested:
        return d, Waiting(Reason.ROUTE_CONFLICT, SummaryState.STALLED, routed.message, field=routed.field)
    if routed.timed:
        return d, Waiting(Reason.DRAINING, SummaryState.ROUTING, routed.message)
    d = keep_clock(d, None)
    late = deadline_passed(d, None)
    if late is not None:
        return d, Failed(late[0], f"traffic was not routed in time: {routed.message}", "it goes on when it is")
    return d, Waiting(Reason.ROUTING, SummaryState.ROUTING, routed.message)


DRAIN = Gate(StepState.STEP_TRAFFIC_ROUTING, _drained)
PINS = Gate(StepState.STEP_TRAFFIC_ROUTING, _pinned)
ROUTES = Gate(StepState.STEP_TRAFFIC_ROUTING, _routed)
