"""What the measurements of load have in common: the process of the API server, and controllers that elect a leader."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

from rollout_lws.settings import Election
from tests.bench.load.live import GROUPS, SIZE
from tests.bench.measures import controller, decided, decisions
from tests.bench.processes import Child, Failed, Progress, child
from tests.kubectl.programs import held_port

#: Longest time that the server takes for an act: bringing all releases into flight.
_PATIENCE_SECONDS = 600.0
_LOOK_SECONDS = 0.05
#: Pods that fit on one node of the sandbox.
_PODS_PER_NODE = 24


@dataclass(frozen=True, slots=True)
class Candidate:
    """One controller of those that elect a leader, behind its own ``door``."""

    door: str
    running: Child
    metrics: str

    async def decides(self, rollouts: int) -> None:
        """Until it has made so many decisions since its start."""
        await decided(self.running, self.metrics, rollouts)

    async def decisions(self) -> int:
        """How many it has made."""
        return await decisions(self.metrics)


@dataclass(frozen=True, slots=True)
class Stage:
    """A running server. ``directory`` is for what the processes hand to each other."""

    directory: Path
    election: Election
    progress: Progress
    _server: Child
    _url: str
    _session: aiohttp.ClientSession
    _numbers: count[int]

    async def ask(self, act: str, **arguments: Any) -> Any:
        """Have the server do one thing, as it is described in ``tests.bench.load.server``."""
        async with self._session.post(f"{self._url}/{act}", json=arguments) as response:
            if response.status != 200:
                raise Failed(f"the API server's process could not {act}\n{self._server.last_words()}")
            return await response.json()

    def kubeconfig(self, door: str) -> Path:
        return self.directory / f"{door}.kubeconfig"

    @property
    def flags(self) -> Sequence[str]:
        """What makes a controller a candidate."""
        election = self.election
        return (
            "--leader-elect",
            "--leader-elect-resource-namespace=default",
            f"--leader-elect-lease-duration={election.duration:g}s",
            f"--leader-elect-renew-deadline={election.deadline:g}s",
            f"--leader-elect-retry-period={election.retry:g}s",
        )

    @asynccontextmanager
    async def candidate(self, door: str) -> AsyncIterator[Candidate]:
        """A controller with filled caches, from here to the end of the block."""
        port = held_port()
        arguments = (*controller(self.kubeconfig(door), f"127.0.0.1:{port}"), *self.flags)
        async with child(f"{door}-{next(self._numbers)}", *arguments, logs=self.directory) as running:
            await running.logged("controller started", _PATIENCE_SECONDS)
            yield Candidate(door, running, f"http://127.0.0.1:{port}/metrics")

    async def leads(self, door: str, seconds: float) -> float:
        """Wait until whoever comes through ``door`` holds the Lease; the moment when that began, by the server."""
        until = time.monotonic() + seconds
        while True:
            told = await self.ask("leads")
            if told["door"] == door:
                return float(told["since"])
            if time.monotonic() > until:
                raise Failed(f"{door} does not hold the Lease after {seconds:g} s: {told}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def wrong(self) -> list[str]:
        """What was sent so far that may not be."""
        return [f"{door}: {each}" for door, sent in (await self.ask("sent")).items() for each in sent["wrong"]]


@asynccontextmanager
async def staged(directory: Path, releases: int, election: Election, progress: Progress) -> AsyncIterator[Stage]:
    """A server that has room for so many releases in flight, on which nothing is yet."""
    # A promotion has its groups restart one after the other: room for one more group each is enough.
    nodes = 1 + (releases + 1) * (GROUPS + 1) * SIZE // _PODS_PER_NODE
    arguments = ("-m", "tests.bench.load.server", str(directory), str(nodes), f"{election.deadline:g}")
    async with child("server", *arguments, logs=directory) as server:
        url = await server.told("listening", progress, _PATIENCE_SECONDS)
        timeout = aiohttp.ClientTimeout(total=_PATIENCE_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            yield Stage(directory, election, progress, server, url, session, count())
