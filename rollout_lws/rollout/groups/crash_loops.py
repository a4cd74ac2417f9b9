"""Groups that are rebuilt again and again: LWS deletes a group that crashes before its pods can show CrashLoopBackOff
for long, so it is the leaders' UIDs that tell a crash loop from a group that loads for long.

A group that was lost with its node, evicted or preempted has not failed; its leader is taken off the file, and what
replaces it is nobody's restart. Groups that the release itself deletes leave the file with their ordinal or revision.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from rollout_lws.api import RestartRecord
from rollout_lws.rollout.draft import Draft
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.pod_words import last_failure, lost_to_its_node, pods_of
from rollout_lws.workload.trouble import shortened

#: Rebuilt so often within the window, a group is broken.
CHURN_LIMIT = 3
CHURN_WINDOW_SECONDS = 600
#: Longest text that is filed of each, in characters.
WORDS_LIMIT = 300
#: Leaders on file at most, of all groups together; what is beyond is not watched for being rebuilt.
MOST_LEADERS = 50


def remember_leaders(d: Draft, facts: Facts | None, revision: str, wanted: int) -> Draft:
    """File each leader of ``facts`` that carries ``revision``, with what its containers said when they failed; of the
    groups below ``wanted``. One that is on its way out comes on no file: it may have been lost with another pod.
    """
    if facts is None:
        return d
    workload = facts.lws.metadata.name
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
    kept = [*_without_forgotten(d, known, {each.uid for each in standing}), *seen]
    # The oldest stay: with more groups than that, leaders would push each other out for ever.
    return d.set(restarts=tuple(kept[:MOST_LEADERS]))


def _failed(facts: Facts, group: Group) -> dict[str, str]:
    """What is filed of a group's last failure; nothing while nothing in it has failed."""
    failure = last_failure(facts, group)
    if failure is None:
        return {}
    return {"pod": failure.pod, "container": failure.container, "message": shortened(failure.text, WORDS_LIMIT)}


def _lacks_pods(facts: Facts, group: Group) -> bool:
    return group.size is None or len(pods_of(facts, group)) < group.size


def _is_below(record: RestartRecord, wanted: int) -> bool:
    return not record.group.isdigit() or int(record.group) < wanted


def _without_forgotten(d: Draft, records: list[RestartRecord], alive: set[str]) -> Iterable[RestartRecord]:
    """Leaders that stand or came lately, and of each group the last one before those: it is what they replaced."""
    later: set[str] = set()
    kept = []
    for record in reversed(records):
        lately = record.uid in alive or _in_window(d, record)
        if lately or record.group not in later:
            kept.append(record)
        if not lately:
            later.add(record.group)
    return reversed(kept)


def churning(d: Draft) -> dict[str, str]:
    """Groups of the file that keep being rebuilt, by index, each with a sentence; the most often rebuilt first."""
    found = {group: rebuilt for group, rebuilt in _rebuilt(d).items() if len(rebuilt) >= CHURN_LIMIT}
    often = sorted(found, key=lambda group: -len(found[group]))
    return {group: _sentence(d, group, len(found[group])) for group in often}


def await_quiet(d: Draft) -> Draft:
    """Wake when the first of the groups that keep being rebuilt counts as whole again."""
    return d.wake(min(_quiet_moments(d), default=None))


def quiet_at(d: Draft) -> datetime:
    """When the last group that keeps being rebuilt counts as whole again, provided that none is rebuilt until then."""
    return max(_quiet_moments(d), default=d.now)


def _quiet_moments(d: Draft) -> list[datetime]:
    """For each group that keeps being rebuilt, from when on there are fewer rebuilds within the window."""
    return [_moment(d, each[-CHURN_LIMIT]) for each in _rebuilt(d).values() if len(each) >= CHURN_LIMIT]


def _rebuilt(d: Draft) -> dict[str, list[RestartRecord]]:
    """The leaders of each group that lately took another one's place, oldest first."""
    first: set[str] = set()
    found: dict[str, list[RestartRecord]] = {}
    for record in d.status.restarts:
        if record.group in first and _in_window(d, record):
            found.setdefault(record.group, []).append(record)
        first.add(record.group)
    return found


def _sentence(d: Draft, group: str, count: int) -> str:
    workload = next(record.workload for record in d.status.restarts if record.group == group)
    why = words_of(d, group, workload)
    # Each of the first is on file; what comes later is filed now and then.
    times = f"{count} times" if count == CHURN_LIMIT else f"at least {count} times"
    return f"group {group} of {workload} was rebuilt {times}" + (f": {why}" if why else "")


def words_of(d: Draft, group: str, workload: str) -> str:
    """What was said last of a container of the group that failed, "" when nothing was."""
    failed = last_failed(d, group, workload)
    return failed.message or "" if failed is not None else ""


def last_failed(d: Draft, group: str, workload: str) -> RestartRecord | None:
    """The last leader on file of whose group a container failed."""
    filed = (each for each in reversed(d.status.restarts) if (each.workload, each.group) == (workload, group))
    return next((each for each in filed if each.message), None)


def _window(d: Draft) -> timedelta:
    """Ten minutes, or as long as four of the longest loads seen: a group that loads for an hour crashes no faster."""
    return timedelta(seconds=max(CHURN_WINDOW_SECONDS, 4 * (d.status.longest_startup_seconds or 0)))


def _moment(d: Draft, record: RestartRecord) -> datetime:
    return (record.at or d.now) + _window(d)


def _in_window(d: Draft, record: RestartRecord) -> bool:
    return record.at is not None and record.at > d.now - _window(d)
