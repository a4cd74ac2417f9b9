"""How long requests get that run on groups which leave: a fixed time, or until their engines say that nothing runs.

Routers get their grace period first, so that no further request comes; nothing that pods say before counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import assert_never

from rollout_lws.analysis.idling import Heard, Idle, Idling
from rollout_lws.api import TrafficRouting
from rollout_lws.api.words import DrainUntil
from rollout_lws.objects.workloads import Pod
from rollout_lws.rollout.decision import Measurement, Question
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.metrics_endpoints import from_source, metrics_of
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.weights import DEFAULT_DRAIN_SECONDS, DEFAULT_GRACE_SECONDS, settings
from rollout_lws.traffic import pinned_selectors
from rollout_lws.traffic.selectors import pinning_keys
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group

#: Pods that a message names.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Leaving:
    """Groups that are about to go: ``called`` in messages, of one LWS, whose ``facts`` are None if it is gone."""

    called: str
    facts: Facts | None
    groups: tuple[Group, ...]


def fixed(d: Draft, since: datetime, called: str) -> Routed:
    """Done when routers have had their grace period and requests ``drainSeconds`` since ``since``."""
    return _until(d, since + timedelta(seconds=sum(_patience(settings(d)))), called)


def drained(d: Draft, since: datetime, leaving: Leaving) -> tuple[Draft, Routed]:
    """Done when requests that ran on these groups at ``since`` have had what the Rollout's ``drain`` says."""
    asked = settings(d)
    if asked is None:
        return d, fixed(d, since, leaving.called)
    match asked.draining.until:
        case DrainUntil.TIME:
            return d, fixed(d, since, leaving.called)
        case DrainUntil.IDLE:
            return _when_idle(d, asked, since, leaving)
        case unknown:
            assert_never(unknown)


def _patience(asked: TrafficRouting | None) -> tuple[int, int]:
    """Grace period for routers and drain time for requests, in seconds."""
    if asked is None:
        return DEFAULT_GRACE_SECONDS, DEFAULT_DRAIN_SECONDS
    return asked.grace_period_seconds, asked.drain_seconds


def _until(d: Draft, until: datetime, called: str) -> Routed:
    if until <= d.now:
        return DONE
    return Routed(False, f"requests that run on {called} get until {until:%H:%M:%S} UTC", timed=True, until=until)


def _when_idle(d: Draft, asked: TrafficRouting, since: datetime, leaving: Leaving) -> tuple[Draft, Routed]:
    begins = since + timedelta(seconds=asked.grace_period_seconds)
    latest = begins + timedelta(seconds=asked.draining.longest)
    pods = {pod.metadata.uid: (group, pod) for group, pod in _pods(d, asked, leaving) if not pod.has_ended}
    if latest <= d.now or not pods or leaving.facts is None:
        return d, DONE
    if begins > d.now:
        return d, Routed(False, _ends(leaving.called, latest), timed=True, until=begins)
    source = d.o.rollout.spec.strategy.source
    question = Question("", begins, from_source(source, Idle(source.engine)))
    d = d.measure(Measurement(question, metrics_of(d, leaving.facts, (pod for _, pod in pods.values()))))
    answer = d.o.answers.get(question)
    heard = answer.pods if isinstance(answer, Idling) else {}
    judged = [_Judged.of(*of, heard.get(uid), asked.drain_seconds) for uid, of in pods.items()]
    waits = [each for each in judged if not each.done(d.now)]
    if not waits:
        return d, DONE
    until = min((each.until for each in waits if each.until is not None), default=latest)
    return d, Routed(False, _told(leaving.called, waits, latest), timed=True, until=min(until, latest))


@dataclass(frozen=True, slots=True)
class _Judged:
    """One pod: ``works`` if it was busy when it last answered; ``until`` is when it is waited for no longer although
    nothing is known of it, for the reason ``why``.
    """

    group: Group
    pod: Pod
    idle: bool = False
    works: bool = False
    until: datetime | None = None
    why: str = ""

    @classmethod
    def of(cls, group: Group, pod: Pod, heard: Heard | None, seconds: int) -> _Judged:
        if heard is None:
            return cls(group, pod)
        if heard.is_unknown:
            # Nothing runs any more in a pod that neither answers nor is ready. One that is ready may only be out of
            # reach, and one that answers, if not with figures, may work.
            until = datetime.fromtimestamp(heard.at, UTC) + timedelta(seconds=seconds)
            ended = heard.is_silent and not pod.is_ready
            return cls(group, pod, heard.is_idle or ended, until=until, why=heard.trouble)
        return cls(group, pod, heard.is_idle, works=not heard.idle and heard.answered)

    def done(self, now: datetime) -> bool:
        return self.idle or (self.until is not None and self.until <= now)

    def __str__(self) -> str:
        return f"group {self.group.index} (pod {self.pod.metadata.name})"


def _told(called: str, waits: list[_Judged], latest: datetime) -> str:
    """Names pods and no numbers: these change with every answer, and a status is not written for them."""
    working = [each for each in waits if each.works]
    silent = [each for each in waits if each.until is not None]
    told = [f"waits until {_named(working)} of {called} is idle, at the latest at {latest:%H:%M:%S} UTC"]
    if not working:
        told = [] if silent else [_ends(called, latest)]
    if silent:
        until = min(max(each.until for each in silent if each.until is not None), latest)
        told.append(
            f"requests that run on {_named(silent)} of {called} get until {until:%H:%M:%S} UTC, as what runs there is"
            f" not known: {silent[0].why}"
        )
    return "; ".join(told)


def _ends(called: str, latest: datetime) -> str:
    return f"requests that run on {called} get until they have ended, at the latest until {latest:%H:%M:%S} UTC"


def _named(pods: list[_Judged]) -> str:
    return ", ".join(map(str, pods[:_NAMED])) + (", ..." if len(pods) > _NAMED else "")


def _pods(d: Draft, asked: TrafficRouting, leaving: Leaving) -> Iterator[tuple[Group, Pod]]:
    """The pods of these groups that requests were sent to: the leaders, and workers where these are selected, too."""
    for group in leaving.groups:
        yield group, group.leader
    facts = d.o.routing
    if asked.target == "Leaders" or facts is None or leaving.facts is None:
        return
    own = {*pinning_keys(d.keys)}
    if asked.target == "AllPods" and d.labels.leader is not None:
        own.add(d.labels.leader[0])
    users = [each.users for each in pinned_selectors.leading(facts)]
    # Without what tells versions and LWSs apart, which a pin replaces.
    selectors = [{key: value for key, value in each.items() if key not in own} for each in users if each]
    by_place = {(group.index, group.revision): group for group in leaving.groups}
    for pod in leaving.facts.pods:
        at = by_place.get((pod.group_index, pod.revision))
        labels = pod.metadata.labels
        if at is not None and not pod.is_leader and any(each.items() <= labels.items() for each in selectors):
            yield at, pod
