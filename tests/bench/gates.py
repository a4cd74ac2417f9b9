"""What gates cost: model servers in one process, and what measures them for gates in another, which is looked at.

`python -m tests.bench.gates` has 200 gates of 20 releases ask 40 pods, as often as the controller does and with answers
of 200 kB; then, one round after the other, for as many rounds as a long window has.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from aiohttp import web

from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.kinds import MEASURES, Engine, Measure, Signal
from rollout_lws.analysis.ledger import MOST_SLICES
from rollout_lws.analysis.signals import SOURCES, Buckets, families
from rollout_lws.analysis.trial import Trial
from rollout_lws.measuring import scraping
from rollout_lws.measuring.pods import PodFigures
from rollout_lws.measuring.rounds import Key, Measuring
from rollout_lws.measuring.scraping import PodScraper
from rollout_lws.rollout.decision import Endpoint, Measurement, Question
from rollout_lws.settings import SCRAPE_EVERY
from tests.bench import report
from tests.bench.figures import Figure
from tests.bench.lines import tell
from tests.bench.processes import Progress, child, usage_of

RELEASES, PODS = 20, 40
#: Bytes of a pod's answer.
ANSWER = 200_000
#: Rounds that are looked at as they come, and those that come one after the other.
_ROUNDS, _WINDOW = 4, MOST_SLICES + 64
#: Seconds of a window that does not end.
_ENDLESS = 1e9
_PATIENCE_SECONDS = 900.0
_EDGES = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0)
_LABELS = 'engine="0",model_name="meta-llama/Llama-3.1-405B-Instruct"'
_COUNTED = "@counted@"
#: As long as what is counted.
_NUMBER = "12345"


def answer(length: int = ANSWER) -> list[str]:
    """What a vLLM server exposes, and others of its families up to so many bytes; it is cut where numbers stand that
    grow.
    """
    wanted = {source.name for of in SOURCES[Engine.VLLM].values() for source in of if isinstance(source, Buckets)}
    plain = {name for signal in SOURCES[Engine.VLLM] for name in families(signal, Engine.VLLM)} - wanted
    lines = [line for name in sorted(wanted) for line in _histogram(name)]
    lines += [f'{name}{{{_LABELS},finished_reason="stop"}} {_COUNTED}.0\n' for name in sorted(plain)]
    number = 0
    while len("".join(lines).replace(_COUNTED, _NUMBER)) < length:
        lines += _histogram(f"vllm:another_{number}_seconds")
        number += 1
    return "".join(lines).split(_COUNTED)


def _histogram(name: str) -> Iterator[str]:
    yield f"# HELP {name} What took so long, of requests.\n"
    yield f"# TYPE {name} histogram\n"
    for edge in (*_EDGES, "+Inf"):
        yield f'{name}_bucket{{{_LABELS},le="{edge}"}} {_COUNTED}.0\n'
    yield f"{name}_sum{{{_LABELS}}} {_COUNTED}.5\n"
    yield f"{name}_count{{{_LABELS}}} {_COUNTED}.0\n"


async def serve(pods: int) -> None:
    """Pods at ports of their own. Each answer has more requests than the one before."""
    parts = answer()

    def pod(number: int) -> Callable[[web.Request], Awaitable[web.Response]]:
        answers = 0

        async def handler(_: web.Request) -> web.Response:
            nonlocal answers
            answers += 1
            text = str(10_000 + 1000 * number + 37 * answers).join(parts)
            return web.Response(body=text.encode(), headers={"content-type": "text/plain; version=0.0.4"})

        return handler

    async with AsyncExitStack() as stack:
        ports = [await stack.enter_async_context(_listening(pod(number))) for number in range(pods)]
        tell(ports=ports)
        await asyncio.Event().wait()


@asynccontextmanager
async def _listening(handler: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[int]:
    application = web.Application()
    application.router.add_get("/metrics", handler)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


class _Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def loop_time(self, moment: datetime) -> float:
        raise NotImplementedError


def criteria() -> list[Criterion]:
    """Gates of a release: limits and comparisons, none of which is decided while it is looked at."""
    most = {Measure.LATENCY: 1000.0, Measure.SHARE: 1.0, Measure.MEAN: 1e12, Measure.STALL: 1e9}
    limits = (Signal.INTER_TOKEN_LATENCY, Signal.QUEUE_TIME, Signal.ERROR_RATE, Signal.KV_CACHE_USAGE, Signal.STALLED)
    compared = (Signal.TIME_TO_FIRST_TOKEN, Signal.REQUEST_LATENCY, Signal.QUEUE_LENGTH)
    both = (Signal.PREEMPTIONS,)
    return [
        *(Criterion(signal, most[MEASURES[signal]], window=_ENDLESS) for signal in (*limits, *both)),
        *(Criterion(signal, to_stable=1000.0, window=_ENDLESS) for signal in (*compared, *both)),
    ]


def _wanted(ports: Sequence[int]) -> tuple[Measurement, ...]:
    """All gates of a release, whose pods are half new and half stable."""
    since = datetime.now(UTC)
    pods = tuple(Endpoint(f"uid-{port}", f"llama-{port}", "127.0.0.1", port, "/metrics", since) for port in ports)
    half = (len(pods) + 1) // 2
    return tuple(
        Measurement(
            Question(f"gate-{number}", since, criterion), pods[:half], pods[half:] if criterion.compared else ()
        )
        for number, criterion in enumerate(criteria())
    )


async def measure(ports: Sequence[int], rounds: int, window: int) -> None:
    """Tells CPU in percent of a core, and memory in MB before, after ``rounds`` and after ``window`` rounds more."""
    # What the controller refuses.
    scraping.pod_address = str  # type: ignore[assignment]
    source = PodFigures(PodScraper(), SCRAPE_EVERY)
    tasks: set[asyncio.Task[None]] = set()
    seen: dict[Key, int] = {}
    more = asyncio.Event()

    def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        tasks.add(task)
        return task

    def wake(key: Key) -> None:
        seen[key] = seen.get(key, 0) + 1
        more.set()

    async def until(count: int) -> None:
        while len(seen) < RELEASES or min(seen.values()) < count:
            more.clear()
            await more.wait()

    measuring = Measuring([source], _Clock(), start, wake)
    each = len(ports) // RELEASES
    before, began = usage_of(os.getpid()), time.perf_counter()
    for number in range(RELEASES):
        await measuring.want(("default", f"llama-{number}"), _wanted(ports[number * each : (number + 1) * each]))
    await until(rounds)
    await asyncio.sleep(max(0.0, began + rounds * SCRAPE_EVERY - 0.5 - time.perf_counter()))
    after, passed = usage_of(os.getpid()), time.perf_counter() - began
    told = {"cpu": 100 * (after.cpu - before.cpu) / passed, "memory": after.memory - before.memory}
    source.every = 0.0
    await until(rounds + window)
    told["window"] = usage_of(os.getpid()).memory - before.memory
    trials = [found for key in seen for found in measuring.answers(*key).values()]
    read = [each for each in trials if isinstance(each, Trial) and not each.unread and each.verdict is None]
    tell(result={**told, "gates": len(read)})
    await measuring.close()


async def of_gates(
    directory: Path, progress: Progress, rounds: int = _ROUNDS, window: int = _WINDOW
) -> tuple[list[Figure], int]:
    """The figures, and how many gates were measured all along."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            child("model-servers", "-m", "tests.bench.gates", "serve", str(PODS), logs=directory)
        )
        ports = await server.told("ports", progress, _PATIENCE_SECONDS)
        progress(
            f"gates: {RELEASES * len(criteria())} of {RELEASES} releases, {PODS} pods that answer with {ANSWER:,} bytes"
        )
        arguments = ("measure", str(rounds), str(window), *map(str, ports))
        measuring = await stack.enter_async_context(
            child("gates", "-m", "tests.bench.gates", *arguments, logs=directory)
        )
        found = await measuring.told("result", progress, _PATIENCE_SECONDS)
    name = f"{RELEASES * len(criteria())} gates over {PODS} pods"
    return [
        Figure(
            f"{name}, each {SCRAPE_EVERY:g} s {ANSWER // 1000} kB of each pod: CPU, of one core", found["cpu"], 10, "%"
        ),
        Figure(f"{name}: resident memory more than without, after {rounds} rounds", found["memory"], 30, "MB"),
        Figure(f"{name}: the same after {window} rounds more", found["window"], 30, "MB"),
    ], found["gates"]


@click.command()
@click.option(
    "--json", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there as JSON."
)
def gates(path: Path | None) -> None:
    """Measure what gates cost; exit code 1 when a figure is worse than three times its goal."""

    async def measured(progress: Progress) -> tuple[Sequence[Figure], str]:
        with tempfile.TemporaryDirectory(prefix="rollout-lws-gates-") as directory:
            figures, count = await of_gates(Path(directory), progress)
        return figures, f"{count} gates were measured in each round."

    report.run(measured, path)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", pods]:
            asyncio.run(serve(int(pods)))
        case ["measure", rounds, window, *ports]:
            asyncio.run(measure([int(port) for port in ports], int(rounds), int(window)))
        case _:
            gates()
