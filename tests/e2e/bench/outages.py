"""By how much a release takes longer when the API server is killed in its middle and started again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from rollout_lws.kube.client import Client
from tests.bench.figures import Figure
from tests.bench.measures import controller
from tests.bench.processes import Progress, child
from tests.bench.releases import ALL, HANDS_ON
from tests.e2e.bench.person import Person, Trial
from tests.e2e.cluster import Cluster
from tests.e2e.plane import connected

#: When the API server is killed, by how people would say it.
_MOMENTS: dict[str, Callable[[Person, Trial], Awaitable[None]]] = {
    "as its first step loads": Person.loading,
    "as the stable groups are renewed": Person.renewing,
}
_START_SECONDS = 60.0


async def measure(whole: Cluster, logs: Path, progress: Progress) -> list[Figure]:
    """Figures of releases of a cluster, each alone on it, with a controller of their own."""
    async with (
        child("outages", *controller(whole.controller), logs=logs) as running,
        connected(whole.plane.admin) as connection,
    ):
        await running.logged("controller started", _START_SECONDS)
        person = Person(Client(connection))
        quiet = _trial("undisturbed")
        await person.prepare(quiet)
        progress("outages: a release without one")
        usual = await person.release(quiet)
        figures = [Figure("a release of 4 groups, alone and undisturbed", usual, None, "s")]
        for number, (words, moment) in enumerate(_MOMENTS.items()):
            trial = _trial(f"disturbed-{number}")
            await person.prepare(trial)
            progress(f"outages: API server killed {words}")
            took, away = await _disturbed(whole, person, trial, moment)
            figures += [
                Figure(f"API server killed {words}: it is away for", away, None, "s"),
                Figure(f"API server killed {words}: the release takes longer by", took - usual, None, "s"),
            ]
    return figures


async def _disturbed(
    whole: Cluster, person: Person, trial: Trial, moment: Callable[[Person, Trial], Awaitable[None]]
) -> tuple[float, float]:
    """Seconds that the release takes, and those of them for which there was no API server."""

    async def disturb() -> float:
        await moment(person, trial)
        killed = time.monotonic()
        await whole.plane.restart_api_server()
        return time.monotonic() - killed

    async with asyncio.TaskGroup() as both:
        disturbed = both.create_task(disturb())
        released = both.create_task(person.release(trial))
    return released.result(), disturbed.result()


def _trial(namespace: str) -> Trial:
    return Trial(namespace, (*HANDS_ON, ALL), replicas=4)
