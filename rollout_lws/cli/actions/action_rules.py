"""Which actions a release allows now: pure functions of a Rollout that return an ``Ask`` or ``Already``.

The controller checks again, bound to the release and step that were read here; this check saves a round trip and gives
the reason at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rollout_lws.cli.rollouts import message, style, summary
from rollout_lws.cli.sides import called, has_given_up_groups, named, serving_hash, sides_of, standing_in, turning
from rollout_lws.errors import UsageError

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to the controller; ``done`` is the message once it has been carried out."""

    type: str
    done: str
    fields: dict[str, Any] = field(default_factory=dict)
    #: Whether the request is only valid for the step that was read.
    of_step: bool = False
    #: Whether it may replace a pending request that waits for groups.
    replaces: bool = False
    #: What the request waits for when the controller does not carry it out at once.
    until: str = ""


@dataclass(frozen=True, slots=True)
class Already:
    """No request needed: the release is already in the wanted state."""

    told: str


#: Judges a Rollout; UsageError when the action makes no sense now.
Judge = Callable[[Object], Ask | Already]


def approve(rollout: Object) -> Ask | Already:
    """Approve the step that is awaiting approval."""
    name, state = _name(rollout), _status(rollout).get("currentStepState")
    _in_steps(rollout, "nothing waits for approval")
    if state == "StepReady":
        return Already(f"{name} step {step_words(rollout)} is approved already{_stays_paused(rollout)}")
    if state == "StepMetricsAnalysis":
        told = f"{name} step {step_words(rollout)} approved: it ends when its gates have passed{_stays_paused(rollout)}"
        return Ask("Approve", told, of_step=True)
    if state != "StepPaused":
        now = summary(rollout)["state"] or state or "starting"
        way_out = f"`rollout-lws status {_bare(rollout)} --for paused` waits for it"
        if now == "Stalled":
            way_out = message(rollout)
        raise UsageError(f"{name} step {step_words(rollout)} is not waiting for approval (now {now}): {way_out}")
    return Ask("Approve", f"{name} step {step_words(rollout)} approved{_stays_paused(rollout)}", of_step=True)


def jump_to(step: int) -> Judge:
    """Jump to a step of the plan, forward or back."""

    def judge(rollout: Object) -> Ask | Already:
        count = len(style(rollout).get("steps") or ())
        if not 1 <= step <= count:
            raise UsageError(f"{_name(rollout)} has steps 1 to {count}: there is no step {step}")
        _in_steps(rollout, "there is no step to go to")
        if step == step_of(rollout):
            return Already(f"{_name(rollout)} is at step {step} already")
        until = f"it goes there as soon as the groups of step {step_words(rollout)} are ready"
        told = f"{_name(rollout)} goes to step {step}/{count}"
        return Ask("Jump", told, {"toStep": step}, of_step=True, replaces=True, until=until)

    return judge


def promote_full(rollout: Object) -> Ask | Already:
    """Skip the remaining steps and promote once the current step's groups are ready."""
    name = _name(rollout)
    ending = _status(rollout).get("finalising") or {}
    if (ending.get("reason"), ending.get("task")) == ("Success", "Promote"):
        return Already(f"{name} is being promoted already")
    _in_steps(rollout, "there is nothing to promote")
    until = f"it is promoted as soon as the groups of step {step_words(rollout)} are ready"
    return Ask("PromoteFull", f"{name} is promoted, all remaining steps are skipped", until=until)


def abort(*, force: bool = False) -> Judge:
    """Abort and roll back; ``force`` does not wait for routers."""

    def judge(rollout: Object) -> Ask | Already:
        name, status = _name(rollout), _status(rollout)
        if phase_of(rollout) == "Aborted":
            return Already(f"{name} is aborted already")
        if phase_of(rollout) != "Progressing" and status.get("startRequested"):
            return Ask("Abort", f"{name} is not started", {}, replaces=True)
        if phase_of(rollout) != "Progressing":
            raise UsageError(f"{name} is {_phase_words(rollout)}: nothing is being released")
        ending = status.get("finalising") or {}
        if (ending.get("reason"), ending.get("task")) == ("Success", "CleanUp"):
            verb = "undo" if sides_of(rollout) is None else "start"
            raise UsageError(
                f"{name} is already promoted: `rollout-lws {verb} {_bare(rollout)}` releases the old version"
            )
        if ending.get("reason") == "Aborted" and not force:
            return Already(f"{name} is going back already")
        waits = ", without waiting for routers" if force else ""
        told = f"{name} aborted at step {step_words(rollout)}; going back to stable{waits}{_loads_again(rollout)}"
        return Ask("Abort", told, {"force": True} if force else {}, replaces=True)

    return judge


def _loads_again(rollout: Object) -> str:
    """What the way back loads where groups were given up; "" for nothing."""
    sides = turning(rollout)
    if sides is None or not has_given_up_groups(rollout):
        return ""
    return f"; {called(rollout, sides.active)} loads the groups again that it has given up"


#: Results of gates that a retry measures again.
_MEASURED_AGAIN = ("Failed", "Inconclusive", "Error")
#: ``workload.trouble.EXHAUSTED``, whose module takes long to load.
_EXHAUSTED = "RestartsExhausted"


def retry(rollout: Object) -> Ask | Already:
    """Release the aborted version again; within the steps, restart deadlines and failure counts."""
    name, status = _name(rollout), _status(rollout)
    if status.get("aborted") and phase_of(rollout) != "Progressing":
        return Ask("Retry", f"{name} is released again from its first step")
    if (status.get("finalising") or {}).get("reason") == "Aborted":
        return Ask("Retry", f"{name} is released again", until="it begins when the way back is over")
    if _promotes(rollout) and "Failed" in _gates_of_release(rollout).values():
        return Ask("Retry", f"{name} goes on with its promotion, and its gates are measured again")
    if _promotes(rollout) and any(each.get("reason") == _EXHAUSTED for each in status.get("notReadyGroups") or ()):
        return Ask("Retry", f"{name} goes on with its promotion, and has the groups made again that may not restart")
    _in_steps(rollout, "no version was aborted, so there is none to try again")
    results = {**_results(rollout, "gates"), **_gates_of_release(rollout)}
    again = [gate for gate, result in results.items() if result in _MEASURED_AGAIN]
    measured = f", and measures again: {', '.join(again)}" if again else ""
    return Ask("Retry", f"{name} step {step_words(rollout)} has its whole deadline again{measured}")


def start(live: str) -> Judge:
    """Release the version of a pair's inactive side, although it was there before. ``live`` is our hash of it, "" where
    it is not known.
    """

    def judge(rollout: Object) -> Ask | Already:
        return _start(rollout, live)

    return judge


def _start(rollout: Object, live: str) -> Ask | Already:
    name, sides = _name(rollout), sides_of(rollout)
    if sides is None:
        home = f"; `rollout-lws home {_bare(rollout)}` releases the one that it has" if standing_in(rollout) else ""
        raise UsageError(
            f"{name} is no pair, so its release starts by itself when another template is applied to"
            f" {called(rollout, named(rollout))}{home}"
        )
    inactive = sides.called(sides.inactive)
    if phase_of(rollout) == "Progressing":
        raise UsageError(
            f"{name} has a release on already, to {inactive}: look with `rollout-lws get {_bare(rollout)}`"
        )
    if not sides.known or _stalled_for(rollout) in _UNFIT:
        raise UsageError(f"{name} is {_phase_words(rollout)}: nothing can be released")
    if live and live == serving_hash(rollout):
        raise UsageError(
            f"{name}: {inactive} has the version that {sides.called(sides.active)} runs: apply another one to"
            f" {sides.inactive}"
        )
    if _status(rollout).get("startRequested"):
        told = message(rollout)
        return Already(f"{name} was asked to release {inactive} already" + (f": {told}" if told else ""))
    return Ask("Start", f"{name} releases the version of {inactive}{_stays_paused(rollout)}")


def home(rollout: Object) -> Ask | Already:
    """Release the version of the user's LWS, while one that a release has made stands in for it."""
    name, bare, sides, made = _name(rollout), _bare(rollout), sides_of(rollout), standing_in(rollout)
    users = called(rollout, named(rollout))
    if sides is not None:
        raise UsageError(
            f"{name} is a pair, of which either workload may serve: `rollout-lws start {bare}` releases the version of"
            f" {sides.called(sides.inactive)}"
        )
    if not phase_of(rollout):
        raise UsageError(f"{name} is {_phase_words(rollout)}: nothing can be released")
    if not made:
        raise UsageError(f"{name}: {users} serves already, so there is nothing to bring home")
    if phase_of(rollout) == "Progressing":
        to = "" if _status(rollout).get("finalising") else f", to {users}"
        raise UsageError(f"{name} has a release on already{to}: look with `rollout-lws get {bare}`")
    if _stalled_for(rollout) == "WorkloadNotFound":
        raise UsageError(f"{name} is {_phase_words(rollout)}")
    if _status(rollout).get("startRequested"):
        told = message(rollout)
        return Already(f"{name} was asked to bring its requests home already" + (f": {told}" if told else ""))
    loads = rollout["spec"].get("replicas")
    count = "its groups" if not loads else "1 group" if loads == 1 else f"{loads} groups"
    return Ask(
        "Start",
        f"{name} releases the version of {users}, which loads {count}; then {made} is removed{_stays_paused(rollout)}",
    )


def waits_to_leave(rollout: Object) -> bool:
    """Whether a Rollout is to leave, and stays since an LWS that a release has made stands in for the user's."""
    return _stalled_for(rollout) == "StandInServes"


#: Reasons why the sides of a pair are not known, or not whole.
_UNFIT = ("CounterpartMissing", "CompanionMissing", "ActiveSideUnknown")


def _stalled_for(rollout: Object) -> str:
    """Why the controller stalls; "" when it does not."""
    found = _status(rollout).get("verdict") or {}
    return str(found.get("reason") or "") if found.get("condition") == "Stalled" else ""


def skip(gate: str) -> Judge:
    """Pass a gate of the current step, or of the release, by hand."""

    def judge(rollout: Object) -> Ask | Already:
        name, of_release = _name(rollout), _gates_of_release(rollout)
        if not (_promotes(rollout) and of_release):
            _in_steps(rollout, "no gate is measured")
        of_step = {} if _promotes(rollout) else _results(rollout, "gates")
        results = {**of_step, **of_release}
        if not results:
            raise UsageError(f"{name} step {step_words(rollout)} measures no gates now")
        if gate not in results:
            known = ", ".join(results)
            raise UsageError(f"{name} step {step_words(rollout)} has no gate {gate!r}: name one of {known}")
        result = results[gate]
        if result in ("Passed", "Skipped"):
            return Already(f"{name} gate {gate} is {result.lower()} already")
        return Ask("SkipGate", f"{name} gate {gate} skipped", {"gate": gate}, of_step=True)

    return judge


def _gates_of_release(rollout: Object) -> dict[str, str | None]:
    """Results of the gates that are watched, by name."""
    return _results(rollout, "releaseGates")


def _results(rollout: Object, member: str) -> dict[str, str | None]:
    return {each["name"]: each.get("result") for each in _status(rollout).get(member) or ()}


def _promotes(rollout: Object) -> bool:
    """Whether a release is being promoted."""
    return phase_of(rollout) == "Progressing" and (_status(rollout).get("finalising") or {}).get("task") == "Promote"


def pause(rollout: Object) -> Ask | Already:
    if is_paused(rollout):
        return Already(f"{_name(rollout)} is paused already")
    on = phase_of(rollout) == "Progressing"
    told = "nothing goes forward until it is resumed" if on else "the next version will wait in its first step"
    return Ask("Pause", f"{_name(rollout)} paused: {told}", replaces=True)


def resume(rollout: Object) -> Ask | Already:
    name = _name(rollout)
    if (rollout["spec"].get("strategy") or {}).get("paused"):
        raise UsageError(f"{name} is paused by its spec: set spec.strategy.paused to false where it is kept")
    if not is_paused(rollout):
        return Already(f"{name} is not paused")
    return Ask("Resume", f"{name} resumed")


def phase_of(rollout: Object) -> str:
    return str(_status(rollout).get("phase") or "")


def step_of(rollout: Object) -> int:
    return int(_status(rollout).get("currentStepIndex") or 0)


def step_words(rollout: Object) -> str:
    """The step as shown to users: 2/5 when the controller reports it, else its number."""
    return summary(rollout)["step"] or str(step_of(rollout))


def is_paused(rollout: Object) -> bool:
    return bool(_status(rollout).get("paused") or (rollout["spec"].get("strategy") or {}).get("paused"))


def _stays_paused(rollout: Object) -> str:
    """A note for an approved step that the release remains paused; "" when it does not."""
    if (rollout["spec"].get("strategy") or {}).get("paused"):
        return "; it stays paused until spec.strategy.paused is false"
    if is_paused(rollout):
        return f"; it stays paused until `rollout-lws resume {_bare(rollout)}`"
    return ""


def at(judge: Judge, step: int | None, release: str | None) -> Judge:
    """``judge``, bound to the release and step that the user saw on screen; None accepts any."""

    def bound(rollout: Object) -> Ask | Already:
        seen = str(_status(rollout).get("observedRolloutID") or "")
        if release is not None and release != seen:
            raise UsageError(
                f"{_name(rollout)} is about release {seen or 'none'} now, not {release}: look with"
                f" `rollout-lws get {_bare(rollout)}`"
            )
        if step is not None and step != step_of(rollout):
            raise UsageError(
                f"{_name(rollout)} is at step {step_words(rollout)} now, not {step}: look with"
                f" `rollout-lws get {_bare(rollout)}`"
            )
        return judge(rollout)

    return bound


def _in_steps(rollout: Object, otherwise: str) -> None:
    """UsageError unless a release is in progress and within its steps."""
    if phase_of(rollout) != "Progressing":
        raise UsageError(f"{_name(rollout)} is {_phase_words(rollout)}: {otherwise}")
    if _status(rollout).get("finalising"):
        now = summary(rollout)["state"] or "ending"
        raise UsageError(f"{_name(rollout)} is past its steps (now {now}): {otherwise}")


def _phase_words(rollout: Object) -> str:
    if phase_of(rollout) and summary(rollout)["state"] == "Stalled":
        return f"Stalled ({message(rollout)})"
    return phase_of(rollout) or "not seen by a controller yet"


def _status(rollout: Object) -> Object:
    found: Object = rollout.get("status") or {}
    return found


def _bare(rollout: Object) -> str:
    return str(rollout["metadata"]["name"])


def _name(rollout: Object) -> str:
    return f"rollout/{_bare(rollout)}"
