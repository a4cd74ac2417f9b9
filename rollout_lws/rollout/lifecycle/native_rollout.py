"""Versions that rolled out natively: the hold was released, or there were no groups."""

from __future__ import annotations

from rollout_lws.api import Phase, SummaryState
from rollout_lws.rollout.companions import active_workloads
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.scaling import partition_update
from rollout_lws.rollout.history import record_stable
from rollout_lws.rollout.lifecycle import actions
from rollout_lws.rollout.lifecycle.adoption import waits_for_empty
from rollout_lws.rollout.reasons import Ending, EventReason
from rollout_lws.rollout.state import CleaningUp
from rollout_lws.targets.version import Version, hashes_of, with_first
from rollout_lws.workload.hold import HOLD, is_held, standing_surge
from rollout_lws.workload.revisions import (
    current_revision,
    is_empty,
    leaders_revisions,
    lws_revision,
    observed,
    recorded_version,
    target_revision,
)
from rollout_lws.workload.standstill import to_delete
from rollout_lws.workload.trouble import troubles


def follows_template(d: Draft) -> bool:
    """True if every group of [0, R) runs the version of the LWS's template and is ready; of a pair those of companions
    as well.
    """
    return d.stable.workload.replicas > 0 and all(
        observed(each) and partition_update(d, of=each).all_are(target_revision(each)) for each in active_workloads(d)
    )


def past_stable(d: Draft) -> bool:
    """True if a regular group of the LWS runs another version than stable."""
    stable = d.status.stable
    return stable is not None and any(group.revision != stable.revision for group in partition_update(d).regular)


def is_rolling(d: Draft) -> bool:
    """True if an LWS that is not held has begun to roll to its template's version and has not finished: a group runs
    another version than stable, is being updated, or may be at any moment.
    """
    stable, leader_set, replicas = d.status.stable, d.stable.leader_set, d.stable.workload.replicas
    if stable is None or replicas == 0:
        return False
    if past_stable(d) or not d.own_pending:
        return past_stable(d)
    regular = partition_update(d).regular
    lowered = leader_set is not None and leader_set.spec.update_strategy.rolling_update.partition < replicas
    opened = lowered and target_revision(d.stable) != stable.revision
    return opened or len(regular) < replicas or any(group.terminating for group in regular)


def rolling_words(d: Draft) -> str:
    """Progress of the roll, why the group with the worst problem is not ready, and what a person has to do."""
    revision = target_revision(d.stable)
    there = sum(group.revision == revision and group.ready(d.now, d.minimum) for group in partition_update(d).regular)
    worst = next(
        (f": {each.message}" for each in troubles(d.stable, revision, d.now, d.minimum) if each.severity > 2), ""
    )
    told = f"{there} of {d.stable.workload.replicas} groups have its version and are ready{worst}"
    return told + to_delete(d.stable, d.now)


def record_native_roll(d: Draft) -> Draft:
    """Records the LWS's template as stable after a native roll (see ``follows_template``)."""
    revision = target_revision(d.stable)
    if d.status.stable is None:
        return d
    d = record_stable(d, d.own_version, revision)
    return d.event(EventReason.ROLLED_OUT_NATIVELY, f"revision {revision} is stable: the {d.kind} rolled by itself")


def all_went_over(d: Draft) -> bool:
    """True if every group rolled natively to the template's version (through a window that no controller closed, or
    after zero groups), which makes it stable (see ``follow_groups``).
    """
    lws = d.stable.workload
    if not is_held(lws, standing_surge(lws, d.keys)) or current_revision(d.stable) != target_revision(d.stable):
        return False
    return d.status.stable is not None and follows_template(d)


def follow_groups(d: Draft) -> Draft:
    """Ends the release after ``all_went_over``: the running version is stable."""
    return went_over(record_native_roll(d))


def went_over(d: Draft) -> Draft:
    """Ends the release: every group runs the template's version, which is recorded as stable."""
    d = record_what_runs(d, released=True)
    d = d.set(observed_template_hash=d.version.template_hash, observed_rollout_id=d.release_id)
    return d.enter(CleaningUp(Ending.ROLLED_OUT_NATIVELY))


def follow_revision(d: Draft) -> Draft:
    """Updates stable's revision to the one that every group restarts with, if both are the same version.

    An upgraded LWS names the version differently. Groups of a held LWS keep the old revision, and so does the record;
    but as soon as groups roll natively they get the new one. Compared with the old revision such a roll would never
    end, and no group could be rolled back.
    """
    stable, (runs, version) = d.status.stable, _what_runs(d)
    if stable is None or version is None or version.template_hash != hashes_of(stable.template_hash)[0]:
        return d
    d = d.confirm_leader_set("the revision that stable is said to have now", d.stable)
    d = d.set(stable=stable.model_copy(update={"revision": runs}))
    d = d.set_sub(stable_revision=runs)
    return d.event(
        EventReason.REVISION_RENAMED,
        f"revision {runs} is stable instead of {stable.revision}: {d.stable.called} calls"
        " the unchanged version so, and all its groups were recreated with it",
    )


def _what_runs(d: Draft) -> tuple[str, Version | None]:
    """The revision that every group restarts with, and its version; ("", None) if it is stable's or unknown, or none
    of the groups has it: a StatefulSet whose groups were renewed by hand may still call that the current one which it
    had before.
    """
    if d.o.stable is None or not d.adopted or d.stable.workload.replicas == 0:
        return "", None
    runs, there = current_revision(d.stable), leaders_revisions(d.stable)
    if there and runs not in there:
        return "", None
    record = lws_revision(d.stable, runs) if runs not in ("", d.stable_revision) else None
    version = recorded_version(record) if record is not None else None
    return (runs, version) if version is not None else ("", None)


def record_what_runs(d: Draft, *, released: bool = False) -> Draft:
    """Records as stable the version that every group restarts with, if it is neither stable's, nor the template's, nor
    (unless ``released``) the one being released.

    The StatefulSet adopted that revision when all groups ran it and were ready: a template was applied in an open
    window while no controller could close it. Groups cannot return to the version before, so a rollback ends there.
    """
    stable, (runs, version) = d.status.stable, _what_runs(d)
    if stable is None or version is None:
        return d
    others = () if released else (target_revision(d.stable), d.sub.new_revision if d.on_record else "")
    if runs in others or not _is_closed(d):
        return d
    version = with_first(stable.template_hash, version)
    d = record_stable(d, version, runs).set_sub(stable_revision=runs)
    if d.status.aborted is not None and d.status.aborted.template_hash == version.template_hash:
        d = d.set(aborted=None)
    return d.event(
        EventReason.ROLLED_OUT_NATIVELY,
        f"revision {runs} is stable instead of {stable.revision}: all groups of {d.called} went over to it"
        " while the controller could not write, and restart with it",
        warning=True,
    )


def _is_closed(d: Draft) -> bool:
    """True if the hold is in place, in the leader StatefulSet too."""
    lws, leader_set = d.stable.workload, d.stable.leader_set
    if leader_set is None or leader_set.spec.update_strategy.rolling_update.partition < HOLD:
        return False
    return is_held(lws, standing_surge(lws, d.keys))


def at_zero(d: Draft) -> Draft:
    """Ends a release without groups: the LWS's version takes effect by itself and is stable. Gives a verdict while the
    last groups are terminating.
    """
    if not is_empty(d.stable):
        return waits_for_empty(d, SummaryState.PROMOTING)
    if d.status.stable is not None:
        d = record_stable(d, d.version, target_revision(d.stable))
        d = d.set(observed_template_hash=d.version.template_hash)
    d = actions.refuse_abort(d, actions.PROMOTED_ALREADY)
    return d.enter(CleaningUp(Ending.ROLLED_OUT_NATIVELY)).set(phase=Phase.PROGRESSING)
