"""Tracks failed writes per Rollout, so that its status can report why it cannot go on.

A rejected write (missing permission, quota, webhook, schema) is reported at once. Failures that usually pass by
themselves (a conflict, a busy server, a restarting webhook) are reported once they have lasted for a while.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from rollout_lws.controller.apply import Failure, Next, refused
from rollout_lws.rollout.observation import RefusedWrite

K = TypeVar("K", bound=Hashable)

#: Failures other than rejections are reported after this many seconds.
PATIENCE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class _Failure:
    since: datetime
    at_once: bool
    told: RefusedWrite


class WriteFailures(Generic[K]):
    """The last failed write of each key; need not survive a restart."""

    def __init__(self) -> None:
        self._known: dict[K, _Failure] = {}

    def clear(self) -> None:
        """Forget all keys: the workers have ended."""
        self._known.clear()

    def note(self, key: K, failure: Failure, now: datetime) -> None:
        """Record a failed write of ``key``."""
        told = refused(failure)
        if told is None:
            return
        before = self._known.get(key)
        since = before.since if before is not None and before.told.what == told.what else now
        self._known[key] = _Failure(since, failure.next is Next.REFUSED, told)

    def forget(self, key: K) -> None:
        """All writes of ``key`` succeeded."""
        self._known.pop(key, None)

    def of(self, key: K, now: datetime) -> RefusedWrite | None:
        """The failure to report for ``key``; None when there is none (yet)."""
        known = self._known.get(key)
        if known is None or not (known.at_once or now - known.since >= timedelta(seconds=PATIENCE_SECONDS)):
            return None
        return known.told
