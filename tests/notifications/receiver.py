"""A receiver in memory, for virtual time: what it got, and how it answers."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollout_lws.clock import Clock
from rollout_lws.metrics import Metrics
from rollout_lws.notifications.delivery import TIMEOUT, Answered, Reply, Unanswered
from rollout_lws.notifications.destination import Destination
from rollout_lws.notifications.outbox import Notifications

KEY = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OK = Answered(200)


@dataclass
class Got:
    """A request, and when it came, in seconds of the loop."""

    to: Destination
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def event(self) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(self.body)
        return decoded


@dataclass
class Receiver:
    """``answer`` says what each request gets; None for no answer in time. ``got`` are all, ``kept`` those it took."""

    answer: Callable[[Got], Reply | None] = lambda _: OK
    got: list[Got] = field(default_factory=list)
    kept: list[Got] = field(default_factory=list)
    closed: int = 0

    async def send(self, to: Destination, headers: Mapping[str, str], body: bytes) -> Reply:
        request = Got(to, dict(headers), body, asyncio.get_running_loop().time())
        self.got.append(request)
        reply = self.answer(request)
        if reply is None:
            await asyncio.sleep(TIMEOUT)
            return Unanswered(f"gave no answer in {TIMEOUT:g} s")
        if isinstance(reply, Answered) and reply.status < 300:
            self.kept.append(request)
        return reply

    async def close(self) -> None:
        self.closed += 1

    @property
    def events(self) -> list[dict[str, Any]]:
        """The CloudEvents that it took."""
        return [each.event for each in self.kept]

    def told(self) -> list[tuple[str, str]]:
        """Reasons and messages of these."""
        return [(each["data"]["reason"], each["data"]["message"]) for each in self.events]


def directory(
    path: Path, url: str = "http://receiver.invalid/hook", format: str = "", keys: str = KEY, **files: str
) -> str:
    """The directory of a destination; files that are "" are left out."""
    path.mkdir(parents=True, exist_ok=True)
    named = {each.replace("_", "."): text for each, text in files.items()}
    for name, text in {"url": url, "format": format, "signing-keys": keys, **named}.items():
        if text:
            (path / name).write_text(f"{text}\n")
    return str(path)


def notifications(
    where: str, receiver: Receiver, clock: Clock, metrics: Metrics, *more: str, cluster: str = ""
) -> Notifications:
    """Notifications to receivers in memory."""
    for each in (where, *more):
        metrics.notifies(Path(each).name)
    return Notifications.of((where, *more), cluster, receiver, clock, random.Random(7), metrics.notified)
