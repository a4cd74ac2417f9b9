"""A real API server over HTTP, without behaviours: each test puts the world that it wants to be told of."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from click.testing import CliRunner, Result

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.main import program
from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.errors import RolloutLwsError
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, DEFAULT_API_GROUP, LEADER_WORKER_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import NOTHING, Rule
from rollout_lws.sandbox.http import Server
from rollout_lws.sandbox.store import Event
from tests.definitions import definitions

Object = dict[str, Any]
_T = TypeVar("_T")
#: Seconds after which the server's thread is taken for hung; a busy machine is not.
_PATIENCE = 60


@dataclass(slots=True)
class _Notice(Rule):
    """Not a fault: calls ``act`` where a fault would have its effect."""

    act: Callable[[], object] = field(kw_only=True)

    def hits(self, verb: str, resource: str) -> bool:
        if Rule.hits(self, verb, resource):
            self.act()
        return False


class World:
    """One server in a thread of its own; ``run`` is the command line, pointed to it."""

    def __init__(self, directory: Path, group: str = DEFAULT_API_GROUP) -> None:
        self.rollouts = rollouts_of(group)
        self.server = ApiServer(time.time)
        for definition in definitions(group):
            self.server.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
        self.http = Server(self.server)
        self._stop = asyncio.Event()
        started: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)), daemon=True)
        self._thread.start()
        self._loop = started.result(_PATIENCE)
        self.kubeconfig = directory / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(self.http.kubeconfig()))

    async def _serve(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        await self.http.start()
        started.set_result(asyncio.get_running_loop())
        await self._stop.wait()
        await self.http.stop()

    def close(self) -> None:
        """The thread ends its loop itself: one closed from here could still have connections to let go of."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_PATIENCE)
        assert not self._thread.is_alive()

    def do(self, act: Callable[[], _T]) -> _T:
        """Call on the server's own thread."""

        async def call() -> _T:
            return act()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(_PATIENCE)

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Call on the server's own thread, some time from now."""
        self._loop.call_soon_threadsafe(self._loop.call_later, seconds, act)

    def on_request(self, verb: str, resource: str, act: Callable[[], object], *, nth: int = 1) -> None:
        """Call on the server's own thread once the ``nth`` such request from now on has arrived."""
        notice = _Notice(NOTHING, verb, resource, nth, act=lambda: self._loop.call_soon(act))
        self.do(lambda: self.http.gate.faults.rules.insert(0, notice))

    def release(self, **status: Any) -> None:
        """LWS and Rollout `llama`, with this status on the Rollout."""
        lws = manifests.workload()
        rollout = manifests.rollout(self.rollouts.api_version, lws["metadata"])
        self.do(lambda: self.server.create(LEADER_WORKER_SETS, lws))
        self.do(lambda: self.server.create(self.rollouts, rollout))
        self.tell(**status)

    def pair(
        self,
        *,
        serves: str = "v0.17.0",
        beside: str = "",
        scaled: bool = False,
        shift: Object | None = None,
        **status: Any,
    ) -> None:
        """A Rollout `llama` of LWSs `llama` and `llama-green`, whose images have these tags ("": the demo's own);
        ``scaled``: its releases scale them.
        """
        made = [manifests.workload(), manifests.workload()]
        made[1]["metadata"]["name"] = "llama-green"
        for lws, tag in zip(made, (serves, beside), strict=True):
            for template in ("leaderTemplate", "workerTemplate") if tag else ():
                container = lws["spec"]["leaderWorkerTemplate"][template]["spec"]["containers"][0]
                container["image"] = f"{manifests.IMAGE}:{tag}"
            if scaled and lws["metadata"]["name"] != status.get("active", "llama"):
                lws["spec"]["replicas"] = 0
            self.do(lambda lws=lws: self.server.create(LEADER_WORKER_SETS, lws))  # type: ignore[misc]
        rollout = manifests.rollout(self.rollouts.api_version, made[0]["metadata"], capacity="Pair", routed=True)
        canary = rollout["spec"]["strategy"]["canary"]
        canary["trafficRoutings"][0]["counterpartService"] = "llama-green"
        canary |= {"shift": shift} if shift is not None else {}
        rollout["spec"] |= {
            "counterpartRef": {**rollout["spec"]["workloadRef"], "name": "llama-green"},
            **({"replicas": manifests.GROUPS} if scaled else {"touch": "RouteOnly"}),
        }
        self.do(lambda: self.server.create(self.rollouts, rollout))
        self.tell(**status)

    def swap(self, *, asks: str = "", serves: str = "", **status: Any) -> None:
        """A Rollout `llama` with promotion Swap, after a release: LWS `llama` is parked, and `llama-canary` serves;
        their images have these tags ("": the demo's own).
        """
        users, made = manifests.workload(), manifests.workload()
        labels = {f"{self.rollouts.group}/side": "active", f"{self.rollouts.group}/stands-for": "llama"}
        made["metadata"] |= {"name": "llama-canary", "labels": labels}
        users["spec"]["replicas"] = 0
        for lws, tag in ((users, asks), (made, serves)):
            for template in ("leaderTemplate", "workerTemplate") if tag else ():
                container = lws["spec"]["leaderWorkerTemplate"][template]["spec"]["containers"][0]
                container["image"] = f"{manifests.IMAGE}:{tag}"
            self.do(lambda lws=lws: self.server.create(LEADER_WORKER_SETS, lws))  # type: ignore[misc]
        rollout = manifests.rollout(self.rollouts.api_version, users["metadata"], style="blueGreen", routed=True)
        rollout["spec"]["strategy"]["blueGreen"]["promotion"] = "Swap"
        rollout["spec"]["replicas"] = manifests.GROUPS
        self.do(lambda: self.server.create(self.rollouts, rollout))
        self.tell(**{"active": "llama-canary", **status})

    def tell(self, **status: Any) -> None:
        seen = {"observedGeneration": 1, "observedWorkloadGeneration": 1, **status}
        self.do(lambda: self.server.patch(self.rollouts, "default", "llama", {"status": seen}, subresource="status"))

    def answer(self, refusal: str = "") -> None:
        """File every request from now on, as a controller does: done, or refused with this reason."""

        def take(event: Event) -> None:
            if ((event.object or {}).get("status") or {}).get("requestedAction"):
                self._loop.call_soon(lambda: self.file("Refused" if refusal else "Done", refusal))

        self.do(lambda: self.server.store.subscribe(take))

    def file(self, outcome: str, message: str | None = None) -> None:
        """File the request that waits, on the server's own thread."""
        asked = self.server.get(self.rollouts, "default", "llama")["status"]["requestedAction"]
        last = {**asked, "outcome": outcome, "message": message or None}
        status = {"requestedAction": None, "lastAction": last}
        self.server.patch(self.rollouts, "default", "llama", {"status": status}, subresource="status")

    def status(self) -> Object:
        status: Object = self.do(lambda: self.server.get(self.rollouts, "default", "llama"))["status"]
        return status

    def run(self, *arguments: str) -> Result:
        """As ``main`` does: errors that a person can mend become exit code 1 and one line."""
        result = CliRunner().invoke(program, ["--kubeconfig", str(self.kubeconfig), *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit | RolloutLwsError):
            raise result.exception
        return result


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[World]:
    """A cluster that serves our kinds under another group."""
    made = World(tmp_path, "rollouts.example.org")
    yield made
    made.close()
