"""Sends an action request to the controller, bound to the release and step that were read, and waits for its answer."""

from __future__ import annotations

import getpass
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.actions.action_rules import Already, Ask, Judge, step_words
from rollout_lws.cli.rollouts import fetch_rollout
from rollout_lws.cli.watch.stream import follow
from rollout_lws.errors import ApiError, RolloutLwsError, UsageError
from rollout_lws.objects.resources import Resource

#: Seconds to retry a conflicting status write. Crashing groups change the status several times a second, and an abort
#: must get through just then.
_PERSISTENCE = 10.0
#: Requests that the controller may keep pending until the step's groups are ready.
_WAIT_FOR_GROUPS = ("PromoteFull", "Jump")
#: Seconds within which a running controller answers.
PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Looking:
    """A request that is judged by more than the Rollout: ``judge`` reads that."""

    judge: Callable[[Transport, Object], Judge]


def ask(
    transport: Transport,
    rollouts: Resource,
    name: str,
    judge: Judge | Looking,
    *,
    reason: str | None = None,
    patience: float = PATIENCE,
) -> str:
    """Send the request that ``judge`` returns for the Rollout, and return the outcome as a message.

    UsageError when the request makes no sense, when the release has moved on meanwhile, or when the controller refuses
    it; RolloutLwsError when no controller answers within ``patience`` seconds (0: do not wait).
    """
    sent = _send(transport, rollouts, name, judge, reason)
    if isinstance(sent, Already):
        return sent.told
    wanted = sent.wanted
    if patience <= 0:
        return f"rollout/{name}: asked for ({wanted.type}); check the result with `rollout-lws get {name}`"
    for rollout in follow(transport, rollouts, sent.rollout, time.monotonic() + patience):
        answer = _answered(rollout, sent.id)
        if answer == "":
            return wanted.done
        if answer is not None:
            raise UsageError(f"rollout/{name}: not done: {answer}")
    if wanted.until:
        return f"rollout/{name}: asked for; {wanted.until}"
    raise RolloutLwsError(
        f"rollout/{name}: asked for, but no controller has answered within {patience:g} s: is it running? The request"
        " stays, and is carried out when one does"
    )


def _answered(rollout: Object, request: str) -> str | None:
    """Why the request was refused; "" when it was carried out, None while it is pending."""
    last = (rollout.get("status") or {}).get("lastAction") or {}
    if last.get("id") == request:
        return str(last.get("message") or "without a reason") if last.get("outcome") == "Refused" else ""
    pending = (rollout.get("status") or {}).get("requestedAction") or {}
    if pending.get("id") == request:
        return None
    if pending:
        return f"{pending.get('by') or 'another client'} asked for {pending.get('type')} instead"
    return (
        f"{last.get('by') or 'another client'} asked for {last.get('type')} right after it: look with `rollout-lws get`"
    )


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request that was written: the Rollout with it, and the request's id."""

    rollout: Object
    wanted: Ask
    id: str


def _send(
    transport: Transport, rollouts: Resource, name: str, judge: Judge | Looking, reason: str | None
) -> _Sent | Already:
    """Write the request into the very version of the Rollout that was judged. After a conflict the Rollout is judged
    again, since it may be at another step; UsageError when the release has moved on meanwhile.
    """
    seen = rollout = fetch_rollout(transport, rollouts, name)
    wanted, end = _judged(transport, judge, rollout), time.monotonic() + _PERSISTENCE
    while isinstance(wanted, Ask):
        _refuse_busy(rollout, wanted)
        action = _action(rollout, wanted, reason)
        try:
            written = transport.merge_patch(
                rollouts.path(rollout["metadata"]["namespace"], name, "status"),
                {
                    "metadata": {"resourceVersion": rollout["metadata"]["resourceVersion"]},
                    "status": {"requestedAction": action},
                },
            )
        except ApiError as error:
            if error.code != 409:
                raise
        else:
            return _Sent(written, wanted, action["id"])
        if time.monotonic() >= end:
            raise UsageError(
                f"rollout/{name}: its status changed each time before it could be asked for {wanted.type}, for"
                f" {_PERSISTENCE:g} s; nothing was changed, try again"
            )
        rollout = fetch_rollout(transport, rollouts, name)
        if _identity(rollout, wanted) != _identity(seen, wanted):
            raise UsageError(
                f"rollout/{name} moved on to step {step_words(rollout)} meanwhile, nothing was"
                " changed: look with `rollout-lws get` and decide again"
            )
        wanted = _judged(transport, judge, rollout)
    return wanted


def _judged(transport: Transport, judge: Judge | Looking, rollout: Object) -> Ask | Already:
    return judge.judge(transport, rollout)(rollout) if isinstance(judge, Looking) else judge(rollout)


def _refuse_busy(rollout: Object, wanted: Ask) -> None:
    pending = (rollout.get("status") or {}).get("requestedAction")
    if not pending or (wanted.replaces and pending.get("type") not in ("Abort", "Pause")):
        return
    by = f" by {pending['by']}" if pending.get("by") else ""
    why = (
        "abort and pause may take its place"
        if pending.get("type") in _WAIT_FOR_GROUPS
        else "is the controller running?"
    )
    raise UsageError(
        f"rollout/{rollout['metadata']['name']} has a request{by} that waits ({pending.get('type')}): {why}"
    )


def _action(rollout: Object, wanted: Ask, reason: str | None) -> Object:
    action: dict[str, Any] = {
        "type": wanted.type,
        "id": uuid.uuid4().hex[:12],
        "by": _person(),
        "at": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        # A merge patch must clear explicitly the fields of a request that this one replaces.
        "toStep": None,
        "step": None,
        "force": None,
        "gate": None,
        "reason": reason or None,
        "templateHash": (rollout.get("status") or {}).get("observedTemplateHash"),
        **wanted.fields,
    }
    if wanted.of_step:
        action["step"] = int((rollout.get("status") or {}).get("currentStepIndex") or 0)
    return action


def _person() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container's user often has no name in passwd.
        return f"uid {os.getuid()}"


def _identity(rollout: Object, wanted: Ask) -> tuple[Any, ...]:
    """State that must not change between the read and the write."""
    status = rollout.get("status") or {}
    parts = ("phase", "observedTemplateHash", *(("currentStepIndex", "currentStepState") if wanted.of_step else ()))
    return (rollout["metadata"]["uid"], *(status.get(key) for key in parts))
