"""Checks shared by promotion, rollback and clean-up: new requests, versions that must not start, and deadlines."""

from __future__ import annotations

from rollout_lws.capacity.partition_update import PartitionUpdate
from rollout_lws.rollout.draft import Abort, Draft
from rollout_lws.rollout.groups.crash_loops import await_quiet, churning
from rollout_lws.rollout.groups.evictions import given_up
from rollout_lws.rollout.groups.health import (
    await_capacity,
    deadline_passed,
    further_ready,
    keep_clock,
    waits_for_capacity,
    waits_only_for_used_up,
)
from rollout_lws.rollout.lifecycle import actions
from rollout_lws.rollout.preflight import unsafe_pending
from rollout_lws.rollout.reasons import Ending, Reason
from rollout_lws.rollout.routing import traffic_shift
from rollout_lws.rollout.state import Promoting


def turned_round(d: Draft) -> tuple[Ending, str] | None:
    """Why the current promotion must not continue."""
    if isinstance(d.intent, Abort):
        return Ending.ABORTED, d.intent.reason
    if d.asks_for_stable:
        return Ending.ROLLBACK, "stable's template was restored"
    if d.version.template_hash != d.status.observed_template_hash:
        return Ending.CONTINUOUS, "another version was applied"
    return None


def frozen(d: Draft, own: PartitionUpdate) -> Draft | None:
    """Gives a verdict while a version is pending that would damage each restarting group: the controller deletes no
    group and opens no window. None if there is no such version.
    """
    refusal = unsafe_pending(d)
    if refusal is None:
        return None
    d = actions.refuse_abort(d, refusal.message)
    # Groups that stop serving still must not receive requests.
    d = traffic_shift.protect(d)
    d = d.write(own.close("a version waits that must not start"))
    return d.refuse(refusal)


def late(d: Draft, own: PartitionUpdate, revision: str, what: str, doing: str) -> Draft:
    """Gives a verdict if no group has become ready for too long while the release ends, or if only accelerators or
    quota are missing. The work continues.
    """
    ready = sum(group.ready(d.now, d.minimum) for group in own.regular if group.revision == revision)
    d = keep_time(further_ready(d, ready))
    capacity = waits_for_capacity(d)
    passed = overdue(d)
    lost = given_up(d, d.o.stable, revision)
    if lost and passed is None:
        passed = Reason.DEADLINE, next(iter(lost.values()))
    if passed is not None:
        without = "" if isinstance(d.state, Promoting) else _without_canary(d, own)
        how = "as far as it can" if passed[0] is Reason.RESTARTS_EXHAUSTED else "by itself"
        message = f"{what}: {passed[1].rstrip('.')}; it goes on {how}: {doing}{without}"
        return d.stalled(passed[0], message, goes_on=True)
    if capacity is None:
        return d
    return d.reconciling(*capacity[:2], f"{what}: {capacity[2].rstrip('.')}; {doing}")


def _without_canary(d: Draft, own: PartitionUpdate) -> str:
    """How the user ends the wait for groups that will hardly become ready while a canary serves."""
    if d.o.canary is None or not own.beside:
        return ""
    meta = d.o.canary.workload.metadata
    return (
        f". {own.beside} of canary {meta.name} serve meanwhile; to do without them now: kubectl delete {d.kind.lower()}"
        f" {meta.name} -n {meta.namespace}"
    )


def keep_time(d: Draft) -> Draft:
    """Runs the clocks of ``overdue``, and wakes when its answer may change."""
    d = await_quiet(d)
    d = await_capacity(d)
    return keep_clock(d, waits_for_capacity(d))


def is_patient(d: Draft, own: PartitionUpdate) -> bool:
    """True if a rollback waits until its groups are ready: always if canary or surge groups serve, which go when the
    wait ends; else only until the groups will hardly become ready.
    """
    return own.beside > 0 or overdue(d) is None


def overdue(d: Draft) -> tuple[Reason, str] | None:
    """Why groups that the end of a release waits for will hardly become ready: one keeps restarting, none of them may
    restart again, or the deadline has passed. None while they may.
    """
    worn = churning(d)
    if worn:
        return Reason.CHURN, next(iter(worn.values()))
    ended = waits_only_for_used_up(d)
    if ended:
        return Reason.RESTARTS_EXHAUSTED, ended
    return deadline_passed(d, waits_for_capacity(d))
