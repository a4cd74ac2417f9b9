"""What a controller costs that has nothing to do, and what its watches cost when the API server comes back: with 1, 100
and 1,000 Rollouts on a real API server.

Each Rollout has an LWS of one group of one pod, with the templates of real model servers: an LWS, its Service and its
revision, a StatefulSet with its revision, and a pod; the Rollout's own revision comes with its adoption.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.bench.figures import Figure
from tests.bench.manifests import ROLLOUTS
from tests.bench.measures import at_rest, controller, of_rest
from tests.bench.processes import Child, Failed, Progress, child
from tests.bench.releases import ALL
from tests.e2e import audit, tools
from tests.e2e.audit import Entry
from tests.e2e.bench.copies import Original, copy, original
from tests.e2e.bench.informed import Informed
from tests.e2e.bench.person import Object, Person, Trial, state
from tests.e2e.cluster import CONTROLLER, Cluster, install
from tests.e2e.plane import ControlPlane, connected, control_plane

#: After so long without a change nobody has anything left to do.
_QUIET_SECONDS = 5.0
#: No watch of ours backs off for longer, so by then each is back, or will not be.
_STORM_SECONDS = 40.0
#: Between two looks at how much CPU was used.
_SAMPLE_SECONDS = 1.0
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Stage:
    """A control plane with our definitions; ``controller`` is the kubeconfig of who has the controller's role, and
    ``source`` what a fleet is copied from.
    """

    plane: ControlPlane
    controller: Path
    source: Original


async def original_of(whole: Cluster, logs: Path) -> Original:
    """What a fleet is copied from: an LWS of one pod on ``whole``, where it comes into a Rollout's care by itself."""
    trial = Trial("original", (ALL,), replicas=1, size=1, load=0.2)
    async with (
        child("original", *controller(whole.controller), logs=logs) as running,
        connected(whole.plane.admin) as connection,
    ):
        await running.logged("controller started", _START_SECONDS)
        client = Client(connection)
        async with Informed(client, LEADER_WORKER_SETS, lambda _: True) as informed:
            await Person(client).prepare(trial)
            await informed.quiet(_QUIET_SECONDS)
        return await original(client, trial.namespace)


async def measure(
    source: Original, sizes: Sequence[int], rest_seconds: float, logs: Path, progress: Progress
) -> list[Figure]:
    """Figures of fleets of ``sizes``, each made of the one before, and of a restart of the API server in the last."""
    # Nobody is there who would do an LWS controller's work: in a fleet at rest it has none.
    async with control_plane(tools.directory(), logs, audited=[CONTROLLER], install=install) as plane:
        stage = Stage(plane, plane.kubeconfig_for(CONTROLLER), source)
        return await _measured(stage, sizes, rest_seconds, logs, progress)


async def _measured(
    stage: Stage, sizes: Sequence[int], rest_seconds: float, logs: Path, progress: Progress
) -> list[Figure]:
    figures: list[Figure] = []
    for before, size in zip((0, *sizes), sizes, strict=False):
        made = await _grow(stage, before, size, logs, progress)
        progress(f"fleet: {size:,} Rollouts, {made:.0f} s to make")
        since = datetime.now(UTC)
        async with at_rest(stage.controller, size, rest_seconds, logs, progress) as (rest, running):
            written = [one for one in _asked(stage, since) if one.is_write]
            name = f"{size:,} Rollouts of one pod each" if size > 1 else "1 Rollout of one pod"
            figures += [*of_rest(name, size, rest), Figure(f"{name}: writes since the start", len(written), 0)]
            if size == sizes[-1]:
                figures += await _storm(stage, name, running, since, progress)
    return figures


async def _grow(stage: Stage, before: int, size: int, logs: Path, progress: Progress) -> float:
    """Make the fleet ``size`` large and have a controller take care of it; the seconds that this took."""
    began = time.monotonic()
    healthy: set[str] = set()

    def enough(rollout: Object) -> bool:
        if state(rollout) == "Healthy":
            healthy.add(rollout["metadata"]["namespace"])
        return len(healthy) >= size

    async with (
        child("making", *controller(stage.controller), logs=logs) as making,
        connected(stage.plane.admin) as connection,
    ):
        await making.logged("controller started", _START_SECONDS)
        client = Client(connection)
        async with Informed(client, ROLLOUTS, enough) as informed:
            await copy(client, stage.source, (f"team-{number:05}" for number in range(before, size)))
            progress(f"fleet: {size - before:,} more made, waiting until all are in care")
            await informed.reached()
            await informed.quiet(_QUIET_SECONDS)
    return time.monotonic() - began


async def _storm(stage: Stage, name: str, running: Child, since: datetime, progress: Progress) -> list[Figure]:
    """The API server is killed and started again under a controller at rest, which began ``since``."""
    progress("fleet: the API server is restarted under its watches")
    before = len(_open_watches(_asked(stage, since)))
    killed = datetime.now(UTC)
    loads: list[float] = []
    sampling = asyncio.create_task(_sample(running, loads))
    await stage.plane.restart_api_server()
    back = datetime.now(UTC)
    await asyncio.sleep(_STORM_SECONDS)
    sampling.cancel()
    await asyncio.wait([sampling])
    asked = _asked(stage, killed)
    reopened = _open_watches(asked)
    if len(reopened) != before:
        raise Failed(f"{len(reopened)} of {before} watches are back {_STORM_SECONDS:g} s after the API server is")
    verbs = Counter(one.verb for one in asked)
    told = f"{name}, API server killed and started again"
    return [
        Figure(f"{told}: it is away for", (back - killed).total_seconds(), None, "s"),
        Figure(f"{told}: then until all {before} watches are back", (max(reopened) - back).total_seconds(), None, "s"),
        Figure(f"{told}: watches begun, also such as were too old", verbs["watch"], None),
        Figure(f"{told}: lists, each page counted", verbs["list"], None),
        Figure(f"{told}: other requests", verbs.total() - verbs["watch"] - verbs["list"], 0),
        Figure(f"{told}: CPU, of one core, in the busiest second", max(loads), None, "%"),
        Figure(f"{told}: peak of resident memory", running.usage().peak, None, "MB"),
    ]


async def _sample(running: Child, loads: list[float]) -> None:
    """Add the percentage of a core that each second took, for ever."""
    used, at = running.usage().cpu, time.perf_counter()
    while True:
        await asyncio.sleep(_SAMPLE_SECONDS)
        before, since = used, at
        used, at = running.usage().cpu, time.perf_counter()
        loads.append(100 * (used - before) / (at - since))


def _open_watches(entries: Sequence[Entry]) -> list[datetime]:
    return [one.at for one in entries if one.verb == "watch" and one.is_open]


def _asked(stage: Stage, since: datetime) -> list[Entry]:
    return [one for one in audit.read(stage.plane.audit_log) if one.user == CONTROLLER and one.at >= since]
