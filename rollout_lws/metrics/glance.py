"""Decodes only those members of a Rollout's JSON that metrics need: five times as fast as the whole model, since a
scrape reads every Rollout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec

from rollout_lws.api import (
    Capacity,
    ConditionType,
    Phase,
    PlannedGate,
    Promotion,
    ReleaseGate,
    StepGate,
    SummaryState,
)
from rollout_lws.api.rollout_spec import capacity_of
from rollout_lws.capacity import known
from rollout_lws.objects.meta import Struct
from rollout_lws.objects.resources import INFERENCE_POOLS, SERVICES
from rollout_lws.traffic.registry import named_in

#: Times are comparable only if both have a time zone.
Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class _Meta(Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Named(Struct, frozen=True):
    name: str = ""


class _Companion(Struct, frozen=True):
    name: str = ""
    counterpart: str = ""


class _Pause(Struct, frozen=True):
    approval_timeout_seconds: int | None = None


class _Step(Struct, frozen=True):
    pause: _Pause = _Pause()
    gates: tuple[dict[str, Any], ...] | None = ()


class _Style(Struct, frozen=True):
    steps: tuple[_Step, ...] = ()
    capacity: str | None = None
    enable_extra_workload_for_canary: bool | None = None
    gates: tuple[dict[str, Any], ...] | None = ()
    traffic_routings: tuple[dict[str, Any], ...] | None = ()
    promotion: str | None = None


class _Strategy(Struct, frozen=True):
    canary: _Style | None = None
    blue_green: _Style | None = None
    progress_deadline_seconds: int | None = None
    capacity_deadline_seconds: int | None = None


class _Spec(Struct, frozen=True):
    workload_ref: _Named = _Named()
    counterpart_ref: _Named | None = None
    companions: tuple[_Companion, ...] | None = ()
    strategy: _Strategy = _Strategy()


class _Condition(Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: Moment | None = None


class _SubStatus(Struct, frozen=True):
    current_step_index: int = 0
    replicas: int | None = None


class _Stable(Struct, frozen=True):
    template_hash: str = ""


class _StepRecord(Struct, frozen=True):
    started_at: Moment | None = None
    paused_at: Moment | None = None
    best_ready_at: Moment | None = None


class _Finalising(Struct, frozen=True):
    reason: str = ""
    since: Moment | None = None
    best_ready_at: Moment | None = None


class _Weight(Struct, frozen=True):
    weight: int = 0


class _Traffic(Struct, frozen=True):
    desired: _Weight | None = None
    applied: _Weight | None = None


class _Count(Struct, frozen=True):
    ready: int = 0
    total: int = 0


class Counts(Struct, frozen=True):
    stable: _Count | None = None
    new: _Count | None = None


class _Summary(Struct, frozen=True):
    state: str = ""
    accelerators: int | None = None
    new_accelerators: int | None = None
    since: Moment | None = None


class _NotReady(Struct, frozen=True):
    reason: str = ""


class GateSeen(Struct, frozen=True):
    """What the status says of a gate; ``result`` is None while it is measured."""

    name: str = ""
    result: str | None = None
    since: Moment | None = None
    halted: int | None = None


class Status(Struct, frozen=True):
    """The members of ``Rollout.status`` that metrics need; absent members stay absent."""

    phase: str = ""
    conditions: tuple[_Condition, ...] = ()
    canary_status: _SubStatus | None = None
    blue_green_status: _SubStatus | None = None
    stable: _Stable | None = None
    observed_template_hash: str | None = None
    active: str | None = None
    inactive_hash: str | None = None
    start_requested: bool | None = None
    capacity: str | None = None
    step: _StepRecord | None = None
    finalising: _Finalising | None = None
    longest_startup_seconds: int | None = None
    traffic: _Traffic | None = None
    groups: Counts | None = None
    summary: _Summary | None = None
    not_ready_groups: tuple[_NotReady, ...] = ()
    gates: tuple[GateSeen, ...] = ()
    release_gates: tuple[GateSeen, ...] = ()

    @property
    def releasing(self) -> bool:
        return self.phase == Phase.PROGRESSING

    @property
    def state(self) -> str:
        """The state as in ``kubectl get``, "" before the first reconcile."""
        return self.summary.state if self.summary else ""

    @property
    def reason(self) -> str:
        """Why: the reason of the one condition of Ready, Reconciling and Stalled that is True."""
        return next((each.reason for each in self.conditions if each.type in _VERDICTS and each.status == "True"), "")

    @property
    def sub(self) -> _SubStatus:
        return self.canary_status or self.blue_green_status or _SubStatus()

    @property
    def waits_for_a_person(self) -> bool:
        """Whether a release is in progress that continues only after a user has acted."""
        return self.releasing and self.state in FOR_A_PERSON

    def since(self, kind: ConditionType, status: str = "True") -> datetime | None:
        """Since when a condition has this status; None when it has another one, or is missing."""
        found = (each for each in self.conditions if each.type == kind and each.status == status)
        return next((each.last_transition_time for each in found), None)


def _seen(
    kind: type[PlannedGate], plan: Iterable[dict[str, Any]], known: Iterable[GateSeen]
) -> Iterator[tuple[PlannedGate, GateSeen]]:
    planned = {gate.get("name"): gate for gate in plan}
    for each in known:
        # What this version does not know of a gate takes no other series away.
        with suppress(ValueError):
            if each.name in planned:
                yield kind.model_validate(planned[each.name]), each


class Glance(Struct, frozen=True):
    """One Rollout."""

    metadata: _Meta
    spec: _Spec = _Spec()
    status: Status = Status()

    @property
    def style(self) -> _Style | None:
        return self.spec.strategy.canary or self.spec.strategy.blue_green

    @property
    def paired(self) -> bool:
        """Whether it releases by moving requests between two workloads."""
        return self.spec.counterpart_ref is not None

    @property
    def swaps(self) -> bool:
        """Whether a workload that a release makes takes the place of the user's, or has done so."""
        return not self.paired and (bool(self.status.active) or self._turns)

    @property
    def _turns(self) -> bool:
        """Whether the plan says so."""
        blue_green, canary = self.spec.strategy.blue_green, self.spec.strategy.canary
        swaps = blue_green is not None and blue_green.promotion == Promotion.SWAP
        return swaps or (canary is not None and canary.capacity == known.SHIFT.name)

    @property
    def released(self) -> str:
        """Name of the workload whose template has the version that is released: of a pair the inactive side."""
        first, other = self.spec.workload_ref, self.spec.counterpart_ref
        return other.name if other is not None and self.status.active == first.name else first.name

    @property
    def released_beside(self) -> tuple[str, ...]:
        """Names of the companions whose templates are of that version too."""
        turned = self.released == self.spec.workload_ref.name
        return tuple(each.name if turned else each.counterpart for each in self.spec.companions or ())

    @property
    def style_name(self) -> str:
        return "canary" if self.spec.strategy.canary else "blueGreen" if self.spec.strategy.blue_green else ""

    @property
    def capacity(self) -> str:
        """The capacity of the release in progress; at rest, that of the next one. Where the roles of workloads change
        Swap, or Shift, which the status may record as ExtraWorkload.
        """
        if self.swaps:
            asked = self.style.capacity if self.style is not None else None
            return known.SHIFT.name if asked == known.SHIFT.name else known.SWAP.name
        if self.status.capacity or self.style is None:
            return self.status.capacity or ""
        asked = Capacity(self.style.capacity) if self.style.capacity else None
        return capacity_of(asked, self.style.enable_extra_workload_for_canary).value

    @property
    def gates(self) -> Iterator[tuple[PlannedGate, GateSeen]]:
        """The gates that the release has begun, each with what the plan says of it; none that the plan has no more."""
        steps, index = self.style.steps if self.style else (), self.status.sub.current_step_index
        asked = steps[index - 1].gates or () if 1 <= index <= len(steps) else ()
        watched = (self.style.gates if self.style else None) or ()
        yield from _seen(StepGate, asked, self.status.gates)
        yield from _seen(ReleaseGate, watched, self.status.release_gates)

    @property
    def router(self) -> str:
        """The kind of the object that splits requests, "" when none is named."""
        asked = next(iter((self.style and self.style.traffic_routings) or ()), None)
        if asked is None:
            return ""
        names = named_in(asked)
        if names.stable_pool:
            return INFERENCE_POOLS.kind
        return next((ref.kind for ref in names.refs), SERVICES.kind)


_VERDICTS = (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)
#: States in which a release waits for a user.
FOR_A_PERSON = (SummaryState.AWAITING_APPROVAL, SummaryState.PAUSED, SummaryState.STALLED)

_glances = msgspec.json.Decoder(Glance)


def glance(body: bytes) -> Glance | None:
    """A Rollout from its JSON; None if it cannot be decoded, which its reconcile reports."""
    try:
        return _glances.decode(body)
    except (msgspec.DecodeError, ValueError):
        return None
