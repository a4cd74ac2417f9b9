"""The guard's response to an edit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Rule(StrEnum):
    """The rule that judges an edit; also the last part of the webhook's URL path."""

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
    """``message`` says why an edit is denied and what to do instead. ``warnings`` are lines that kubectl prints; API
    servers cut them after 256 bytes. ``patch`` are JSON Patch operations on the new object.
    """

    outcome: Outcome = Outcome.ALLOWED
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: tuple[Mapping[str, Any], ...] = ()


#: Decides on the collected state. It shares no mutable state, so it may run in a thread.
Decide = Callable[[], Response]
#: Reads the caches, in the event loop.
Look = Callable[[], Decide]

ALLOWED = Response()


def denied(message: str) -> Response:
    return Response(Outcome.DENIED, message)


def warned(*warnings: str) -> Response:
    """Allowed, with warnings."""
    return Response(Outcome.WARNED, warnings=warnings) if warnings else ALLOWED


def failed(why: str) -> Response:
    """Allowed with a warning: a guard that cannot judge must not block edits of serving workloads."""
    return Response(Outcome.FAILED, warnings=(f"the guard of rollout-lws has not judged this: {why}",))
