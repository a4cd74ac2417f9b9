"""The series of Rollouts, computed from their statuses on each scrape, and their exposition in Prometheus' text format.
Nothing is stored between two scrapes, so a series ends with the object that it describes.

With thousands of Rollouts a scrape takes longer than a release may wait, so other tasks run between its chunks. The
client library writes whole families at a time, and takes eight times as long; it still writes all other metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from rollout_lws.api import ConditionType, Phase, SummaryState
from rollout_lws.metrics.glance import Counts, Glance, Status, glance
from rollout_lws.rollout.groups.health import COUNTED
from rollout_lws.rollout.reasons import Reason
from rollout_lws.targets.target import Target

#: Metric families with their HELP text. All are gauges, and have the labels namespace and rollout first.
HELP = {
    "rollout_lws_info": "1: how the Rollout releases what.",
    "rollout_lws_state": "1 for the phase, state and reason that the Rollout is in; there is no series for others.",
    "rollout_lws_state_since_timestamp_seconds": "Since when the state is this.",
    "rollout_lws_release_since_timestamp_seconds": "Since when a release is on; absent while none is.",
    "rollout_lws_last_release_timestamp_seconds": "When the last release ended, by how it ended.",
    "rollout_lws_step": "The step that is on, from 1; absent while no release is on.",
    "rollout_lws_steps": "Steps of the release that is on.",
    "rollout_lws_groups": "Groups of a version that are there or being made.",
    "rollout_lws_groups_ready": "Groups of a version that are ready.",
    "rollout_lws_groups_not_ready": "Groups that the status names as not ready, at most 10, by reason.",
    "rollout_lws_longest_startup_seconds": "Longest time a group has taken from its creation until it was ready.",
    "rollout_lws_accelerators": "Accelerators that the groups of a version hold; pods without a node hold none.",
    "rollout_lws_accelerators_waiting": "Accelerators of the new version while its release waits for a person.",
    "rollout_lws_weight_desired_ratio": "Share of requests that the new version is to have, 0 to 1.",
    "rollout_lws_weight_applied_ratio": "Weight of the new version that routers accepted last, 0 to 1.",
    "rollout_lws_paused_since_timestamp_seconds": "Since when it is paused by hand; absent while it is not.",
    "rollout_lws_pending_since_timestamp_seconds": "Since when a version waits under the hold and is not released.",
    "rollout_lws_gates": "1 for the result of each gate of the step that is on; Measuring while there is none.",
    "rollout_lws_gate_deadline_timestamp_seconds": "When a gate that is measured is to have a result.",
    "rollout_lws_deadline_timestamp_seconds": "When what is waited for now is late; absent while no deadline runs.",
}


#: Label ``result`` of a gate without one.
MEASURING = "Measuring"


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a family, with its labels apart from namespace and rollout."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


def samples(rollout: Glance, lws: Target | None, beside: Sequence[Target | None] = ()) -> Iterator[Sample]:
    """All samples of a Rollout whose LWS is ``lws``, None when there is none; ``beside`` are its companions in the
    release.
    """
    status, style = rollout.status, rollout.style
    yield Sample(
        "rollout_lws_info",
        1,
        (
            ("style", rollout.style_name),
            ("capacity", rollout.capacity),
            ("workload", rollout.spec.workload_ref.name),
            ("router", rollout.router),
        ),
    )
    if status.summary is None:
        return
    state = (("phase", status.phase), ("state", status.state), ("reason", status.reason))
    yield Sample("rollout_lws_state", 1, state)
    yield from _moment("rollout_lws_state_since_timestamp_seconds", status.summary.since)
    yield from _ended(status)
    yield from _counts(status)
    yield from _moment("rollout_lws_paused_since_timestamp_seconds", status.since(ConditionType.PAUSED))
    yield from _moment("rollout_lws_pending_since_timestamp_seconds", pending_since(rollout))
    if status.longest_startup_seconds:
        yield Sample("rollout_lws_longest_startup_seconds", status.longest_startup_seconds)
    if not status.releasing:
        return
    yield from _moment("rollout_lws_release_since_timestamp_seconds", status.since(ConditionType.PROGRESSING))
    yield Sample("rollout_lws_step", status.sub.current_step_index)
    if style is not None:
        yield Sample("rollout_lws_steps", len(style.steps))
    if status.traffic is not None:
        if status.traffic.desired is not None:
            yield Sample("rollout_lws_weight_desired_ratio", status.traffic.desired.weight / 100)
        if status.traffic.applied is not None:
            yield Sample("rollout_lws_weight_applied_ratio", status.traffic.applied.weight / 100)
    yield from _of_gates(rollout)
    yield from _moment("rollout_lws_deadline_timestamp_seconds", deadline(rollout, lws, beside))


def _of_gates(rollout: Glance) -> Iterator[Sample]:
    # Deadlines stand still while the release is paused, and end with its steps.
    timed = rollout.status.since(ConditionType.PAUSED) is None and rollout.status.finalising is None
    for gate, seen in rollout.gates:
        labels = (("gate", gate.name), ("kind", next(iter(gate.kinds), "")))
        yield Sample("rollout_lws_gates", 1, (*labels, ("result", seen.result or MEASURING)))
        if timed and seen.result is None and gate.deadline is not None:
            until = _after(seen.since, gate.deadline + (seen.halted or 0))
            yield from _moment("rollout_lws_gate_deadline_timestamp_seconds", until, labels)


def pending_since(rollout: Glance) -> datetime | None:
    """Since when a version waits without a release, refused or aborted; None when none does. Of a pair the inactive
    side has the version before, which waits for nothing; one that is applied to the active side waits there, and
    one that not all workloads of a side have waits for the others.
    """
    status = rollout.status
    if status.stable is None or status.summary is None or status.releasing:
        return None
    on_record = rollout.paired and status.phase != Phase.ABORTED
    known = {None, "", status.stable.template_hash, status.inactive_hash if on_record else None}
    waits = status.start_requested or status.reason in (Reason.ACTIVE_SIDE_EDITED, Reason.VERSION_INCOMPLETE)
    waits = waits or status.observed_template_hash not in known
    return status.summary.since if waits else None


def deadline(rollout: Glance, lws: Target | None, beside: Sequence[Target | None] = ()) -> datetime | None:
    """When the release's current wait exceeds its deadline; None without a deadline, or if it is that of a version of
    another LWS than ``lws``. Of companions, ``beside``, the longest counts.
    """
    status, strategy, step = rollout.status, rollout.spec.strategy, rollout.status.step
    if not status.releasing or step is None or step.started_at is None or status.summary is None:
        return None
    if status.state in (SummaryState.WAITING_FOR_QUOTA, SummaryState.WAITING_FOR_ACCELERATORS):
        return _after(status.summary.since, strategy.capacity_deadline_seconds)
    if status.state == SummaryState.AWAITING_APPROVAL:
        return _after(step.paused_at, _approval_timeout(rollout))
    if status.reason not in COUNTED:
        return None
    ending = status.finalising
    of_task = (ending.since, ending.best_ready_at) if ending is not None else ()
    since = max(moment for moment in (step.started_at, step.best_ready_at, *of_task) if moment is not None)
    if strategy.progress_deadline_seconds:
        return _after(since, strategy.progress_deadline_seconds)
    if lws is None or (rollout.paired and lws.metadata.name != rollout.released):
        return None
    every = (lws, *(each for each in beside if each is not None))
    return _after(since, max(each.version.progress_deadline_seconds for each in every))


def _approval_timeout(rollout: Glance) -> int | None:
    steps, index = rollout.style.steps if rollout.style else (), rollout.status.sub.current_step_index
    return steps[index - 1].pause.approval_timeout_seconds if 1 <= index <= len(steps) else None


def _after(since: datetime | None, seconds: float | None) -> datetime | None:
    if since is None or not seconds:
        return None
    try:
        return since + timedelta(seconds=seconds)
    except OverflowError:
        # A time out of range: the controller is about to fix it.
        return None


def _ended(status: Status) -> Iterator[Sample]:
    known = next((each for each in status.conditions if each.type == ConditionType.SUCCEEDED), None)
    if known is not None and known.last_transition_time is not None:
        moment = known.last_transition_time.timestamp()
        yield Sample("rollout_lws_last_release_timestamp_seconds", moment, (("outcome", known.reason),))


def _counts(status: Status) -> Iterator[Sample]:
    summary = status.summary
    held = summary.accelerators if summary is not None else None
    of_new = (summary.new_accelerators if summary is not None else None) or 0
    counts = status.groups or Counts()
    for role, count in (("stable", counts.stable), ("new", counts.new)):
        if count is None:
            continue
        labels = (("role", role),)
        yield Sample("rollout_lws_groups", count.total, labels)
        yield Sample("rollout_lws_groups_ready", count.ready, labels)
        if held is not None:
            yield Sample("rollout_lws_accelerators", of_new if role == "new" else held - of_new, labels)
        if role == "new" and of_new and status.waits_for_a_person:
            yield Sample("rollout_lws_accelerators_waiting", of_new)
    reasons = [group.reason for group in status.not_ready_groups]
    for reason in sorted({*reasons}):
        yield Sample("rollout_lws_groups_not_ready", reasons.count(reason), (("reason", reason),))


def _moment(name: str, moment: datetime | None, labels: tuple[tuple[str, str], ...] = ()) -> Iterator[Sample]:
    if moment is not None:
        yield Sample(name, moment.timestamp(), labels)


#: Finds a workload of the Rollout's kind and namespace by its name; None if there is none.
Find: TypeAlias = Callable[[str], Target | None]
#: Every Rollout's JSON, with a way to find its workloads.
Fleet: TypeAlias = Callable[[], Iterable[tuple[bytes, Find]]]

#: Rollouts per chunk: about 2 ms.
_PIECE = 100


def exposition(fleet: Fleet) -> Iterator[bytes]:
    """The text, in parts to be joined, a few milliseconds each; most are empty, as families must be contiguous."""
    families: dict[str, list[str]] = {name: [] for name in HELP}
    for number, (body, find) in enumerate(fleet()):
        if number % _PIECE == _PIECE - 1:
            yield b""
        _add(families, body, find)
    for name, lines in families.items():
        if lines:
            yield f"# HELP {name} {HELP[name]}\n# TYPE {name} gauge\n{''.join(lines)}".encode()


def _add(families: dict[str, list[str]], body: bytes, find: Find) -> None:
    rollout = glance(body)
    if rollout is None:
        return
    meta = rollout.metadata
    own = f'{{namespace="{meta.namespace}",rollout="{meta.name}"'
    try:
        told = list(samples(rollout, find(rollout.released), [find(name) for name in rollout.released_beside]))
    except ValueError:
        # Another writer has written an invalid status; the Rollout's reconcile fixes it.
        return
    for each in told:
        labels = "".join(f',{name}="{_escaped(value)}"' for name, value in each.labels)
        families[each.name].append(f"{each.name}{own}{labels}}} {each.value!r}\n")


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
