"""Kueue and groups that the release does not wait for: evicted stable groups, and groups outside its quota."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from rollout_lws.api import Phase, UnadmittedGroup
from rollout_lws.capacity.stable_groups import named
from rollout_lws.objects.kueue import PODS_READY_TIMEOUT
from rollout_lws.rollout.draft import Draft, Persist
from rollout_lws.rollout.groups.health import NAMED_GROUPS, not_ready_group
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.rollout.state import InSteps
from rollout_lws.workload.facts import Listing
from rollout_lws.workload.groups import Group
from rollout_lws.workload.queueing import SETTLES_IN, left_out
from rollout_lws.workload.trouble import KUEUE_REASONS, Trouble, troubles

#: Limit of recorded leaders.
MOST_LEADERS = 50


def tell(d: Draft) -> Draft:
    """Reports each leader outside Kueue's quota once as an Event. During a release it also adds these, and stable
    groups that Kueue has evicted, to the verdict.
    """
    if d.o.stable is None or d.persist is Persist.NOT:
        return d
    outside, until = _left_out(d)
    d = d.wake(until)
    if d.stable.listing is Listing.DONE:
        d = _file(d, outside)
    if d.verdict is None or d.status.phase != Phase.PROGRESSING:
        return d
    words = [d.verdict.message.rstrip(".")]
    stable = _of_stable(d)
    if stable:
        more = f" (and {len(stable) - 1} more)" if len(stable) > 1 else ""
        words.append(f"stable: {stable[0].message}{more}")
    if outside:
        words.append(left_out_words(d.stable.name, outside))
    if len(words) > 1:
        return d.but(verdict=replace(d.verdict, message=". ".join(each for each in words if each)))
    return d


def _left_out(d: Draft) -> tuple[tuple[Group, ...], datetime | None]:
    """Groups outside Kueue's quota, and when the next may count as one: Kueue labels a leader before it removes its
    scheduling gate, but both may come late.
    """
    found, moments = [], []
    for group in left_out(d.stable):
        made = group.leader.metadata.creation_timestamp
        until = d.yet_to_come(made, SETTLES_IN.total_seconds()) if made is not None else None
        if until is None:
            found.append(group)
        else:
            moments.append(until)
    return tuple(found), min(moments, default=None)


def _file(d: Draft, outside: tuple[Group, ...]) -> Draft:
    known = {each.uid for each in d.status.unadmitted_groups}
    for group in outside[:MOST_LEADERS]:
        if group.uid not in known:
            told = left_out_words(d.stable.name, (group,))
            d = d.event(EventReason.NOT_ADMITTED_BY_KUEUE, told, warning=True, about=d.kind)
    records = tuple(UnadmittedGroup(group=each.index, uid=each.uid) for each in outside[:MOST_LEADERS])
    if records != d.status.unadmitted_groups:
        d = d.set(unadmitted_groups=records)
    return d


def left_out_words(lws: str, outside: tuple[Group, ...]) -> str:
    """What happens to groups outside Kueue's quota, and when that ends."""
    one = len(outside) == 1
    return (
        f"{outside_quota(lws, outside)}, and Kueue evicts {'it' if one else 'them'} after its own timeout"
        " (waitForPodsReady), ready or not: it lets leaders of the old version go while a version waits. That ends when"
        f" {'the group is' if one else 'they are'} next recreated after the release"
    )


def outside_quota(lws: str, outside: tuple[Group, ...]) -> str:
    """The start of a sentence: which groups run outside Kueue's quota."""
    one = len(outside) == 1
    return f"group{'' if one else 's'} {named(outside)} of {lws} run{'s' if one else ''} outside Kueue's quota"


def name_stable(d: Draft) -> Draft:
    """Adds stable groups that Kueue holds back to the status, after those that the release waits for."""
    found = map(not_ready_group, _of_stable(d))
    every = (*d.status.not_ready_groups, *found)[:NAMED_GROUPS]
    if every != d.status.not_ready_groups:
        d = d.set(not_ready_groups=every)
    return d


def _of_stable(d: Draft) -> list[Trouble]:
    """Stable groups that Kueue has evicted, or does not admit, while a release is in its steps."""
    stable = d.status.stable
    if d.o.stable is None or not d.stable.queued or stable is None or not isinstance(d.state, InSteps):
        return []
    # Evictions before the release do not matter.
    before = {each.metadata.uid: each.evictions(PODS_READY_TIMEOUT) for each in d.stable.queued}
    found = troubles(d.stable, stable.revision, d.now, d.minimum, before)
    return [each for each in found if each.reason in KUEUE_REASONS]
