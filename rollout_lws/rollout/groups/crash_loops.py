"""Crash loops of groups, detected by the leaders' UIDs: LWS recreates a crashing group before CrashLoopBackOff shows.

A group that keeps restarting does not count as ready, so its step waits. When there are more of them than
failureThreshold tolerates, the step has failed: the release is stalled or aborted, as ``onFailure`` says.

A group that was lost with its node, evicted or preempted has not failed: its leader's record is removed, and its
replacement does not count as a restart. Groups that the release deletes lose their records with their ordinal or
revision.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from rollout_lws.api import RestartRecord
from rollout_lws.rollout.draft import Draft
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.pod_words import last_failure, lost_to_its_node, pods_of
from rollout_lws.workload.revisions import target_revision
from rollout_lws.workload.trouble import shortened

#: A group recreated so often within the window is broken.
CHURN_LIMIT = 3
CHURN_WINDOW_SECONDS = 600
#: Longest recorded message, in characters.
WORDS_LIMIT = 300
#: Limit of recorded leaders, over all groups; further ones are not checked for crash loops.
MOST_LEADERS = 50


def remember_leaders(
    d: Draft, facts: Facts | None, revision: str, wanted: int, companions: Iterable[tuple[Facts, int]] = ()
) -> Draft:
    """Records each leader of ``facts`` at ``revision`` among the groups below ``wanted``, with its containers' last
    failure, and those of ``companions`` at their newest revision. A terminating leader is not recorded: it may have
    been lost with another pod.
    """
    if facts is None:
        return d
    kept = _remembered(d, facts, revision, wanted)
    for each, number in companions:
        kept += _remembered(d, each, target_revision(each), number)
    # The oldest stay: with more groups than that, leaders would evict each other's records for ever.
    return d.set(restarts=tuple(kept[:MOST_LEADERS]))


def _remembered(d: Draft, facts: Facts, revision: str, wanted: int) -> list[RestartRecord]:
    workload = facts.name
    standing = [each for each in groups(facts) if each.revision == revision and 0 <= each.ordinal < wanted]
    lost = {each.uid for each in standing if lost_to_its_node(facts, each)}
    failed = {each.uid: _failed(facts, each) for each in standing}
    known = [
        record.model_copy(update=failed.get(record.uid, {}))
        for record in d.status.restarts
        if record.workload == workload and record.uid not in lost and _is_below(record, wanted)
    ]
    filed = {record.uid for record in known} | lost
    seen = [
        RestartRecord(workload=workload, group=each.index, uid=each.uid, at=d.now, **failed[each.uid])
        for each in standing
        if each.uid not in filed and not (each.terminating and _lacks_pods(facts, each))
    ]
    return [*_without_forgotten(d, known, {each.uid for each in standing}), *seen]


def _failed(facts: Facts, group: Group) -> dict[str, str]:
    """The recorded fields of a group's last failure; empty if nothing in it has failed."""
    failure = last_failure(facts, group)
    if failure is None:
        return {}
    return {"pod": failure.pod, "container": failure.container, "message": shortened(failure.text, WORDS_LIMIT)}


def _lacks_pods(facts: Facts, group: Group) -> bool:
    return group.size is None or len(pods_of(facts, group)) < group.size


def _is_below(record: RestartRecord, wanted: int) -> bool:
    return not record.group.isdigit() or int(record.group) < wanted


def _without_forgotten(d: Draft, records: list[RestartRecord], alive: set[str]) -> Iterable[RestartRecord]:
    """Keeps existing and recent leaders, and of each group the last one before those, which they replaced."""
    later: set[str] = set()
    kept = []
    for record in reversed(records):
        lately = record.uid in alive or _in_window(d, record)
        if lately or record.group not in later:
            kept.append(record)
        if not lately:
            later.add(record.group)
    return reversed(kept)


def churning(d: Draft) -> dict[tuple[str, str], str]:
    """Recorded groups that keep restarting, by workload and index, each with a message; the most frequent first."""
    found = {group: rebuilt for group, rebuilt in _rebuilt(d).items() if len(rebuilt) >= CHURN_LIMIT}
    often = sorted(found, key=lambda group: -len(found[group]))
    return {group: _sentence(d, *group, len(found[group])) for group in often}


def await_quiet(d: Draft) -> Draft:
    """Wakes when the first of the restarting groups counts as healthy again."""
    return d.wake(min(_quiet_moments(d), default=None))


def quiet_at(d: Draft) -> datetime:
    """When the last restarting group counts as healthy again, if none restarts until then."""
    return max(_quiet_moments(d), default=d.now)


def _quiet_moments(d: Draft) -> list[datetime]:
    """For each restarting group, the moment when fewer restarts are left within the window."""
    return [_moment(d, each[-CHURN_LIMIT]) for each in _rebuilt(d).values() if len(each) >= CHURN_LIMIT]


def _rebuilt(d: Draft) -> dict[tuple[str, str], list[RestartRecord]]:
    """The leaders of each group that recently replaced another one, oldest first."""
    first: set[tuple[str, str]] = set()
    found: dict[tuple[str, str], list[RestartRecord]] = {}
    for record in d.status.restarts:
        group = record.workload, record.group
        if group in first and _in_window(d, record):
            found.setdefault(group, []).append(record)
        first.add(group)
    return found


def _sentence(d: Draft, workload: str, group: str, count: int) -> str:
    why = words_of(d, group, workload)
    # The first ones are all on record; later ones are recorded only now and then.
    times = f"{count} times" if count == CHURN_LIMIT else f"at least {count} times"
    return f"group {group} of {workload} was rebuilt {times}" + (f": {why}" if why else "")


def words_of(d: Draft, group: str, workload: str) -> str:
    """The last recorded message of a failed container of the group; "" if there is none."""
    failed = last_failed(d, group, workload)
    return failed.message or "" if failed is not None else ""


def last_failed(d: Draft, group: str, workload: str) -> RestartRecord | None:
    """The last recorded leader whose group had a failed container."""
    filed = (each for each in reversed(d.status.restarts) if (each.workload, each.group) == (workload, group))
    return next((each for each in filed if each.message), None)


def _window(d: Draft) -> timedelta:
    """Ten minutes, or four times the longest startup so far: a group that takes an hour to start crashes no faster."""
    return timedelta(seconds=max(CHURN_WINDOW_SECONDS, 4 * (d.status.longest_startup_seconds or 0)))


def _moment(d: Draft, record: RestartRecord) -> datetime:
    return (record.at or d.now) + _window(d)


def _in_window(d: Draft, record: RestartRecord) -> bool:
    return record.at is not None and record.at > d.now - _window(d)
