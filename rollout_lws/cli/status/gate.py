"""Whether a release has reached a pipeline's goal: pure functions, bound to the version pinned at the start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.releases import fetch_companions, side_hash
from rollout_lws.cli.rollouts import condition, fetch_workload, message, summary
from rollout_lws.cli.sides import (
    called,
    edited,
    have_turned,
    is_incomplete,
    is_settled,
    serving_hash,
    sides_of,
    standing_in,
)
from rollout_lws.errors import UsageError
from rollout_lws.targets.version import hashes_of

#: Summary states in which no release is in progress.
_ENDED = ("Healthy", "Aborted", "Disabled")
#: Step states in which the step's groups are ready and its traffic is routed.
_ARRIVED = ("StepMetricsAnalysis", "StepPaused", "StepReady", "Completed")
#: Summary states of a release whose pods lack capacity.
_NO_ROOM = ("WaitingForQuota", "WaitingForAccelerators")
#: Phases of a Rollout that manages no workload.
_NOT_MANAGED = ("Initial", "Disabled")
#: Reasons of a Rollout whose workloads are not all there, as when they are applied after it.
_TO_COME = ("WorkloadNotFound", "CounterpartMissing", "CompanionMissing")
_NONE: Mapping[str, Object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Goal:
    """The awaited state: healthy, paused, aborted, or ``step`` (1-based) with its groups ready and traffic routed."""

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
    """The version that a gate waits for: generations of Rollout and LWS, and hash of the LWS's templates, at its start.

    ``workload_uids`` are those of the LWS and of the LWS managed at that time, () when unknown. ``workload`` is the
    LWS's name. ``active_hash`` is that of the active side of a pair whose releases scale its workloads, "" of others.
    ``ids`` are the rollout-ids of the LWS and of its companions; () without companions, with whose the hash is joined.
    ``judged`` is the hash of the version that the controller had judged last.
    """

    rollout_generation: int
    workload_generation: int
    template_hash: str
    workload_uids: tuple[str, ...] = ()
    workload: str = ""
    active_hash: str = ""
    ids: tuple[str, ...] = ()
    judged: str = ""

    @property
    def is_joint(self) -> bool:
        """Whether the version is one of several workloads."""
        return len(hashes_of(self.template_hash)) > 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a wait ended: exit ``code``, a machine-stable ``word``, and the ``text`` of a message for the user. With
    ``warns`` the text is a warning although the code is 0.
    """

    code: int
    word: str
    text: str
    warns: bool = False


def pin(
    rollout: Object, workload: Object, active: Object | None = None, companions: Mapping[str, Object] = _NONE
) -> Pin:
    """The pin of a gate that waits for the version of ``workload``. ``active``: the active side of a pair whose
    releases scale its workloads. ``companions``: those of a pair that exist, by name.
    """
    uid, name = str(workload["metadata"].get("uid") or ""), str(workload["metadata"].get("name") or "")
    sides, group = sides_of(rollout), str(rollout.get("apiVersion") or "").partition("/")[0]
    beside = sides.members(name)[1:] if sides is not None else ()
    members = [workload, *(companions[each] for each in beside if each in companions)]
    return Pin(
        rollout["metadata"].get("generation", 0),
        workload["metadata"].get("generation", 0),
        side_hash(rollout, workload, companions),
        (uid, _uid_in_care(rollout)) if uid else (),
        name,
        side_hash(rollout, active, companions) if active is not None else "",
        tuple(id_on(each, group) for each in members) if beside else (),
        _judged(rollout),
    )


def pinned_now(transport: Transport, rollout: Object) -> Pin | None:
    """What the controller must have observed before an end counts; None without an LWS."""
    try:
        return pin(rollout, fetch_workload(transport, rollout), companions=fetch_companions(transport, rollout))
    except UsageError:
        return None


def _uid_in_care(rollout: Object) -> str:
    """UID of the LWS that the status reports on, "" before there is one."""
    return str(((rollout.get("status") or {}).get("stable") or {}).get("workloadUID") or "")


def is_recreated(rollout: Object, pinned: Pin) -> bool:
    """Whether the LWS of the status is a recreation of the pinned one, whose generations start over."""
    uid = _uid_in_care(rollout)
    # That of an LWS which a release has made tells nothing of the user's.
    return bool(uid and pinned.workload_uids) and uid not in pinned.workload_uids and not standing_in(rollout)


def not_seen(rollout: Object, pinned: Pin) -> bool:
    """Whether the controller has not yet observed the pinned version."""
    status = rollout.get("status") or {}
    if int(status.get("observedGeneration") or 0) < pinned.rollout_generation:
        return True
    sides = sides_of(rollout)
    if sides is not None and (not sides.known or sides.active == pinned.workload):
        # What the status has observed is the other side, or neither yet.
        return not sides.known
    if int(status.get("observedWorkloadGeneration") or 0) < pinned.workload_generation:
        return True
    # That generation stays as it is when the version of a companion changes.
    return pinned.is_joint and pinned.template_hash not in _told(status)


def _judged(rollout: Object) -> str:
    return str((rollout.get("status") or {}).get("observedTemplateHash") or "")


def _told(status: Object) -> set[str | None]:
    """Hashes of all versions that the status speaks of."""
    records = (status.get(each) or {} for each in ("stable", "aborted", "arriving"))
    hashes = (each.get("templateHash") for each in records)
    return {status.get("observedTemplateHash"), status.get("inactiveHash"), *hashes}


def lacks_workloads(rollout: Object, pinned: Pin) -> bool:
    """Whether the release of the pinned version waits for a person, since other workloads of its side do not have it:
    as of a controller that has seen that very version.
    """
    status = rollout.get("status") or {}
    if not is_incomplete(rollout) or not pinned.is_joint:
        return False
    if (status.get("arriving") or {}).get("templateHash") != pinned.template_hash:
        return False
    # One and the same rollout-id starts it, as soon as that is seen, unless it is the one from before.
    before = (status.get("complete") or {}).get("releaseID")
    return len({*pinned.ids}) != 1 or not {"", before}.isdisjoint(pinned.ids)


def has_ended(rollout: Object, pinned: Pin | None) -> bool:
    """Whether no release is in progress, as of a controller that has observed the pinned version (None: of any)."""
    if summary(rollout)["state"] not in _ENDED:
        return False
    later = pinned is not None and pinned.is_joint and _judged(rollout) != pinned.judged
    return pinned is None or later or is_recreated(rollout, pinned) or not not_seen(rollout, pinned)


def has_taken_over(rollout: Object, pinned: Pin) -> bool:
    """Whether the pinned workload of a pair is the active side, so that its release is over but for the clean-up."""
    sides = sides_of(rollout)
    return sides is not None and sides.known and sides.active == pinned.workload


def waits_on_active(rollout: Object, pinned: Pin) -> bool:
    """Whether the template of a pair's active side had a version that does not serve: it is not released there."""
    return pinned.active_hash not in ("", serving_hash(rollout))


def _of_pinned_spec(status: Object, pinned: Pin) -> bool:
    return int(status.get("observedWorkloadGeneration") or 0) == pinned.workload_generation


def id_of(rollout: Object) -> str:
    """Id of the release that the status reports on, "" before there is one."""
    return str((rollout.get("status") or {}).get("observedRolloutID") or "")


def id_on(workload: Object, group: str) -> str:
    """The rollout-id on an LWS, "" when the LWS has none and its revision names the release."""
    meta, key = workload["metadata"], f"{group}/rollout-id"
    return str((meta.get("labels") or {}).get(key) or (meta.get("annotations") or {}).get(key) or "")


def judge_id(rollout: Object, workload: Object, group: str, wanted: str, *, known: bool) -> Verdict | None:
    """Superseded when another id has replaced ``wanted``; None while ``wanted`` is in progress or not yet applied.

    ``known`` is whether the LWS or the status had it at an earlier look. A pipeline that hands its manifests to Argo CD
    or Flux may look before they are applied: the LWS still has the previous release's id, which ends nothing.
    """
    carried, told = id_on(workload, group), id_of(rollout)
    replaced = carried not in ("", wanted) if told == wanted else known and carried != wanted
    if not replaced:
        return None
    name = rollout["metadata"]["name"]
    return Verdict(6, "superseded", f"rollout/{name}: release {carried or told} took the place of {wanted}")


def judge(rollout: Object, goal: Goal, pinned: Pin, *, fail_on_capacity: bool = False) -> Verdict | None:
    """None to keep waiting: the controller has not observed the pinned version, or its release is in progress."""
    name, status = rollout["metadata"]["name"], rollout.get("status") or {}
    if is_recreated(rollout, pinned):
        lws = pinned.workload or edited(rollout)
        return Verdict(6, "superseded", f"rollout/{name}: {called(rollout, lws)} was deleted and recreated")
    if has_taken_over(rollout, pinned):
        return _undecided(name, rollout) if not_seen(rollout, pinned) else _taken_over(name, rollout, goal, pinned)
    # Until its clean-up is over the status is about the release that has changed the roles.
    if have_turned(rollout) and sides_of(rollout) is not None:
        return None
    if lacks_workloads(rollout, pinned):
        return _incomplete(name, rollout, goal)
    if not_seen(rollout, pinned):
        return _undecided(name, rollout) or refused(rollout, goal)
    seen = status.get("observedTemplateHash")
    if seen and not _of_pinned_spec(status, pinned) and seen != pinned.template_hash:
        return replaced(rollout)
    ended = _ended(name, rollout, goal) if sides_of(rollout) is None else _settled(name, rollout, goal, pinned)
    found = ended or _under_way(name, rollout, goal)
    if found is None and fail_on_capacity and goal.word != "aborted":
        return _without_room(name, rollout)
    return found


def _ended(name: str, rollout: Object, goal: Goal) -> Verdict | None:
    """The verdict when the release of the pinned version, which the status reports on, has ended."""
    status = rollout["status"]
    phase, stable = status.get("phase"), (status.get("stable") or {}).get("templateHash")
    if phase == "Healthy" and stable and stable == status.get("observedTemplateHash"):
        # What serves has the version, and is to have its requests brought to the user's LWS.
        return _healthy(name, goal) if not status.get("startRequested") else None
    return _aborted(name, goal) if phase == "Aborted" else None


def _aborted(name: str, goal: Goal) -> Verdict:
    code = 0 if goal.word == "aborted" else 3
    text = f"rollout/{name} was aborted: apply another version, or start this one again: `rollout-lws retry {name}`"
    return Verdict(code, "aborted", text)


def _undecided(name: str, rollout: Object) -> Verdict | None:
    """The verdict on a pair whose sides the controller cannot tell apart; None while it has not looked."""
    sides, stalled = sides_of(rollout), condition(rollout, "Stalled")
    if sides is None or sides.known or stalled is None:
        return None
    return Verdict(3, "stalled", f"rollout/{name} is stalled: {stalled.get('message') or message(rollout)}")


def refused(rollout: Object, goal: Goal) -> Verdict | None:
    """The verdict on a Rollout that releases nothing as it is, so that no version is ever observed; None where all that
    is lacking may be applied with the version itself.
    """
    stalled = condition(rollout, "Stalled")
    if stalled is None or stalled.get("reason") in _TO_COME or goal.word == "aborted":
        return None
    if (rollout.get("status") or {}).get("phase") not in _NOT_MANAGED:
        return None
    why = stalled.get("message") or message(rollout)
    return Verdict(3, "stalled", f"rollout/{rollout['metadata']['name']} is stalled: {why}")


def _taken_over(name: str, rollout: Object, goal: Goal, pinned: Pin) -> Verdict | None:
    """The verdict once the pinned workload of a pair has all requests; None until its release is cleaned up."""
    status = rollout["status"]
    if serving_hash(rollout) != pinned.template_hash:
        if pinned.active_hash == pinned.template_hash:
            return _under_way(name, rollout, goal)
        return replaced(rollout)
    if status.get("phase") == "Progressing" and status.get("finalising"):
        return None
    return _healthy(name, goal)


def _settled(name: str, rollout: Object, goal: Goal, pinned: Pin) -> Verdict | None:
    """The verdict on a pair at rest, whose inactive side may have a version that is not to be released."""
    sides = sides_of(rollout)
    if rollout["status"].get("phase") == "Aborted":
        return _aborted(name, goal)
    if sides is None or not is_settled(rollout) or waits_on_active(rollout, pinned):
        return None
    found = _healthy(name, goal)
    if found.code or pinned.template_hash == serving_hash(rollout):
        return found
    text = (
        f"rollout/{name} is healthy and {sides.active} has all requests: the version of {sides.inactive} is released"
        f" by `rollout-lws start {name}` only"
    )
    return Verdict(0, found.word, text, warns=True)


def _healthy(name: str, goal: Goal) -> Verdict:
    if goal.word in ("healthy", "step"):
        return Verdict(0, "healthy", f"rollout/{name} is healthy")
    return Verdict(3, "healthy", f"rollout/{name} is healthy with this version, so it will not be {goal.word}")


def _incomplete(name: str, rollout: Object, goal: Goal) -> Verdict | None:
    if goal.word == "aborted":
        return None
    return Verdict(5, "incomplete", f"rollout/{name} waits for the rest of a version: {message(rollout)}")


def replaced(rollout: Object) -> Verdict:
    """The verdict when a version that was not released yet is not in the templates any more."""
    name = rollout["metadata"]["name"]
    return Verdict(6, "superseded", f"rollout/{name}: a newer version replaced the one that was waited for")


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
    # Right after `promote`, the approval is requested and not yet carried out.
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
