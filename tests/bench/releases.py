"""The process of the API server: a sandbox with a journal, and the person who releases new versions on it.

The person acts on the store directly, so that every request in the journal is the controller's.
Usage: python -m tests.bench.releases KUBECONFIG TEMPLATE. It writes the kubeconfig at its start and the objects of one
release at rest at its end, and tells its progress and its result as one JSON object a line.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from rollout_lws.cli.sandbox.local_cluster import Playground, playground
from rollout_lws.objects.resources import DEFAULT_API_GROUP, LEADER_WORKER_SETS, NAMESPACES
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.store import Event, Object
from tests.bench import account, fleet, manifests
from tests.bench.journal import EVENT, LABEL, Accepted, Entry, Journal, RecordingGate, Write
from tests.bench.lines import tell
from tests.bench.manifests import NAME, ROLLOUTS

#: Small releases whose every batch is a sample, so many at a time.
ROUNDS, AT_A_TIME = 8, 2
#: Seconds of the pauses that are measured, and of the wait for an approval.
PAUSE, SILENCE = 2, 10.0
#: Groups of the releases whose writes are counted.
REPLICAS = (4, 5)
#: Seconds without any change after which a release is over with all that follows from it.
_QUIET = 1.0

#: Namespace of a finished release of four groups of four pods, from which a fleet is made.
FLEET_TEMPLATE = "three-4"

AT_ONCE: Object = {"duration": 0}
HANDS_ON: tuple[Object, ...] = (
    {"replicas": 1, "pause": AT_ONCE},
    {"replicas": 2, "pause": AT_ONCE},
    {"replicas": 3, "pause": AT_ONCE},
)
ALL: Object = {"replicas": "100%"}
THREE_STEPS: tuple[Object, ...] = ({"replicas": 1, "pause": {"duration": PAUSE}}, {"replicas": "50%", "pause": {}}, ALL)
FIVE_STEPS: tuple[Object, ...] = (
    *({"replicas": f"{share}%", "pause": {"duration": PAUSE}} for share in (20, 40, 60, 80)),
    ALL,
)
#: Five groups, of which each step adds one and a tenth of the requests.
ROUTED = "routed-5"
ROUTED_STEPS: tuple[Object, ...] = tuple(
    {"replicas": groups, "traffic": f"{10 * groups}%", "pause": {"duration": PAUSE}} for groups in range(1, 6)
)


class Person:
    """Creates, changes and approves releases, one in each namespace, and waits for what becomes of them."""

    def __init__(self, cluster: Playground, journal: Journal) -> None:
        self._server = cluster.server
        self._journal = journal
        self._loads: dict[str, float] = {}
        self._states: dict[str, list[str]] = {}
        self._waiters: set[asyncio.Future[None]] = set()
        self._server.store.subscribe(self._seen)

    def create(self, namespace: str, steps: Iterable[Object], *, replicas: int, size: int, load: float) -> None:
        """An LWS whose pods take ``load`` seconds to be ready, and a Rollout for it."""
        self._server.create(NAMESPACES, {"metadata": {"name": namespace}})
        self._loads[namespace] = load
        lws = manifests.workload(namespace, replicas=replicas, size=size, load=load)
        self._server.create(LEADER_WORKER_SETS, lws)
        self._server.create(ROLLOUTS, manifests.rollout(namespace, steps))

    def route(self, namespace: str) -> None:
        """Have a Gateway send requests to the LWS by a route."""
        for resource, body in manifests.traffic(namespace):
            self._server.create(resource, body)

    async def release(self, namespace: str) -> None:
        """Set the templates of another version; returns as soon as the release is under way."""
        self._journal.entries.pop(namespace, None)
        body = {"spec": {"leaderWorkerTemplate": manifests.templates("v0.19.0", self._loads[namespace])}}
        self._server.patch(LEADER_WORKER_SETS, namespace, NAME, body)
        await self.until(namespace, "Loading")

    def approve(self, namespace: str) -> None:
        body = {"status": {"canaryStatus": {"currentStepState": "StepReady"}}}
        self._server.patch(ROLLOUTS, namespace, NAME, body, subresource="status")

    async def until(self, namespace: str, state: str) -> None:
        while self._states.get(namespace, [""])[-1] != state:
            await self._change()

    async def quiet(self) -> None:
        """Until nothing has changed for a while."""
        while True:
            try:
                async with asyncio.timeout(_QUIET):
                    await self._change()
            except TimeoutError:
                return

    async def _change(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)

    def _seen(self, event: Event) -> None:
        if event.resource == ROLLOUTS:
            state = ((event.object.get("status") or {}).get("summary") or {}).get("state", "")
            self._states.setdefault(event.object["metadata"]["namespace"], []).append(state)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


async def small_releases(person: Person, journal: Journal) -> list[float]:
    """Many releases of four groups that go from one batch to the next at once; the waits of all of them."""
    found: list[float] = []
    for turn in range(ROUNDS):
        names = [f"small-{turn}-{number}" for number in range(AT_A_TIME)]
        for number, name in enumerate(names):
            # Loads that differ keep the releases from moving in step.
            person.create(name, (*HANDS_ON, ALL), replicas=4, size=2, load=0.2 + 0.037 * number)
        await _each(person.until(name, "Healthy") for name in names)
        await person.quiet()
        await _each(person.release(name) for name in names)
        await _each(person.until(name, "Healthy") for name in names)
        await person.quiet()
        for name in names:
            found += account.waits(journal.entries[name])
        tell(progress=f"waits: {len(found)} samples of {(turn + 1) * AT_A_TIME} releases")
    return found


async def counted_releases(person: Person, journal: Journal) -> dict[str, Any]:
    """Releases of three and of five steps; the former wait for an approval in their second."""
    three, five = [f"three-{count}" for count in REPLICAS], [f"five-{count}" for count in REPLICAS]
    for names, steps in ((three, THREE_STEPS), (five, FIVE_STEPS)):
        for name, replicas in zip(names, REPLICAS, strict=True):
            person.create(name, steps, replicas=replicas, size=4, load=0.3)
    await _each(person.until(name, "Healthy") for name in (*three, *five))
    await person.quiet()
    tell(progress=f"writes: {len(three)} releases of three steps and {len(five)} of five, pauses of {PAUSE} s")
    await _each(person.release(name) for name in (*three, *five))
    silent = await _each_of(_approved_late(person, journal, name) for name in three)
    await _each(person.until(name, "Healthy") for name in (*three, *five))
    await person.quiet()
    return {
        "silence": SILENCE,
        "writes while waiting": sum(silent),
        "pauses": [late for name in five for late in account.pauses(journal.entries[name], PAUSE)],
        "releases": [
            {"name": name, "steps": steps, "replicas": replicas, **_counted(journal.entries[name])}
            for steps, names in ((3, three), (5, five))
            for name, replicas in zip(names, REPLICAS, strict=True)
        ],
    }


async def _approved_late(person: Person, journal: Journal, name: str) -> int:
    """Let a release wait for its approval; how many writes came while it only waited."""
    await person.until(name, "AwaitingApproval")
    before, since = len(journal.entries[name]), time.time()
    await asyncio.sleep(SILENCE)
    written = [entry for entry in journal.entries[name][before:] if isinstance(entry, Write)]
    person.approve(name)
    # The Events and labels of the step just done may still be on their way for a moment; nothing else may.
    return sum(each.purpose not in (EVENT, LABEL) or each.at - since > _QUIET for each in written)


async def routed_release(person: Person, journal: Journal) -> dict[str, Any]:
    """A release of five weighted steps; each waits for its route to be accepted, and in the end all is restored."""
    replicas = len(ROUTED_STEPS)
    person.create(ROUTED, ROUTED_STEPS, replicas=replicas, size=4, load=0.3)
    person.route(ROUTED)
    await person.until(ROUTED, "Healthy")
    await person.quiet()
    tell(progress=f"traffic: a release of {replicas} weighted steps, pauses of {PAUSE} s")
    await person.release(ROUTED)
    await person.until(ROUTED, "Healthy")
    await person.quiet()
    entries = journal.entries[ROUTED]
    # Later acceptances are the promotion's and the end's, which wait for groups and drains besides.
    steps = account.waits(entries, Accepted)[:replicas]
    return {"name": ROUTED, "steps": replicas, "replicas": replicas, "accepted": steps, **_counted(entries)}


def _counted(entries: list[Entry]) -> dict[str, Any]:
    return {
        "purposes": account.purposes(entries),
        "writes": dict(account.writes(entries)),
        "refused": dict(account.refused(entries)),
    }


async def _each(waits: Iterable[Any]) -> None:
    await asyncio.gather(*waits)


async def _each_of(counts: Iterable[Any]) -> list[int]:
    return list(await asyncio.gather(*counts))


def _write(template: Path, objects: list[Object]) -> None:
    template.write_bytes(msgspec.json.encode(objects))


async def main(kubeconfig: Path, template: Path) -> None:
    # The sandbox holds all that happened, as dicts; looking through them for garbage stops it for 0.3 s, which is the
    # instrument's own time and not the controller's.
    gc.disable()
    options = Options(nodes=32, gpus_per_node=192)
    async with playground(options, DEFAULT_API_GROUP) as cluster:
        journal = Journal(cluster.server)
        journal.follow()
        cluster.http.gate = RecordingGate(cluster.server, journal)
        cluster.write_kubeconfig(kubeconfig)
        tell(listening=cluster.url)
        person = Person(cluster, journal)
        waits = await small_releases(person, journal)
        counts = await counted_releases(person, journal)
        routed = await routed_release(person, journal)
        _write(template, fleet.recorded(cluster.server, FLEET_TEMPLATE))
        tell(result={"waits": waits, "routed": routed, **counts})


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
