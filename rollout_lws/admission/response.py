"""What the guard says of one edit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Rule(StrEnum):
    """Which rule an edit was judged by, and the last part of the path at which it was asked for."""

    HOLD = "hold"
    PENDING = "pending"
    PLAN = "plan"


class Outcome(StrEnum):
    ALLOWED = "allowed"
    WARNED = "warned"
    REPAIRED = "repaired"
    DENIED = "denied"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Response:
    """``message`` says why an edit is denied and what to do instead. ``warnings`` are lines for whoever writes, which
    kubectl prints: of 256 bytes at most, or API servers cut them. ``patch`` are operations of a JSON Patch on the new
    object.
    """

    outcome: Outcome = Outcome.ALLOWED
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: tuple[Mapping[str, Any], ...] = ()


#: Decides by what was seen. It shares nothing with what changes, so it may run in a thread.
Decide = Callable[[], Response]
#: Looks at what is known of the world, in the event loop.
Look = Callable[[], Decide]

ALLOWED = Response()


def denied(message: str) -> Response:
    return Response(Outcome.DENIED, message)


def warned(*warnings: str) -> Response:
    """Allowed, with something to say."""
    return Response(Outcome.WARNED, warnings=warnings) if warnings else ALLOWED


def failed(why: str) -> Response:
    """Allowed, since a guard that cannot judge must not stand in the way of who serves."""
    return Response(Outcome.FAILED, warnings=(f"the guard of rollout-lws has not judged this: {why}",))
