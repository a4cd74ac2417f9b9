"""Whether a release is where a pipeline wants it: a pure judgement, bound to the version pinned at the start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollout_lws.cli.releases import version_hash
from rollout_lws.cli.rollouts import condition, message, summary

Object = dict[str, Any]
#: States of the summary in which nothing is under way.
_ENDED = ("Healthy", "Aborted", "Disabled")
#: Step states from which on a step's groups are ready and its traffic is routed.
_ARRIVED = ("StepMetricsAnalysis", "StepPaused", "StepReady", "Completed")
#: What the summary says of a release whose pods find no room.
_NO_ROOM = ("WaitingForQuota", "WaitingForAccelerators")


@dataclass(frozen=True, slots=True)
class Goal:
    """What is waited for: healthy, paused, aborted, or ``step`` (with its 1-based number) made and routed."""

    word: str
    step: int = 0

    @classmethod
    def parse(cls, text: str) -> Goal:
        word, equals, number = text.partition("=")
        if word == "step" and number.isdigit() and int(number) > 0:
            return cls(word, int(number))
        if equals or word not in ("healthy", "paused", "aborted"):
            raise ValueError(f"{text!r} is nothing to wait for: use healthy, paused, step=N or aborted")
        return cls(word)

    def __str__(self) -> str:
        return f"at step {self.step}" if self.step else self.word


@dataclass(frozen=True, slots=True)
class Pin:
    """The version that a gate is about: generations of Rollout and LWS, hash of the LWS's templates, at its start.

    ``workload_uids`` are that of the LWS and that of the one in care then, () where nobody knows.
    """

    rollout_generation: int
    workload_generation: int
    template_hash: str
    workload_uids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a wait ended: exit ``code``, a machine-stable ``word``, and a sentence for a person."""

    code: int
    word: str
    text: str


def pin(rollout: Object, workload: Object) -> Pin:
    uid = str(workload["metadata"].get("uid") or "")
    return Pin(
        rollout["metadata"].get("generation", 0),
        workload["metadata"].get("generation", 0),
        version_hash(workload),
        (uid, _uid_in_care(rollout)) if uid else (),
    )


def _uid_in_care(rollout: Object) -> str:
    """UID of the LWS that the status is about, "" before any."""
    return str(((rollout.get("status") or {}).get("stable") or {}).get("workloadUID") or "")


def is_made_anew(rollout: Object, pinned: Pin) -> bool:
    """Whether the status is about an LWS that took the place of the pinned one; its generations begin again."""
    uid = _uid_in_care(rollout)
    return bool(uid and pinned.workload_uids) and uid not in pinned.workload_uids


def not_seen(rollout: Object, pinned: Pin) -> bool:
    """Whether the status is still that of what stood before the pinned version was applied."""
    status = rollout.get("status") or {}
    return (
        int(status.get("observedGeneration") or 0) < pinned.rollout_generation
        or int(status.get("observedWorkloadGeneration") or 0) < pinned.workload_generation
    )


def has_ended(rollout: Object, pinned: Pin | None) -> bool:
    """Whether nothing is under way any more, by a controller that has seen the pinned version; None: there is none."""
    if summary(rollout)["state"] not in _ENDED:
        return False
    return pinned is None or is_made_anew(rollout, pinned) or not not_seen(rollout, pinned)


def is_stranger(rollout: Object, pinned: Pin, today: Mapping[str, str]) -> bool:
    """Whether only the history can tell if the version that the status is about is the pinned one.

    A controller of another release may hash a version differently than we do. While the LWS is the one that was pinned
    that does not matter; after an edit of it ``today`` has our hash of a version by the controller's.
    """
    status = rollout.get("status") or {}
    seen = status.get("observedTemplateHash")
    return bool(seen) and seen not in (pinned.template_hash, *today) and not _of_pinned_spec(status, pinned)


def _of_pinned_spec(status: Object, pinned: Pin) -> bool:
    return int(status.get("observedWorkloadGeneration") or 0) == pinned.workload_generation


def id_of(rollout: Object) -> str:
    """The id of the release that the status is about, "" before there is any."""
    return str((rollout.get("status") or {}).get("observedRolloutID") or "")


def id_on(workload: Object, group: str) -> str:
    """The id that an LWS gives to its release, "" when it leaves that to its revision."""
    meta, key = workload["metadata"], f"{group}/rollout-id"
    return str((meta.get("labels") or {}).get(key) or (meta.get("annotations") or {}).get(key) or "")


def judge_id(rollout: Object, workload: Object, group: str, wanted: str, *, known: bool) -> Verdict | None:
    """Superseded when another id has taken the place of ``wanted``; None while it is still on, or not yet applied.

    ``known`` is whether LWS or status had it at an earlier look. A pipeline that hands its manifests to Argo CD or Flux
    may look before they are applied: then the LWS carries the id of the release before, and that ends nothing.
    """
    carried, told = id_on(workload, group), id_of(rollout)
    replaced = carried not in ("", wanted) if told == wanted else known and carried != wanted
    if not replaced:
        return None
    name = rollout["metadata"]["name"]
    return Verdict(6, "superseded", f"rollout/{name}: release {carried or told} took the place of {wanted}")


def judge(
    rollout: Object, goal: Goal, pinned: Pin, today: Mapping[str, str], *, fail_on_capacity: bool = False
) -> Verdict | None:
    """None while there is nothing to say: the controller has not seen the pinned version, or it is on its way."""
    name, status = rollout["metadata"]["name"], rollout.get("status") or {}
    if is_made_anew(rollout, pinned):
        lws = rollout["spec"]["workloadRef"]["name"]
        return Verdict(6, "superseded", f"rollout/{name}: leaderworkerset/{lws} was deleted and made anew")
    if not_seen(rollout, pinned):
        return None
    seen = status.get("observedTemplateHash")
    if seen and not _of_pinned_spec(status, pinned) and today.get(seen, seen) != pinned.template_hash:
        return Verdict(6, "superseded", f"rollout/{name}: a newer version replaced the one that was waited for")
    found = _ended(name, rollout, goal) or _under_way(name, rollout, goal)
    if found is None and fail_on_capacity and goal.word != "aborted":
        return _without_room(name, rollout)
    return found


def _ended(name: str, rollout: Object, goal: Goal) -> Verdict | None:
    """The end of the release of the pinned version, which is the one that the status is about."""
    status = rollout["status"]
    phase, stable = status.get("phase"), (status.get("stable") or {}).get("templateHash")
    if phase == "Healthy" and stable and stable == status.get("observedTemplateHash"):
        if goal.word in ("healthy", "step"):
            return Verdict(0, "healthy", f"rollout/{name} is healthy")
        return Verdict(3, "healthy", f"rollout/{name} is healthy with this version, so it will not be {goal.word}")
    if phase == "Aborted":
        code = 0 if goal.word == "aborted" else 3
        text = f"rollout/{name} was aborted: apply another version, or start this one again: `rollout-lws retry {name}`"
        return Verdict(code, "aborted", text)
    return None


def _under_way(name: str, rollout: Object, goal: Goal) -> Verdict | None:
    status = rollout["status"]
    step, state = int(status.get("currentStepIndex") or 0), status.get("currentStepState")
    progressing = status.get("phase") == "Progressing"
    if goal.word == "paused" and progressing and state == "StepPaused":
        return Verdict(0, "paused", f"rollout/{name} waits at step {step}")
    if goal.step and progressing and (step > goal.step or (step == goal.step and state in _ARRIVED)):
        return Verdict(0, "step", f"rollout/{name} is at step {step}")
    stalled = condition(rollout, "Stalled")
    if stalled is not None and goal.word != "aborted":
        why = stalled.get("message") or message(rollout) or stalled.get("reason")
        return Verdict(3, "stalled", f"rollout/{name} is stalled: {why}")
    # Right after `promote` the approval is asked for and not yet acted on.
    awaiting = (status.get("summary") or {}).get("state") == "AwaitingApproval" and not status.get("requestedAction")
    if goal.word == "healthy" and progressing and awaiting:
        return Verdict(5, "approval", f"rollout/{name} waits for approval of step {step}: `rollout-lws promote {name}`")
    return None


def _without_room(name: str, rollout: Object) -> Verdict | None:
    state = summary(rollout)["state"]
    if state not in _NO_ROOM:
        return None
    why = message(rollout) or state
    return Verdict(7, "capacity", f"rollout/{name} waits for capacity: {why}")
