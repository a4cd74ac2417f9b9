"""What a person asked for through ``status.requestedAction``: done or refused once, and filed with its outcome.

A request names at least its type and an id; an id that is filed already is never run again. With templateHash or step
it is refused when they no longer hold, so that a late click cannot promote another release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import TypeAlias

from rollout_lws.api import ActionType, LastAction, Phase, RequestedAction, StepState
from rollout_lws.rollout.diagnosis import needs_workloads, workloads_pending
from rollout_lws.rollout.draft import Abort, Advance, Draft, HoldState
from rollout_lws.rollout.evictions import forgive
from rollout_lws.rollout.plan import next_index
from rollout_lws.rollout.reasons import Ending, EventReason, Task

#: Outcomes that ``lastAction`` may have.
DONE, REFUSED = "Done", "Refused"
PROMOTED_ALREADY = "already promoted: undo it by applying the template of the version before"


class Handled(Enum):
    """How a request was taken that was not refused."""

    DONE = auto()
    LATER = auto()
    """Its moment has not come: the request stays."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request has no effect, and what to do instead."""

    why: str


Answer: TypeAlias = Handled | Refused


def act(d: Draft) -> None:
    """Carry out the request, if there is one; what needs the machine is left as a flag on the draft."""
    _refuse_late_jump(d)
    request = d.status.requested_action
    if request is None:
        return
    last = d.status.last_action
    if last is not None and last.id == request.id:
        d.set(requested_action=None)
        return
    answer = _unbound(d, request) or _HANDLERS[request.type](d, request)
    if answer is not Handled.LATER:
        _file(d, request, answer.why if isinstance(answer, Refused) else "")


def forced_since(d: Draft) -> datetime | None:
    """Since when the abort that is under way does not wait for routers; None while it does."""
    last, ending = d.status.last_action, d.status.finalising
    if last is None or ending is None or ending.reason != Ending.ABORTED.value or ending.since is None:
        return None
    forced = last.type is ActionType.ABORT and last.force and last.outcome == DONE and last.finished_at is not None
    return last.finished_at if forced and last.finished_at and last.finished_at >= ending.since else None


def step_left(d: Draft) -> None:
    """File the request that waited for the groups of its step, now that it is acted on."""
    request = d.status.requested_action
    if isinstance(d.intent, Advance) and request is not None:
        _file(d, request, "")
    if d.intent is Advance.LEAVE_STEP:
        d.intent = None


def refuse_abort(d: Draft, why: str) -> None:
    """The abort that was just granted turns out to be impossible."""
    last = d.status.last_action
    if not isinstance(d.intent, Abort) or last is None:
        return
    d.intent = None
    d.set(last_action=last.model_copy(update={"outcome": REFUSED, "message": why}))
    d.notice(EventReason.ACTION_REFUSED, f"{last.type} was refused: {why}", warning=True)


def _file(d: Draft, request: RequestedAction, refusal: str) -> None:
    outcome = REFUSED if refusal else DONE
    fields = request.model_dump(exclude_none=True)
    d.set(
        requested_action=None,
        last_action=LastAction(**fields, outcome=outcome, message=refusal or None, finished_at=d.now),
    )
    by = f" by {request.by}" if request.by else ""
    if refusal:
        d.notice(EventReason.ACTION_REFUSED, f"{request.type}{by} was refused: {refusal}", warning=True)
    else:
        why = f": {request.reason}" if request.reason else ""
        d.notice(EventReason.ACTION, f"{request.type}{by}{why}")


def _unbound(d: Draft, request: RequestedAction) -> Refused | None:
    if request.template_hash and request.template_hash != d.status.observed_template_hash:
        return Refused("it was meant for another version; look again: " + d.command("get"))
    if request.step is not None and request.step != d.sub.current_step_index:
        return Refused(f"it was meant for step {request.step}, the release is at step {d.sub.current_step_index}")
    return None


def _rolls_by_itself(d: Draft) -> Refused:
    """Why nothing that is asked of a release has an effect while its LWS is not held."""
    return Refused(
        f"LeaderWorkerSet {d.stable.lws.metadata.name} is not held now and rolls by itself, whatever is asked of the"
        " release: restore the stable template to go back"
    )


def _in_steps(d: Draft) -> bool:
    return d.status.phase == Phase.PROGRESSING and d.status.finalising is None and d.o.stable is not None


def _approve(d: Draft, _: RequestedAction) -> Answer:
    if not _in_steps(d):
        return Refused("no release waits for approval")
    if d.hold is HoldState.RELEASED:
        return _rolls_by_itself(d)
    if d.status.step is None or d.status.step.paused_at is None:
        return Refused(f"step {d.sub.current_step_index} does not wait for approval yet")
    # Kept in the status, because the step may be left only later (paused, refused, a group that is not ready again).
    d.set_sub(current_step_state=StepState.STEP_READY)
    return Handled.DONE


def _jump(d: Draft, request: RequestedAction) -> Answer:
    style = d.o.rollout.spec.strategy.style
    count = len(style.steps) if style else 0
    if not _in_steps(d):
        return Refused("no release is in its steps")
    if d.hold is HoldState.RELEASED:
        return _rolls_by_itself(d)
    if request.to_step is None or not 1 <= request.to_step <= count:
        return Refused(f"toStep must be a number from 1 to {count}")
    d.set_sub(next_step_index=request.to_step)
    if style is not None and request.to_step == next_index(style.steps, d.sub.current_step_index):
        # That it says anyway: the step that is on is left, as soon as its groups are ready.
        d.intent = Advance.LEAVE_STEP
        return Handled.LATER
    return Handled.DONE


def _refuse_late_jump(d: Draft) -> None:
    """A nextStepIndex that leads back, written when no step can be gone back to.

    Tools that write it have told their user that the release goes back: somebody has to say that it does not.
    """
    asked, ending = d.sub.next_step_index, d.status.finalising
    if _in_steps(d) or not 1 <= asked < d.sub.current_step_index:
        return
    d.set_sub(next_step_index=-1)
    if ending is None:
        why = f"no release is in its steps; to release the version before: {d.command('undo')}"
    elif (ending.reason, ending.task) == (Ending.SUCCESS.value, Task.PROMOTE.value):
        why = f"the release is being promoted; to go back: {d.command('abort')}"
    else:
        why = "the release is ending"
    d.notice(EventReason.ACTION_REFUSED, f"jump to step {asked} was refused: {why}", warning=True)


def _abort(d: Draft, request: RequestedAction) -> Answer:
    if d.status.phase != Phase.PROGRESSING or d.o.stable is None:
        return Refused("no release is on")
    ending = d.status.finalising
    if ending is not None and ending.reason == Ending.SUCCESS.value and ending.task == Task.CLEAN_UP.value:
        return Refused(PROMOTED_ALREADY)
    if ending is not None and (ending.reason, ending.task) == (Ending.CONTINUOUS.value, Task.CLEAN_UP.value):
        return Refused(
            "the release is going back already, because another version was applied: restore the stable template, or"
            " abort again once the release of that version has begun"
        )
    if ending is not None and ending.reason == Ending.ABORTED.value:
        # That it is forced now has to be on file before anything is tried that has failed all the time.
        d.persist_first()
        return Handled.DONE
    if ending is not None and ending.reason not in (Ending.SUCCESS.value, Ending.CONTINUOUS.value):
        return Refused("the release is going back already")
    if d.replicas == 0:
        return Refused(f"the LeaderWorkerSet has 0 groups, so the new version needs no release; {PROMOTED_ALREADY}")
    if d.hold is HoldState.RELEASED:
        return _rolls_by_itself(d)
    d.intent = Abort(request.reason or (f"aborted by {request.by}" if request.by else "aborted by request"))
    return Handled.DONE


def _retry(d: Draft, request: RequestedAction) -> Answer:
    aborted = d.status.aborted
    if _in_steps(d):
        if needs_workloads(d) and workloads_pending(d):
            # What Kueue has given up could not be forgiven yet.
            return Handled.LATER
        d.set_step(best_ready_at=d.now, partition_attempts=None)
        d.set(restarts=())
        forgive(d)
        return Handled.DONE
    if aborted is None or d.o.stable is None or aborted.template_hash != d.version.template_hash:
        return Refused("there is no aborted version to try again: apply it first")
    if request.template_hash and request.template_hash != aborted.template_hash:
        return Refused("it names another version than the aborted one")
    if d.status.finalising is not None:
        # The way back is not over yet.
        return Handled.LATER
    d.set(aborted=None, phase=Phase.HEALTHY)
    return Handled.DONE


def _promote_full(d: Draft, _: RequestedAction) -> Answer:
    if not _in_steps(d):
        return Refused("no release is in its steps")
    if d.hold is HoldState.RELEASED:
        return _rolls_by_itself(d)
    # The step machine acts on it once the batch is ready, and files it then.
    d.intent = Advance.PROMOTE_FULL
    return Handled.LATER


def _pause(d: Draft, _: RequestedAction) -> Answer:
    if d.hold is HoldState.RELEASED and d.status.phase == Phase.PROGRESSING:
        return _rolls_by_itself(d)
    d.set(paused=True)
    return Handled.DONE


def _resume(d: Draft, _: RequestedAction) -> Answer:
    d.set(paused=None)
    if d.o.rollout.spec.strategy.paused:
        return Refused("spec.strategy.paused is true: set it to false")
    return Handled.DONE


_HANDLERS: dict[ActionType, Callable[[Draft, RequestedAction], Answer]] = {
    ActionType.APPROVE: _approve,
    ActionType.JUMP: _jump,
    ActionType.ABORT: _abort,
    ActionType.RETRY: _retry,
    ActionType.PROMOTE_FULL: _promote_full,
    ActionType.PAUSE: _pause,
    ActionType.RESUME: _resume,
}
