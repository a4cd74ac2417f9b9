"""The releases that are in flight: real ones on the sandbox, with its LWS controller, kubelets and all.

They stand at different places of a release and stay there until somebody acts, so that a fleet with releases in flight
can be looked at for as long as it takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from rollout_lws.objects.resources import LEADER_WORKER_SETS, LEASES, NAMESPACES
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.store import Event, Object
from tests.bench import manifests
from tests.bench.load.still import Recorded
from tests.bench.manifests import NAME, ROLLOUTS
from tests.bench.releases import ALL

#: Groups of an LWS, and pods of each.
GROUPS, SIZE = 4, 8
#: Seconds that pods load, and that what shall not end in a run takes.
_LOAD, _FOR_EVER = 0.2, 4 * 3600
#: Seconds without a change after which nothing more follows from what was done.
_QUIET = 2.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a release stands: ``state`` of its Rollout's summary, with what comes to it from its pause and its load."""

    state: str
    pause: Object
    load: float = _LOAD


APPROVAL = Place("AwaitingApproval", {})
LOADING = Place("Loading", {}, _FOR_EVER)
PAUSED = Place("Pausing", {"duration": _FOR_EVER})
#: By turns; half of them wait for an approval, since those can be sent on.
TURNS = (APPROVAL, LOADING, APPROVAL, PAUSED)


class Live:
    """Rollouts of four groups of eight on ``server``, one in each namespace, and what has become of them."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        #: By namespace, the state that a Rollout's summary tells.
        self.states: dict[str, str] = {}
        self.places: dict[str, Place] = {}
        #: Groups that are ready, by namespace: a Rollout is Healthy before those of its first version are.
        self._ready: dict[str, int] = {}
        self._versions = count(19)
        self._changed = asyncio.Event()
        self._moved = asyncio.Event()
        server.store.subscribe(self._seen)

    def create(self, namespace: str, place: Place) -> None:
        self._server.create(NAMESPACES, {"metadata": {"name": namespace}})
        self.places[namespace] = place
        lws = manifests.workload(namespace, replicas=GROUPS, size=SIZE, load=_LOAD)
        self._server.create(LEADER_WORKER_SETS, lws)
        steps = ({"replicas": 1, "pause": place.pause}, ALL)
        self._server.create(ROLLOUTS, manifests.rollout(namespace, steps))

    def release(self, namespace: str) -> None:
        """Set the templates of another version, which takes the release to its place."""
        tag = f"v0.{next(self._versions)}.0"
        body = {"spec": {"leaderWorkerTemplate": manifests.templates(tag, self.places[namespace].load)}}
        self._server.patch(LEADER_WORKER_SETS, namespace, NAME, body)

    def approve(self, namespace: str) -> None:
        body = {"status": {"canaryStatus": {"currentStepState": "StepReady"}}}
        self._server.patch(ROLLOUTS, namespace, NAME, body, subresource="status")

    def recorded(self, namespace: str) -> list[Recorded]:
        """All objects of a Rollout as they are now."""
        return [
            {"resource": str(resource), "object": self._server.lookup(resource).shown(obj)}
            for resource, obj in self._server.store.index.contents(namespace)
        ]

    async def ready(self, namespaces: Sequence[str]) -> None:
        """All groups of each of them are ready, and it is at rest."""
        await self._until(lambda: all(self._ready.get(each) == GROUPS for each in namespaces))
        await self.until(namespaces, "Healthy")

    async def until(self, namespaces: Iterable[str], state: str | None = None) -> None:
        """Each of them is in ``state``, by default in that of its place."""
        wanted = {each: state or self.places[each].state for each in namespaces}
        await self._until(lambda: all(self.states.get(each) == state for each, state in wanted.items()))

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    async def quiet(self) -> None:
        """Until nothing has changed for a while, but for the Lease."""
        while True:
            self._moved.clear()
            try:
                async with asyncio.timeout(_QUIET):
                    await self._moved.wait()
            except TimeoutError:
                return

    def _seen(self, event: Event) -> None:
        if event.resource != LEASES:
            self._moved.set()
        if event.resource not in (ROLLOUTS, LEADER_WORKER_SETS):
            return
        namespace = event.object["metadata"]["namespace"]
        if event.resource == LEADER_WORKER_SETS:
            if event.object["metadata"]["name"] == NAME:
                self._ready[namespace] = (event.object.get("status") or {}).get("readyReplicas", 0)
                self._changed.set()
            return
        status = event.object.get("status") or {}
        state = (status.get("summary") or {}).get("state", "")
        if state == LOADING.state and not status.get("notReadyGroups"):
            # Its group is not made yet, and will be told of.
            state = ""
        if state != self.states.get(namespace):
            self.states[namespace] = state
            self._changed.set()
