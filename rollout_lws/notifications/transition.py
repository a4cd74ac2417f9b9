"""Makes a notification of an Event and of the Rollout as it stands once the status that reports it was written."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from rollout_lws.api import Phase, Rollout, RolloutStatus
from rollout_lws.api.resources import rollouts
from rollout_lws.notifications.data import (
    Count,
    Data,
    Gate,
    Groups,
    Notification,
    Object,
    Origin,
    Step,
    Verdict,
    Version,
    Versions,
    Weight,
)
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.rollout.commands import ways_on
from rollout_lws.rollout.decision import GateEnd, ReleaseEvent
from rollout_lws.rollout.decision import Verdict as Decided
from rollout_lws.rollout.reasons import Ending, Task

#: Namespace of our ids, in the sense of RFC 9562.
_IDS = uuid.UUID("6f6b7c3e-2f0d-5c5e-9a55-3f1f4c1d9a10")


@dataclass(frozen=True, slots=True)
class Transition:
    """``event`` was published at ``at``, by a decision about the Rollout at ``resource_version`` that came to
    ``verdict``; ``rollout`` is as it stands since. ``about`` is the name of the object that the Event is on.
    """

    event: ReleaseEvent
    about: str
    rollout: Rollout
    resource_version: str
    verdict: Decided | None
    at: datetime
    group: str = DEFAULT_API_GROUP
    cluster: str = ""


def notification(told: Transition) -> Notification:
    """What is sent of a transition.

    The id is made of what identifies it. A status is written on condition that the Rollout still is at the resource
    version that was decided on, so that one replica alone comes from there to here; a second one that said the same
    from the same place would say it under the same id.
    """
    meta, event = told.rollout.metadata, told.event
    place = rollouts(told.group).path(meta.namespace, meta.name)
    parts = (meta.uid, told.resource_version, event.about, told.about, event.reason, event.note)
    return Notification(
        id=str(uuid.uuid5(_IDS, "\n".join(parts))),
        source=f"/clusters/{told.cluster}{place}" if told.cluster else place,
        data=_data(told),
    )


def _data(told: Transition) -> Data:
    event, rollout = told.event, told.rollout
    status, meta = rollout.status or RolloutStatus(), rollout.metadata
    ref = rollout.spec.workload_ref
    return Data(
        reason=event.reason,
        type="Warning" if event.type == "Warning" else "Normal",
        message=event.note,
        about=Object(kind=event.about, name=told.about),
        rollout=Origin(namespace=meta.namespace, name=meta.name, uid=meta.uid, cluster=told.cluster or None),
        workload=Object(kind=ref.kind, name=status.active or ref.name),
        time=told.at,
        phase=status.phase.value if status.phase is not None else None,
        state=(status.summary.state if status.summary is not None else "") or None,
        verdict=_verdict(told.verdict),
        step=_step(rollout, status),
        weight=_weight(rollout, status),
        versions=_versions(status),
        groups=_groups(status),
        gates=tuple(map(_gate, event.gates)),
        next=ways_on(meta, status, told.verdict.verbs) if told.verdict is not None else (),
    )


def _verdict(decided: Decided | None) -> Verdict | None:
    if decided is None:
        return None
    return Verdict(
        condition=decided.condition,
        reason=decided.reason.value,
        message=decided.message or None,
        needs_person=decided.needs_person,
    )


def _step(rollout: Rollout, status: RolloutStatus) -> Step | None:
    sub, style = status.sub, rollout.spec.strategy.style
    if sub is None or style is None or sub.current_step_index < 1:
        return None
    return Step(index=sub.current_step_index, of=len(style.steps), state=sub.current_step_state)


def _weight(rollout: Rollout, status: RolloutStatus) -> Weight | None:
    """The share of the new version; None where the weight is not that: while a promotion renews the workload's own
    groups, which get requests too, and once it has promoted.
    """
    traffic, ending = status.traffic, status.finalising
    if traffic is None or traffic.desired is None:
        return None
    applied = traffic.applied.weight if traffic.applied else None
    if ending is not None and rollout.spec.counterpart_ref is None:
        renews = ending.task in (Task.PROMOTE, Task.ROLL_BACK_PROMOTION) and applied != 100
        if renews or (ending.task, ending.reason) == (Task.CLEAN_UP, Ending.SUCCESS):
            return None
    return Weight(desired=traffic.desired.weight, applied=applied)


def _versions(status: RolloutStatus) -> Versions:
    stable, judged, sub = status.stable, status.observed_template_hash, status.sub
    new = None
    if status.phase is Phase.PROGRESSING and judged is not None:
        revision = sub.new_revision if sub is not None else ""
        new = Version(template_hash=judged, revision=revision or None, release=status.observed_rollout_id)
    kept = Version(template_hash=stable.template_hash, revision=stable.revision or None) if stable is not None else None
    return Versions(stable=kept, new=new)


def _groups(status: RolloutStatus) -> Groups:
    counts = status.groups
    if counts is None:
        return Groups()
    stable, new = (Count(ready=each.ready, total=each.total) if each else None for each in (counts.stable, counts.new))
    return Groups(stable=stable, new=new)


def _gate(end: GateEnd) -> Gate:
    record = end.record
    return Gate(
        name=record.name,
        kind=end.kind,
        result=end.result.value,
        seconds=end.seconds,
        message=record.message,
        value=record.value,
        stable_value=record.stable_value,
        limit=record.limit,
        samples=record.samples,
        stable_samples=record.stable_samples,
        share=record.share,
        share_from=record.share_from,
        share_to=record.share_to,
        share_limit=record.share_limit,
        query=record.query,
        job=record.job,
    )
