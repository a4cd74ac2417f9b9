"""A version that took effect without us: in groups that rolled by themselves, or because there were no groups."""

from __future__ import annotations

from rollout_lws.api import SummaryState
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.scaling import partition_update
from rollout_lws.rollout.history import store_version
from rollout_lws.rollout.lifecycle import actions
from rollout_lws.rollout.lifecycle.adoption import waits_for_empty
from rollout_lws.rollout.reasons import Ending, EventReason
from rollout_lws.rollout.state import CleaningUp
from rollout_lws.workload.hold import HOLD, is_held, standing_surge
from rollout_lws.workload.revisions import (
    current_revision,
    is_empty,
    lws_revision,
    observed,
    recorded_version,
    target_revision,
)
from rollout_lws.workload.template import Version
from rollout_lws.workload.trouble import troubles


def follows_template(d: Draft) -> bool:
    """Whether every group of [0, R) carries the version of the LWS's template and is ready."""
    return d.replicas > 0 and observed(d.stable) and partition_update(d).all_are(target_revision(d.stable))


def past_stable(d: Draft) -> bool:
    """Whether some regular group of the LWS is past stable's version."""
    stable = d.status.stable
    return stable is not None and any(group.revision != stable.revision for group in partition_update(d).regular)


def is_rolling(d: Draft) -> bool:
    """Whether an LWS that is not held has begun to go over to the version of its template, and has not finished: some
    group is past stable's version, or on its way, or may be so at any moment.
    """
    stable, leader_set = d.status.stable, d.stable.leader_set
    if stable is None or d.replicas == 0:
        return False
    if past_stable(d) or d.version.template_hash == stable.template_hash:
        return past_stable(d)
    regular = partition_update(d).regular
    lowered = leader_set is not None and leader_set.spec.update_strategy.rolling_update.partition < d.replicas
    opened = lowered and target_revision(d.stable) != stable.revision
    return opened or len(regular) < d.replicas or any(group.terminating for group in regular)


def rolling_words(d: Draft) -> str:
    """How far that is, and what keeps the group that is worst off from being ready."""
    revision = target_revision(d.stable)
    there = sum(group.revision == revision and group.ready(d.now, d.minimum) for group in partition_update(d).regular)
    worst = next(
        (f": {each.message}" for each in troubles(d.stable, revision, d.now, d.minimum) if each.severity > 2), ""
    )
    return f"{there} of {d.replicas} groups have its version and are ready{worst}"


def record_native_roll(d: Draft) -> Draft:
    """Record the LWS's own template as stable, which rolled without us: ``follows_template``."""
    stable, revision = d.status.stable, target_revision(d.stable)
    if stable is None:
        return d
    d = d.confirm_leader_set("the revision that is recorded as stable")
    changes = {"template_hash": d.version.template_hash, "revision": revision}
    d = d.set(stable=stable.model_copy(update=changes))
    d = store_version(d, d.version, revision)
    return d.notice(
        EventReason.ROLLED_OUT_NATIVELY, f"revision {revision} is stable: the LeaderWorkerSet rolled by itself"
    )


def all_went_over(d: Draft) -> bool:
    """Whether every group has gone over to the version of the template without us (through a window that nobody
    closed, or after zero groups): that one is stable then, see ``follow_groups``.
    """
    lws = d.stable.lws
    if not is_held(lws, standing_surge(lws, d.keys)) or current_revision(d.stable) != target_revision(d.stable):
        return False
    return d.status.stable is not None and follows_template(d)


def follow_groups(d: Draft) -> Draft:
    """End the release, for ``all_went_over``: what runs is stable."""
    return went_over(record_native_roll(d))


def went_over(d: Draft) -> Draft:
    """End the release, for every group carries the version of the template by now; it is on record as stable."""
    d = record_what_runs(d, released=True)
    d = d.set(observed_template_hash=d.version.template_hash, observed_rollout_id=d.release_id)
    return d.enter(CleaningUp(Ending.ROLLED_OUT_NATIVELY))


def follow_revision(d: Draft) -> Draft:
    """Call the stable version by the revision that every group restarts with, where that is the same version.

    An LWS that was upgraded calls it by another one. Groups keep the one before for as long as the LWS is held, and so
    does the record; but they get the other one as soon as they roll by themselves. Seen against the one before, such a
    roll would never end, and no group could go back.
    """
    stable, (runs, version) = d.status.stable, _what_runs(d)
    if stable is None or version is None or version.template_hash != stable.template_hash:
        return d
    d = d.confirm_leader_set("the revision that stable is said to have now")
    d = d.set(stable=stable.model_copy(update={"revision": runs}))
    d = d.set_sub(stable_revision=runs)
    return d.notice(
        EventReason.REVISION_RENAMED,
        f"revision {runs} is stable instead of {stable.revision}: LeaderWorkerSet {d.stable.lws.metadata.name} calls"
        " the unchanged version so, and all its groups were made anew with it",
    )


def _what_runs(d: Draft) -> tuple[str, Version | None]:
    """The revision that every group restarts with, and its version; ("", None) where it is the stable one, or is not
    known.
    """
    stable = d.status.stable
    if d.o.stable is None or stable is None or stable.workload_uid != d.stable.lws.metadata.uid or d.replicas == 0:
        return "", None
    runs = current_revision(d.stable)
    record = lws_revision(d.stable, runs) if runs not in ("", stable.revision) else None
    version = recorded_version(record) if record is not None else None
    return (runs, version) if version is not None else ("", None)


def record_what_runs(d: Draft, *, released: bool = False) -> Draft:
    """Record as stable the version that every group restarts with, where that is neither the stable one, nor the one
    in the template, nor, unless ``released``, the one that is being released.

    The StatefulSet came to it when all groups carried it and were ready: a template was applied in an open window while
    nobody could close that. Groups cannot go back to the version before, so whatever goes back goes there.
    """
    stable, (runs, version) = d.status.stable, _what_runs(d)
    if stable is None or version is None:
        return d
    others = () if released else (target_revision(d.stable), d.sub.new_revision if d.on_record else "")
    if runs in others or not _is_closed(d):
        return d
    d = d.confirm_leader_set("the revision that is recorded as stable")
    d = d.set(stable=stable.model_copy(update={"template_hash": version.template_hash, "revision": runs}))
    d = d.set_sub(stable_revision=runs)
    if d.status.aborted is not None and d.status.aborted.template_hash == version.template_hash:
        d = d.set(aborted=None)
    d = store_version(d, version, runs)
    name = d.stable.lws.metadata.name
    return d.notice(
        EventReason.ROLLED_OUT_NATIVELY,
        f"revision {runs} is stable instead of {stable.revision}: all groups of LeaderWorkerSet {name} went over to it"
        " while the controller could not write, and restart with it",
        warning=True,
    )


def _is_closed(d: Draft) -> bool:
    """Whether the hold stands, in the leader StatefulSet as well."""
    lws, leader_set = d.stable.lws, d.stable.leader_set
    if leader_set is None or leader_set.spec.update_strategy.rolling_update.partition < HOLD:
        return False
    return is_held(lws, standing_surge(lws, d.keys))


def at_zero(d: Draft) -> Draft:
    """Without groups a version takes effect by itself: the one in the LWS is stable, and the release ends. With the
    last word while that is awaited.
    """
    stable = d.status.stable
    if not is_empty(d.stable):
        return waits_for_empty(d, SummaryState.PROMOTING)
    if stable is not None:
        changes = {"template_hash": d.version.template_hash, "revision": target_revision(d.stable)}
        d = d.confirm_leader_set("the revision that is recorded as stable")
        d = d.set(stable=stable.model_copy(update=changes), observed_template_hash=d.version.template_hash)
        d = store_version(d, d.version, target_revision(d.stable))
    d = actions.refuse_abort(d, actions.PROMOTED_ALREADY)
    return d.enter(CleaningUp(Ending.ROLLED_OUT_NATIVELY))
