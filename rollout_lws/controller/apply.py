"""Carries out a decision: sends its writes in order, puts each answer into the caches, stops at the first failure.

A failure is classified here once, as a value: 404 and 409 mean a stale cache (decide again at once), 429, 5xx and an
unreachable server are retried with increasing delay, everything else (403, 422, a webhook's denial) is a refusal, which
is also reported in the status. Writes are not retried here, because a retry needs a new decision from newer state; the
exceptions are the status write that reports writes already done, and a note that the API server finds invalid, which is
created anew (``Patch.if_invalid``).
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from rollout_lws.errors import ApiError, RolloutLwsError, Unreachable
from rollout_lws.kube.client import understood
from rollout_lws.logs import fields
from rollout_lws.objects.permissions import allow, is_denied, named
from rollout_lws.objects.resources import Resource
from rollout_lws.objects.writes import Confirm, Create, Delete, Live, Patch, Replace, Write
from rollout_lws.rollout.decision import BestEffort, Decision, ReleaseEvent
from rollout_lws.rollout.observation import RefusedWrite

log = logging.getLogger(__name__)

#: How often a status write is retried over another writer's change before the decision is made again.
_TRIES = 3

#: Characters of a server's message that a status and the log repeat.
MESSAGE_LIMIT = 600

#: Puts the API server's answer to a write into the cache of that resource.
Absorb = Callable[[Resource, bytes], None]
#: Called after each successful write.
Written = Callable[[Write], None]

_live = msgspec.json.Decoder(Live)


class Sender(Protocol):
    def send(self, write: Write) -> Coroutine[Any, Any, bytes]:
        """Carry out one write and return the server's answer; ApiError or Unreachable when it failed."""
        ...


class Next(enum.Enum):
    """What happens to a key whose write failed."""

    AT_ONCE = "at once"
    """The cache was stale: reconcile as soon as it is newer."""
    BACK_OFF = "back off"
    """The server is busy or unreachable: retry with increasing delay."""
    REFUSED = "refused"
    """The server rejects the write: like BACK_OFF, but reported to the user."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The write that ended a reconcile. ``retry_after`` is the server's Retry-After, in seconds."""

    write: Write
    error: RolloutLwsError
    next: Next
    retry_after: float | None = None


def classify(error: ApiError | Unreachable, write: Write) -> Failure | None:
    """What an error means; None when the object already is as the write wanted it."""
    if isinstance(error, Unreachable):
        return Failure(write, error, Next.BACK_OFF)
    if error.code == 404 and isinstance(write, Delete):
        return None
    # 404 elsewhere and 409 mean that the cache was stale. So does AlreadyExists: names are deterministic, and the next
    # decision checks whether the existing object is ours.
    if error.code in (404, 409):
        return Failure(write, error, Next.AT_ONCE, error.retry_after)
    if error.code == 429 or error.code >= 500 or error.is_early:
        return Failure(write, error, Next.BACK_OFF, error.retry_after)
    return Failure(write, error, Next.REFUSED, error.retry_after)


async def carry_out(
    decision: Decision, sender: Sender, absorb: Absorb, written: Written, publish: Callable[[ReleaseEvent], None]
) -> Failure | None:
    """Sends all writes, then the best-effort writes; None when every write succeeded. A failed best-effort write is
    logged.

    Events are published as soon as the status that reports them is written, whatever happens to later writes. A status
    that reports earlier writes is also written over another writer's change: a new decision would not report them.
    """
    events, events_after, done = list(decision.events), decision.events_after, False
    for number, write in enumerate(decision.writes):
        if number == events_after:
            _publish(events, publish)
        failure = await _carry_out(write, sender, absorb, written, done=done)
        done = done or not isinstance(write, Confirm)
        if failure is not None and (instead := in_its_stead(failure)) is not None:
            failure = await _note_otherwise(failure, instead, sender, absorb, written)
        if failure is not None:
            return failure
    _publish(events, publish)
    await _write_best_effort(decision.best_effort, sender, absorb, written, publish)
    return None


async def _carry_out(
    write: Write, sender: Sender, absorb: Absorb, written: Written, *, done: bool = False
) -> Failure | None:
    try:
        answer = await _whole(_recorded(write, sender) if done else sender.send(write))
    except (ApiError, Unreachable) as error:
        return classify(error, write)
    if not isinstance(write, Confirm):
        written(write)
    absorb(write.resource, answer)
    log.debug("written", extra=fields(verb=verb(write), object=target(write), reason=write.reason))
    return None


def in_its_stead(failure: Failure) -> Create | None:
    """The write to try after the API server finds a patch invalid; None for a failure that ends the decision."""
    write, error = failure.write, failure.error
    is_invalid = isinstance(error, ApiError) and error.code == 422 and failure.next is Next.REFUSED
    return write.if_invalid if is_invalid and isinstance(write, Patch) else None


async def _note_otherwise(
    failure: Failure, instead: Create, sender: Sender, absorb: Absorb, written: Written
) -> Failure | None:
    """The failure if the server is busy or unreachable, to be retried; otherwise the decision goes on without the
    write.
    """
    log.info(
        "a note is invalid, writing it otherwise",
        extra=fields(object=target(failure.write), reason=failure.write.reason, error=brief(str(failure.error))),
    )
    other = await _carry_out(instead, sender, absorb, written)
    if other is None or other.next is Next.BACK_OFF:
        return other
    told = fields(object=target(instead), reason=instead.reason, error=brief(str(other.error)))
    log.warning("a note is not written, going on without it", extra=told)
    return None


async def _recorded(write: Write, sender: Sender) -> bytes:
    """Send a write that follows others of its decision."""
    for _ in range(_TRIES):
        try:
            return await sender.send(write)
        except ApiError as error:
            if error.code != 409 or not isinstance(write, Patch) or write.over is None:
                raise
            # An empty patch changes nothing, returns the live object, and needs no further permission.
            nothing = replace(write, body={}, resource_version=None, over=None)
            renewed = write.renewed(understood(_live.decode, await sender.send(nothing), nothing))
            if renewed is None:
                raise
            write = renewed
    return await sender.send(write)


def _publish(events: list[ReleaseEvent], publish: Callable[[ReleaseEvent], None]) -> None:
    for event in events:
        publish(event)
    events.clear()


async def _write_best_effort(
    best_effort: Iterable[BestEffort],
    sender: Sender,
    absorb: Absorb,
    written: Written,
    publish: Callable[[ReleaseEvent], None],
) -> None:
    denied: set[tuple[Resource, str]] = set()
    for each in best_effort:
        write = each.write
        if (write.resource, verb(write)) in denied:
            continue
        try:
            answer = await _whole(sender.send(write))
        except ApiError as error:
            # A best-effort write with an event is worth a warning when it fails.
            level = logging.DEBUG if each.event is None or error.code in (404, 409) else logging.WARNING
            log.log(level, "best-effort write failed", extra=fields(object=target(write), error=brief(error.message)))
            if isinstance(write, Confirm):
                return
            if is_denied(error, verb(write)):
                # Further writes of the same kind would be denied too.
                denied.add((write.resource, verb(write)))
        except Unreachable as error:
            log.debug("best-effort writes failed", extra=fields(object=target(write), error=str(error)))
            return
        else:
            if not isinstance(write, Confirm):
                written(write)
            absorb(write.resource, answer)
            if each.event is not None:
                publish(each.event)


async def _whole(sending: Coroutine[Any, Any, bytes]) -> bytes:
    """The answer to a write that has begun: a cancelled caller waits for it, so that no write is cut off."""
    task = asyncio.ensure_future(sending)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise


def verb(write: Write) -> str:
    """The RBAC verb of a write."""
    return _VERBS[type(write)]


_VERBS: dict[type, str] = {Create: "create", Patch: "patch", Replace: "update", Delete: "delete", Confirm: "get"}


def target(write: Write) -> str:
    """``plural.group/namespace/name``, with the subresource where one is written."""
    subresource = f"/{write.subresource}" if isinstance(write, Patch | Replace) and write.subresource else ""
    place = f"{write.namespace}/" if write.namespace else ""
    return f"{write.resource}/{place}{write.name}{subresource}"


def refused(failure: Failure) -> RefusedWrite | None:
    """A failure as text for the Rollout's status; None when the server did not answer at all."""
    if not isinstance(failure.error, ApiError):
        return None
    write = failure.write
    part = f" ({write.subresource})" if isinstance(write, Patch | Replace) and write.subresource else ""
    return RefusedWrite(
        f"{verb(write)} {write.resource.kind} {write.name}{part}", brief(failure.error.message), advice(failure)
    )


def brief(message: str) -> str:
    """A server's message, without the middle if it is long: API servers quote whole values, such as a template, and say
    what is wrong after that.
    """
    if len(message) <= MESSAGE_LIMIT:
        return message
    return f"{message[: MESSAGE_LIMIT * 2 // 3].rstrip()} … {message[-MESSAGE_LIMIT // 3 :].lstrip()}"


def advice(failure: Failure) -> str:
    """What the user can do about a failed write; empty when only waiting helps."""
    error, write = failure.error, failure.write
    if not isinstance(error, ApiError):
        return ""
    if "exceeded quota" in error.message:
        deed = "raise the quota or free some of it"
    elif "being terminated" in error.message:
        deed = "the namespace is going, and this Rollout with it"
    elif "failed calling webhook" in error.message:
        deed = "bring the webhook back"
    elif "webhook" in error.message:
        deed = "correct what the webhook asks for, or the webhook"
    elif error.code in (401, 403):
        subresource = write.subresource if isinstance(write, Patch | Replace) else ""
        deed = allow(verb(write), named(write.resource, write.namespace, subresource))
    elif error.reason == "AlreadyExists":
        deed = "delete or rename the existing object if it is not needed"
    elif failure.next is Next.REFUSED:
        deed = "correct what the error names"
    else:
        return ""
    return f"To go on, {deed}; it is tried again until then"
