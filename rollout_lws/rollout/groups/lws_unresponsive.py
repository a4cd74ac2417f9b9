"""Waits for LWS to act on an object; after a minute reports that LWS is probably not running."""

from __future__ import annotations

from rollout_lws.api import SummaryState
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.recent_writes import applied_lately

#: The LWS controller acts within a second and restarts within half a minute.
SILENCE_SECONDS = 60


def waits_for_lws(d: Draft, state: SummaryState) -> Draft:
    """Gives the verdict while LWS has not acted on the object, outside of a release, which has its own deadlines."""
    name, namespace = d.stable.name, d.stable.workload.metadata.namespace
    last = d.status.verdict
    since = last.since if last is not None and last.reason == Reason.WAITING_FOR_LWS else None
    until = d.yet_to_come(since, SILENCE_SECONDS) if since is not None else None
    if d.said(Reason.LWS_UNRESPONSIVE) or (since is not None and until is None):
        return d.stalled(
            Reason.LWS_UNRESPONSIVE,
            f"the {d.kind} controller has not acted on {name} for {SILENCE_SECONDS} s: is it running?"
            f" {d.stable.workload.look_at_controller}. If it is, the Events of {name} say why: kubectl describe"
            f" {d.kind.lower()} {name} -n {namespace}",
        )
    d = d.wake(until).brief_until(applied_lately(d))
    message = f"waiting for the {d.kind} controller to act on {name}"
    return d.reconciling(Reason.WAITING_FOR_LWS, state, message)
