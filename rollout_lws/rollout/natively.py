"""A version that took effect without us: in groups that rolled by themselves, or because there were no groups."""

from __future__ import annotations

from rollout_lws.api import SummaryState
from rollout_lws.rollout import actions
from rollout_lws.rollout.adoption import waits_for_empty
from rollout_lws.rollout.capacity import renewal
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.history import store_version
from rollout_lws.rollout.reasons import Ending, EventReason, Task
from rollout_lws.workload.hold import is_held, standing_surge
from rollout_lws.workload.revisions import current_revision, is_empty, observed, target_revision


def follows_template(d: Draft) -> bool:
    """Whether every group of [0, R) carries the version of the LWS's template and is ready."""
    return d.replicas > 0 and observed(d.stable) and renewal(d).all_are(target_revision(d.stable))


def rolled_natively(d: Draft) -> bool:
    """Record the LWS's own template as stable if it rolled without us: every group of [0, R) carries it and is
    ready.
    """
    stable, revision = d.status.stable, target_revision(d.stable)
    if stable is None or not follows_template(d):
        return False
    d.confirm_leader_set("the revision that is recorded as stable")
    changes = {"template_hash": d.version.template_hash, "revision": revision}
    d.set(stable=stable.model_copy(update=changes), hold_fights=())
    store_version(d, d.version, revision)
    d.notice(EventReason.ROLLED_NATIVELY, f"revision {revision} is stable: the LeaderWorkerSet rolled by itself")
    return True


def all_went_over(d: Draft) -> bool:
    """Whether every group has gone over to the version of the template without us (through a window that nobody
    closed, or after zero groups): that one is stable then.
    """
    lws = d.stable.lws
    if not is_held(lws, standing_surge(lws, d.keys)) or current_revision(d.stable) != target_revision(d.stable):
        return False
    if not rolled_natively(d):
        return False
    d.set(observed_template_hash=d.version.template_hash, observed_rollout_id=d.release_id)
    d.set_task(Task.CLEAN_UP, Ending.ROLLED_NATIVELY)
    return True


def at_zero(d: Draft) -> bool:
    """Without groups a version takes effect by itself: the one in the LWS is stable. True while that is awaited."""
    stable = d.status.stable
    if not is_empty(d.stable):
        return waits_for_empty(d, SummaryState.PROMOTING)
    if stable is not None:
        changes = {"template_hash": d.version.template_hash, "revision": target_revision(d.stable)}
        d.confirm_leader_set("the revision that is recorded as stable")
        d.set(stable=stable.model_copy(update=changes), observed_template_hash=d.version.template_hash)
        store_version(d, d.version, target_revision(d.stable))
    actions.refuse_abort(d, actions.PROMOTED_ALREADY)
    d.begin_finalising(Ending.ROLLED_NATIVELY, Task.CLEAN_UP)
    return False
