"""Actions that the user requests through ``status.requestedAction``: done or refused once, then recorded.

A request has at least a type and an id; a recorded id never runs again. A request with templateHash or step is refused
if they no longer match, so that a late click cannot promote another release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias, assert_never

from rollout_lws.api import (
    ActionType,
    GateRecord,
    GateResult,
    LastAction,
    Phase,
    RequestedAction,
    StepState,
    SummaryState,
)
from rollout_lws.api.base import with_fields
from rollout_lws.rollout.companions import request_start
from rollout_lws.rollout.draft import Abort, Advance, Draft, HoldState
from rollout_lws.rollout.gates import release
from rollout_lws.rollout.gates.records import current, end_of
from rollout_lws.rollout.groups import exhausted
from rollout_lws.rollout.groups.evictions import forgive
from rollout_lws.rollout.groups.watch_demand import needs_workloads, workloads_pending
from rollout_lws.rollout.reasons import Ending, EventReason, Outcome, Reason
from rollout_lws.rollout.state import (
    FORCEABLE,
    CleaningUp,
    Detaching,
    Idle,
    InSteps,
    Promoting,
    RollingBack,
    ending_of,
)
from rollout_lws.rollout.step_plan import next_index
from rollout_lws.workload.revisions import target_revision

PROMOTED_ALREADY = "already promoted: undo it by applying the template of the version before"


def promoted_already(d: Draft) -> str:
    """Why a version that is stable by now cannot be aborted, and what to do instead."""
    return f"already promoted: to go back to {d.other_name}: {d.command('start')}" if d.paired else PROMOTED_ALREADY


class Handled(Enum):
    """The result of a request that was not refused."""

    DONE = auto()
    LATER = auto()
    """Not yet possible: the request stays."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request has no effect, and what to do instead."""

    why: str


Answer: TypeAlias = Handled | Refused


def act(d: Draft) -> Draft:
    """Carries out the request, if there is one; leaves what the step machine carries out as an intent."""
    d = _refuse_late_jump(d)
    request = d.status.requested_action
    if request is None:
        return d
    last = d.status.last_action
    if last is not None and last.id == request.id:
        return d.set(requested_action=None)
    unbound = _unbound(d, request)
    d, answer = (d, unbound) if unbound is not None else _HANDLERS[request.type](d, request)
    return d if answer is Handled.LATER else _file(d, request, answer.why if isinstance(answer, Refused) else "")


def step_left(d: Draft) -> Draft:
    """Records the request that waited for its step's groups, now that it is carried out."""
    request = d.status.requested_action
    if isinstance(d.intent, Advance) and request is not None:
        d = _file(d, request, "")
    return d.but(intent=None) if d.intent is Advance.LEAVE_STEP else d


def refuse_abort(d: Draft, why: str) -> Draft:
    """Refuses an abort that was just accepted and turns out to be impossible."""
    last = d.status.last_action
    if not isinstance(d.intent, Abort) or last is None:
        return d
    d = d.but(intent=None).set(last_action=last.model_copy(update={"outcome": Outcome.REFUSED.value, "message": why}))
    return d.event(EventReason.ACTION_REFUSED, f"{last.type} was refused: {why}", warning=True)


def _file(d: Draft, request: RequestedAction, refusal: str) -> Draft:
    outcome = Outcome.REFUSED if refusal else Outcome.DONE
    fields = request.model_dump(exclude_none=True)
    d = d.set(
        requested_action=None,
        last_action=LastAction(**fields, outcome=outcome.value, message=refusal or None, finished_at=d.now),
    )
    by = f" by {request.by}" if request.by else ""
    if refusal:
        d = d.event(EventReason.ACTION_REFUSED, f"{request.type}{by} was refused: {refusal}", warning=True)
    else:
        why = f": {request.reason}" if request.reason else ""
        every = (*d.status.gates, *d.status.release_gates)
        skipped = [each for each in every if each.name == request.gate]
        ends = [end_of(d, each) for each in skipped] if request.type == ActionType.SKIP_GATE else []
        d = d.event(EventReason.ACTION, f"{request.type}{by}{why}", gates=ends)
    return d


def _unbound(d: Draft, request: RequestedAction) -> Refused | None:
    if request.template_hash and request.template_hash != d.status.observed_template_hash:
        return Refused("it was meant for another version; look again: " + d.command("get"))
    if request.step is not None and request.step != d.sub.current_step_index:
        return Refused(f"it was meant for step {request.step}, the release is at step {d.sub.current_step_index}")
    return None


def _rolls_by_itself(d: Draft) -> Refused:
    """The refusal for requests whose LWS is not held."""
    return Refused(
        f"{d.stable.called} is not held now and rolls by itself, whatever is asked of the"
        " release: restore the stable template to go back"
    )


def _in_steps(d: Draft) -> bool:
    return isinstance(d.state, InSteps) and d.o.stable is not None


def _is_not_held(d: Draft) -> bool:
    """True if groups of the release may roll by themselves; a pair's release goes on in the other workload."""
    return d.hold is HoldState.RELEASED and not d.beside_users


def _approve(d: Draft, _: RequestedAction) -> tuple[Draft, Answer]:
    if not _in_steps(d):
        return d, Refused("no release waits for approval")
    if _is_not_held(d):
        return d, _rolls_by_itself(d)
    if d.status.step is None or d.status.step.paused_at is None:
        return d, Refused(f"step {d.sub.current_step_index} does not wait for approval yet")
    # Kept in the status, because the step may end only later (paused, refused, a group no longer ready).
    return d.set_sub(current_step_state=StepState.STEP_READY), Handled.DONE


def _jump(d: Draft, request: RequestedAction) -> tuple[Draft, Answer]:
    style = d.o.rollout.spec.strategy.style
    count = len(style.steps) if style else 0
    if not _in_steps(d):
        return d, Refused("no release is in its steps")
    if _is_not_held(d):
        return d, _rolls_by_itself(d)
    if request.to_step is None or not 1 <= request.to_step <= count:
        return d, Refused(f"toStep must be a number from 1 to {count}")
    d = d.set_sub(next_step_index=request.to_step)
    if style is not None and request.to_step == next_index(style.steps, d.sub.current_step_index):
        # nextStepIndex has that value anyway: the current step ends as soon as its groups are ready.
        return d.but(intent=Advance.LEAVE_STEP), Handled.LATER
    return d, Handled.DONE


def _refuse_late_jump(d: Draft) -> Draft:
    """Refuses a nextStepIndex that leads back when no step can be returned to.

    The tool that wrote it has reported to its user that the release rolls back, so an Event has to correct that.
    """
    asked = d.sub.next_step_index
    if _in_steps(d) or not 1 <= asked < d.sub.current_step_index:
        return d
    d = d.set_sub(next_step_index=-1)
    match d.state:
        case Idle() | InSteps() | Detaching():
            verb = "start" if d.paired else "undo"
            why = f"no release is in its steps; to release the version before: {d.command(verb)}"
        case Promoting(Ending.SUCCESS):
            why = f"the release is being promoted; to go back: {d.command('abort')}"
        case Promoting() | RollingBack() | CleaningUp():
            why = "the release is ending"
        case unknown:
            assert_never(unknown)
    return d.event(EventReason.ACTION_REFUSED, f"jump to step {asked} was refused: {why}", warning=True)


def _abort(d: Draft, request: RequestedAction) -> tuple[Draft, Answer]:
    if d.paired and d.status.phase != Phase.PROGRESSING and d.pending:
        return _not_wanted(d, request), Handled.DONE
    if d.status.phase != Phase.PROGRESSING or d.o.stable is None:
        return d, Refused("no release is on")
    ending = ending_of(d.state)
    if d.state == CleaningUp(Ending.SUCCESS):
        return d, Refused(promoted_already(d))
    if d.state == CleaningUp(Ending.CONTINUOUS):
        return d, Refused(
            "the release is going back already, because another version was applied: restore the stable template, or"
            " abort again once the release of that version has begun"
        )
    forced = request.force and isinstance(d.state, RollingBack) and ending in FORCEABLE
    if ending is Ending.ABORTED or forced:
        # The status must record the force before the controller retries a write that kept failing.
        return d.persist_first(), Handled.DONE
    if ending not in (None, Ending.SUCCESS, Ending.CONTINUOUS):
        return d, Refused("the release is going back already")
    if d.replicas == 0 and not d.beside_users:
        return d, Refused(f"the {d.kind} has 0 groups, so the new version needs no release; {PROMOTED_ALREADY}")
    if _is_not_held(d):
        return d, _rolls_by_itself(d)
    return d.but(intent=Abort(_why(request))), Handled.DONE


def _retry(d: Draft, request: RequestedAction) -> tuple[Draft, Answer]:
    aborted = d.status.aborted
    if _in_steps(d):
        if needs_workloads(d) and workloads_pending(d):
            # The Workloads that Kueue gave up on are not listed yet.
            return d, Handled.LATER
        d = d.set_step(best_ready_at=d.now, partition_attempts=None).set(restarts=(), gates=_passed_gates(d))
        d = d.write(exhausted.again(d))
        return forgive(release.again(d)), Handled.DONE
    if isinstance(d.state, Promoting):
        ended, failed = tuple(exhausted.again(d)), release.failed(d) is not None
        if ended or failed:
            return (release.again(d) if failed else d).write(ended), Handled.DONE
    if aborted is None or d.o.stable is None or aborted.template_hash != d.version.template_hash:
        return d, Refused("there is no aborted version to try again: apply it first")
    if request.template_hash and request.template_hash != aborted.template_hash:
        return d, Refused("it names another version than the aborted one")
    if d.status.finalising is not None:
        # The rollback is not finished.
        return d, Handled.LATER
    return _wanted_again(d), Handled.DONE


def _wanted_again(d: Draft) -> Draft:
    """Has the version of the template released, whatever came of it before."""
    d = d.set(aborted=None, phase=Phase.HEALTHY)
    return request_start(d) if d.beside_users else d


def _start(d: Draft, _: RequestedAction) -> tuple[Draft, Answer]:
    if not d.beside_users:
        return d, Refused(
            "a release starts when another template is applied; only that of a pair is started by request, or one that"
            " brings the requests home after a swap"
        )
    if d.status.phase == Phase.PROGRESSING:
        return d, Refused("a release is on already")
    if d.o.canary is None:
        return d, Refused(f"{d.kind} {d.other_name} does not exist: create it")
    if d.asks_for_stable and d.paired:
        return d, Refused(f"{d.edited.name} has the version that {d.name} runs: apply another one to it")
    return _wanted_again(d), Handled.DONE


def _not_wanted(d: Draft, request: RequestedAction) -> Draft:
    """Gives up the version of a pair's inactive side, whose release has not begun."""
    d = d.set(start_requested=None)
    if not d.pending:
        return d
    revision = target_revision(d.edited)
    return d.record_abort(_why(request), d.version.template_hash, revision=revision, release_id=d.release_id)


def _why(request: RequestedAction) -> str:
    """Why a release is aborted, for messages."""
    return request.reason or (f"aborted by {request.by}" if request.by else "aborted by request")


def _passed_gates(d: Draft) -> tuple[GateRecord, ...]:
    """What stays of the gates when they are measured again."""
    return tuple(each for each in d.status.gates if each.result in (GateResult.PASSED, GateResult.SKIPPED, None))


def _skip_gate(d: Draft, request: RequestedAction) -> tuple[Draft, Answer]:
    skipped = {"result": GateResult.SKIPPED, "finished_at": d.now, "by": request.by, "message": request.reason}
    watched = release.current(d, request.gate or "")
    if watched is not None:
        every = (with_fields(watched, **skipped) if each == watched else each for each in d.status.release_gates)
        return d.set(release_gates=tuple(every)), Handled.DONE
    if not _in_steps(d):
        return d, Refused("no release is in its steps")
    index, names = d.sub.current_step_index, [each.name for each in (*d.status.gates, *d.status.release_gates)]
    if not names:
        return d, Refused(f"step {index} measures no gates now")
    record = current(d, request.gate or "")
    if record is None:
        return d, Refused(f"step {index} has no gate {request.gate!r}: name one of {', '.join(names)}")
    kept = (with_fields(record, **skipped) if each.name == record.name else each for each in d.status.gates)
    return d.set(gates=tuple(kept)), Handled.DONE


def _promote_full(d: Draft, _: RequestedAction) -> tuple[Draft, Answer]:
    if not _in_steps(d):
        return d, Refused("no release is in its steps")
    if _is_not_held(d):
        return d, _rolls_by_itself(d)
    # The step machine carries it out once the batch is ready, and records it then.
    return d.but(intent=Advance.PROMOTE_FULL), Handled.LATER


def _pause(d: Draft, _: RequestedAction) -> tuple[Draft, Answer]:
    if _is_not_held(d) and d.status.phase == Phase.PROGRESSING:
        return d, _rolls_by_itself(d)
    return d.set(paused=True), Handled.DONE


def _resume(d: Draft, _: RequestedAction) -> tuple[Draft, Answer]:
    d = d.set(paused=None)
    if d.o.rollout.spec.strategy.paused:
        return d, Refused("spec.strategy.paused is true: set it to false")
    return d, Handled.DONE


_HANDLERS: dict[ActionType, Callable[[Draft, RequestedAction], tuple[Draft, Answer]]] = {
    ActionType.APPROVE: _approve,
    ActionType.JUMP: _jump,
    ActionType.ABORT: _abort,
    ActionType.RETRY: _retry,
    ActionType.PROMOTE_FULL: _promote_full,
    ActionType.PAUSE: _pause,
    ActionType.RESUME: _resume,
    ActionType.SKIP_GATE: _skip_gate,
    ActionType.START: _start,
}


def stays_paused(d: Draft, meanwhile: str = "") -> Draft:
    """Gives the verdict until the user ends the pause; ``meanwhile`` is the progress so far."""
    by_spec, last = bool(d.o.rollout.spec.strategy.paused), d.status.last_action
    if by_spec:
        told = "paused: nothing goes forward until spec.strategy.paused is removed or set to false"
    else:
        by = f" by {last.by}" if last is not None and last.type is ActionType.PAUSE and last.by else ""
        told = f"paused on request{by}: nothing goes forward until it is resumed: {d.command('resume')}"
    message = f"{meanwhile}; {told}" if meanwhile else told
    return d.conclude("Reconciling", Reason.PAUSED, SummaryState.PAUSED, message, by_spec=by_spec)
