"""The process of the API server: a sandbox with releases in flight, copies of recorded Rollouts beside them, a door for
each controller, and another address at which it is told what to do next.

Usage: python -m tests.bench.load.server DIRECTORY NODES DEADLINE. It writes DIRECTORY/first.kubeconfig and
DIRECTORY/second.kubeconfig and tells the address. DEADLINE is by how many seconds after its last renewal a leader may
write.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from aiohttp import web

from rollout_lws.cli.sandbox.local_cluster import playground
from rollout_lws.objects.resources import DEFAULT_API_GROUP, LEASES
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.http import Server
from rollout_lws.sandbox.store import Event
from tests.bench.lines import tell
from tests.bench.load.door import Door, holder
from tests.bench.load.live import APPROVAL, TURNS, Live
from tests.bench.load.still import Recorded, Still, without_workers
from tests.bench.wire import listening, write_kubeconfig

DOORS = ("first", "second")
_MODEL = "to-be-copied"


class Control:
    """What the process can be asked for, as ``POST /act`` with the act's arguments as JSON; all take and give JSON."""

    def __init__(self, server: ApiServer, doors: dict[str, Door]) -> None:
        self._server = server
        self._doors = doors
        self._live = Live(server)
        self._at_rest: list[Recorded] = []
        #: By state, a release that stands there.
        self._in_flight: dict[str, list[Recorded]] = {}
        self._flying: list[str] = []
        self._held_at = 0.0
        self._holder = ""
        server.store.subscribe(self._seen)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        act = getattr(self, f"do_{request.path.strip('/')}", None)
        if act is None:
            raise web.HTTPNotFound(text=f"nobody can {request.path}")
        return web.json_response(await act(**await request.json()))

    async def do_model(self) -> None:
        """Have one release made from its beginning to its end; its Rollout is what the copies at rest are made of."""
        self._live.create(_MODEL, APPROVAL)
        await self._live.ready([_MODEL])
        self._live.release(_MODEL)
        await self._live.until([_MODEL])
        self._live.approve(_MODEL)
        await self._live.until([_MODEL], "Healthy")
        await self._live.quiet()
        self._at_rest = without_workers(self._live.recorded(_MODEL))

    async def do_fly(self, releases: int) -> None:
        """Bring so many releases into flight."""
        names = [f"flying-{number:04}" for number in range(releases)]
        for number, name in enumerate(names):
            self._live.create(name, TURNS[number % len(TURNS)])
            # The sandbox's controllers and ours get their turns.
            await asyncio.sleep(0)
        await self._live.ready(names)
        tell(progress=f"load: {releases} Rollouts are at rest and get a new version")
        for name in names:
            self._live.release(name)
            await asyncio.sleep(0)
        await self._live.until(names)
        await self._live.quiet()
        self._flying = names
        for name in names:
            state = self._live.places[name].state
            if state not in self._in_flight:
                self._in_flight[state] = self._live.recorded(name)
        gc.collect()
        gc.freeze()

    async def do_stand(self, at_rest: int, in_flight: int) -> dict[str, int]:
        """Put so many copies beside what lives; objects by resource."""
        places = [self._in_flight[each.state] for each in TURNS if each.state in self._in_flight]
        shares = [len(range(number, in_flight, len(places))) for number in range(len(places))]
        still = Still([(self._at_rest, at_rest), *zip(places, shares, strict=True)])
        for door in self._doors.values():
            door.still = still
        gc.collect()
        gc.freeze()
        return still.counts

    async def do_begin(self) -> None:
        """What is sent is counted anew."""
        for door in self._doors.values():
            door.sent.begin()

    async def do_sent(self) -> dict[str, Any]:
        """What came through each door."""
        return {name: asdict(door.sent) for name, door in self._doors.items()}

    async def do_leads(self) -> dict[str, Any]:
        """Through which ``door`` the holder of the Lease comes, "" for nobody's, and the moment ``since`` when."""
        leader = holder(self._server)
        names = {door.sent.name: name for name, door in self._doors.items()}
        return {"door": names.get(leader, "") if leader else "", "since": self._held_at}

    async def do_approve(self, releases: int) -> Sequence[str]:
        """Approve so many releases that wait for it, those that have waited for longest; their names."""
        waiting = [name for name in self._flying if self._live.places[name] is APPROVAL][:releases]
        for name in waiting:
            self._live.approve(name)
            self._flying.remove(name)
        return waiting

    async def do_finish(self, names: Sequence[str], seconds: float) -> Sequence[str]:
        """Wait until these releases are over, at most so long; the names of those that are not."""
        try:
            async with asyncio.timeout(seconds):
                await self._live.until(names, "Healthy")
        except TimeoutError:
            return [name for name in names if self._live.states.get(name) != "Healthy"]
        return []

    async def do_again(self, names: Sequence[str]) -> None:
        """Bring them into flight again, so that there are as many as before."""
        await self._live.ready(names)
        for name in names:
            self._live.release(name)
        await self._live.until(names)
        await self._live.quiet()
        self._flying += names

    async def do_cut(self, door: str) -> None:
        self._doors[door].cut()

    async def do_mend(self, door: str) -> None:
        self._doors[door].mend()

    def _seen(self, event: Event) -> None:
        if event.resource == LEASES:
            leader = event.object["spec"].get("holderIdentity") or ""
            if leader != self._holder:
                self._holder, self._held_at = leader, time.time()


async def main(directory: Path, nodes: int, deadline: float) -> None:
    # As in tests.bench.releases: what the sandbox holds is not looked through while the controller is measured.
    gc.disable()
    async with playground(Options(nodes=nodes, gpus_per_node=192), DEFAULT_API_GROUP) as cluster:
        doors = {name: Door(cluster.server, deadline) for name in DOORS}
        servers = [Server(cluster.server) for _ in doors]
        for http, (name, door) in zip(servers, doors.items(), strict=True):
            http.gate = door
            await http.start()
            url = http.kubeconfig()["clusters"][0]["cluster"]["server"]
            write_kubeconfig(directory / f"{name}.kubeconfig", url)
        async with listening(Control(cluster.server, doors).serve) as url:
            tell(listening=url)
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
