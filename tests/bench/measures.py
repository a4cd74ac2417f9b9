"""The measurements: which processes each one needs, how long it looks, and which figures come out of it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.bench.figures import Figure, percentile
from tests.bench.processes import PROGRAM, Child, Failed, Progress, child
from tests.kubectl.programs import held_port

#: Writes that a release may take, by its number of steps.
_BUDGETS = {3: 30, 5: 60}
_EVENTS = 100_000
_REST_SECONDS = 20.0
#: Between two looks at the count of a controller that tells it only when asked.
_LOOK_SECONDS = 0.1
_SETTLE_SECONDS = 2.0
_PATIENCE_SECONDS = 120.0
_DECIDED = re.compile(rb'^rollout_lws_reconciles_total\{result="ok"\} (\S+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Bench:
    """``directory`` is for what the processes hand to each other; ``progress`` is told what is going on."""

    directory: Path
    progress: Progress

    @property
    def template(self) -> Path:
        """Objects of one release at rest; ``releases`` leaves them there."""
        return self.directory / "template.json"

    async def releases(self) -> tuple[list[Figure], dict[str, Any]]:
        """Real releases, the controller in one process and the API server in another."""
        kubeconfig = self.directory / "releases.kubeconfig"
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(
                self._child("releases", "-m", "tests.bench.releases", str(kubeconfig), str(self.template))
            )
            await server.told("listening", self.progress, _PATIENCE_SECONDS)
            await stack.enter_async_context(self._child("controller", *controller(kubeconfig)))
            found = await server.told("result", self.progress, _PATIENCE_SECONDS)
        return list(of_releases(found)), found

    async def flood(self) -> list[Figure]:
        """An informer in one process, a server with nothing else to do in another."""
        kubeconfig = self.directory / "flood.kubeconfig"
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(
                self._child(
                    "flood", "-m", "tests.bench.flood", "serve", str(kubeconfig), str(self.template), f"{_EVENTS}"
                )
            )
            size = await server.told("size", self.progress, _PATIENCE_SECONDS)
            self.progress(f"watch: {_EVENTS:,} changes of pods of {size:,} bytes")
            informer = await stack.enter_async_context(
                self._child("informer", "-m", "tests.bench.flood", "absorb", str(kubeconfig), f"{_EVENTS}")
            )
            seconds = await informer.told("seconds", self.progress, _PATIENCE_SECONDS)
        name = f"watch events absorbed by one informer, {size / 1000:.1f} kB each"
        return [Figure(name, _EVENTS / seconds, 20_000, "/s", "more")]

    async def rest(self, rollouts: int) -> list[Figure]:
        """A controller alone with a fleet on which nothing happens."""
        kubeconfig = self.directory / "fleet.kubeconfig"
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(
                self._child("fleet", "-m", "tests.bench.fleet", str(kubeconfig), str(self.template), str(rollouts))
            )
            objects = await server.told("objects", self.progress, _PATIENCE_SECONDS)
            kinds = ", ".join(f"{count:,} {resource.partition('.')[0]}" for resource, count in objects.items())
            self.progress(f"fleet: {kinds}")
            async with at_rest(kubeconfig, rollouts, _REST_SECONDS, self.directory, self.progress) as (rest, _):
                pass
            asked = await server.rest_of("write")
        fleet = f"{rollouts:,} Rollouts of 4 groups of 4 at rest"
        return [
            *of_rest(fleet, rollouts, rest),
            Figure(f"{fleet}: writes", len(asked), 0),
        ]

    def _child(self, name: str, *arguments: str) -> AbstractAsyncContextManager[Child]:
        return child(name, *arguments, logs=self.directory)


def of_releases(found: dict[str, Any]) -> Sequence[Figure]:
    """What the journal of the releases comes down to."""
    waits = [1000 * each for each in found["waits"]]
    late = [1000 * each for each in found["pauses"]]
    name = f"last group ready → next write ({len(waits)} batches)"
    figures = [
        Figure(f"{name}, p50", percentile(waits, 0.5), 15, "ms"),
        Figure(f"{name}, p99", percentile(waits, 0.99), 100, "ms"),
    ]
    for steps, budget in _BUDGETS.items():
        counted = {
            each["replicas"]: each["purposes"]["release"] for each in found["releases"] if each["steps"] == steps
        }
        groups = " and ".join(str(replicas) for replicas in counted)
        figures.append(
            Figure(f"writes of a canary of {steps} steps, R = {groups}, the larger", max(counted.values()), budget)
        )
    routed = found["routed"]
    accepted = [1000 * each for each in routed["accepted"]]
    weighted = f"{routed['steps']} weighted steps, R = {routed['replicas']}"
    figures += [
        Figure(f"writes of a canary of {weighted}", routed["purposes"]["release"], _BUDGETS[5]),
        Figure(f"route accepted → next write, longest of {len(accepted)}", max(accepted), 100, "ms"),
    ]
    waiting = f"writes while {found['silence']:g} s of waiting for approval pass"
    return [
        *figures,
        Figure(waiting, found["writes while waiting"], 0),
        Figure(f"a pause ends late by, longest of {len(late)}", max(late), 50, "ms"),
        Figure(f"a pause ends early by, longest of {len(late)}", max(0.0, -min(late)), 0, "ms"),
    ]


def memory_goal(rollouts: int) -> float:
    """MB for so many Rollouts on the straight line from a bare controller's 100 MB to 400 MB for 5,000."""
    return 100 + 300 * rollouts / 5000


@dataclass(frozen=True, slots=True)
class Rest:
    """Seconds from its start until a controller had its caches filled and each Rollout decided, and what it took when
    nothing happened afterwards: ``memory`` in MB, ``cpu`` in percent of one core.
    """

    synced: float
    decided: float
    memory: float
    cpu: float


@asynccontextmanager
async def at_rest(
    kubeconfig: Path, rollouts: int, seconds: float, logs: Path, progress: Progress, flags: Sequence[str] = ()
) -> AsyncIterator[tuple[Rest, Child]]:
    """A controller that starts cold with a fleet on which nothing happens, as it is ``seconds`` after; it goes on to
    the end of the block. ``flags`` are more of its arguments.
    """
    port, started = held_port(), time.perf_counter()
    async with child("resting", *controller(kubeconfig, f"127.0.0.1:{port}"), *flags, logs=logs) as running:
        await running.logged("controller started", _PATIENCE_SECONDS)
        synced = time.perf_counter() - started
        metrics = f"http://127.0.0.1:{port}/metrics"
        await decided(running, metrics, rollouts)
        all_decided = time.perf_counter() - started
        await _settled(running, metrics)
        progress(f"fleet: synced after {synced:.1f} s, decided after {all_decided:.1f} s, now at rest")
        before, since = running.usage(), time.perf_counter()
        await asyncio.sleep(seconds)
        after, passed = running.usage(), time.perf_counter() - since
        yield Rest(synced, all_decided, after.memory, 100 * (after.cpu - before.cpu) / passed), running


def of_rest(fleet: str, rollouts: int, rest: Rest, *, released: bool = False) -> list[Figure]:
    """The figures of a fleet, of so many Rollouts, at rest; memory has no goal where all of them are ``released``."""
    share = max(1.0, rollouts / 1000)
    memory = None if released else memory_goal(rollouts)
    return [
        Figure(f"{fleet}: start until the caches are filled", rest.synced, 5 * share, "s"),
        Figure(f"{fleet}: start until each is decided once", rest.decided, 10 * share, "s"),
        Figure(f"{fleet}: resident memory", rest.memory, memory, "MB"),
        Figure(f"{fleet}: CPU, of one core", rest.cpu, 1, "%"),
    ]


def controller(kubeconfig: Path, metrics: str = "0") -> tuple[str, ...]:
    """The arguments of a controller's process; its metrics at address ``metrics``, "0" for nowhere."""
    addresses = ("--metrics-bind-address", metrics, "--health-probe-bind-address", "0")
    return (*PROGRAM, "controller", "--kubeconfig", str(kubeconfig), *addresses)


async def decided(running: Child, url: str, count: int) -> None:
    """Wait until the controller at ``url`` has decided as many Rollouts. It tells its count only when asked, and with
    all else that it counts: so that being asked is not what it is busy with, the next look waits for twice as long as
    the answer took.
    """
    told = 0
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while True:
                asked = time.perf_counter()
                told = await decisions(url)
                if told >= count:
                    return
                await asyncio.sleep(max(_LOOK_SECONDS, 2 * (time.perf_counter() - asked)))
    except TimeoutError:
        raise Failed(
            f"{told} of {count} Rollouts were decided within {_PATIENCE_SECONDS:g} s\n{running.last_words()}"
        ) from None


async def _settled(running: Child, url: str) -> None:
    """Wait until nothing is decided any more: what was listed for releases in flight has them looked at once more."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            before = -1
            while (now := await decisions(url)) != before:
                before = now
                await asyncio.sleep(_SETTLE_SECONDS)
    except TimeoutError:
        raise Failed(f"decisions go on where nothing happens\n{running.last_words()}") from None


async def decisions(url: str) -> int:
    """How many decisions the controller whose metrics are at ``url`` has carried out."""
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        told = _DECIDED.search(await response.read())
    return int(float(told[1])) if told else 0


def details(found: dict[str, Any]) -> str:
    """Each counted release by purpose, then by verb and object: what the sums in the table consist of."""
    lines = []
    for each in (*found["releases"], found["routed"]):
        purposes = each["purposes"]
        refused = sum(each["refused"].values())
        lines.append(
            f"{each['name']}: {each['steps']} steps, R = {each['replicas']}: {purposes['release']} writes;"
            f" apart: {purposes['window']} of promotion windows, {purposes['label']} leader labels,"
            f" {purposes['event']} Events; refused with a conflict and made again: {refused}"
        )
        counted = sorted(each["writes"].items(), key=lambda item: -item[1])
        lines += [f"    {count:>3}  {what}" for what, count in counted]
    return "\n".join(lines)
