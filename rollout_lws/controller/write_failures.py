"""Which Rollouts cannot go on because the API server does not carry out a write, so that their status can say so.

A refusal (a missing permission, a quota, a webhook, a schema) is told at once. What usually passes by itself (a
conflict, a busy server, a webhook that is restarting) is told when it has lasted for a while.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from rollout_lws.controller.apply import Failure, Next, refused
from rollout_lws.rollout.observation import RefusedWrite

K = TypeVar("K", bound=Hashable)

#: Failures that are no refusals are told after they lasted this many seconds.
PATIENCE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class _Failure:
    since: datetime
    at_once: bool
    told: RefusedWrite


class WriteFailures(Generic[K]):
    """What is known of each key's last write that failed; nothing of it has to survive a restart."""

    def __init__(self) -> None:
        self._known: dict[K, _Failure] = {}

    def clear(self) -> None:
        """Nobody tries any more."""
        self._known.clear()

    def note(self, key: K, failure: Failure, now: datetime) -> None:
        """A write of ``key`` has failed."""
        told = refused(failure)
        if told is None:
            return
        before = self._known.get(key)
        since = before.since if before is not None and before.told.what == told.what else now
        self._known[key] = _Failure(since, failure.next is Next.REFUSED, told)

    def forget(self, key: K) -> None:
        """All writes of ``key`` were carried out."""
        self._known.pop(key, None)

    def of(self, key: K, now: datetime) -> RefusedWrite | None:
        """What shall be told of ``key``, None when there is nothing to be told (yet)."""
        known = self._known.get(key)
        if known is None or not (known.at_once or now - known.since >= timedelta(seconds=PATIENCE_SECONDS)):
            return None
        return known.told
