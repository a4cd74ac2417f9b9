"""Where stories of the dashboard are told: a cluster in this process, a controller, and dashboards as their users start
them, in processes of their own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout_lws.cli.demo.manifests import NAME, NAMESPACE
from rollout_lws.cli.rollouts import rollouts_of, summary
from rollout_lws.cli.sandbox.local_cluster import Playground, playground
from rollout_lws.controller import process
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import DEFAULT_API_GROUP, LEADER_WORKER_SETS, PODS, Resource
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.faults import Effect, Faults
from rollout_lws.sandbox.patching.patches import MERGE_PATCH
from rollout_lws.settings import Settings
from tests.kubectl.programs import ROLLOUT_LWS, Program, Programs

Object = dict[str, Any]
ROLLOUTS = rollouts_of(DEFAULT_API_GROUP)
#: Seconds of a pod's startup and termination, as of `demo --fast`, and between two rounds of measurements.
LOAD, ENDING, SCRAPE_EVERY = 0.3, 0.25, 1.0
#: Seconds until a story that does not go on is given up; a busy machine takes a while.
PATIENCE = 60.0
_SAYS = "Releases are shown at "


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A running dashboard; ``url`` lets a browser in."""

    program: Program
    url: str

    @property
    def origin(self) -> str:
        return "/".join(self.url.split("/")[:3])

    @property
    def port(self) -> int:
        return int(self.origin.rpartition(":")[2])

    def at(self, path: str) -> str:
        """An address as it is sent to others, without the token."""
        return f"{self.origin}/{path.lstrip('/')}"


class Stage:
    """One cluster, with a controller and dashboards that use it."""

    def __init__(self, cluster: Playground, directory: Path, programs: Programs) -> None:
        self.cluster = cluster
        self.kubeconfig = directory / "kubeconfig"
        self.server = cluster.server
        self._programs = programs
        self._changed = asyncio.Event()
        self._controller = AsyncExitStack()
        cluster.write_kubeconfig(self.kubeconfig)
        self.server.store.subscribe(lambda _: self._changed.set())

    @property
    def faults(self) -> Faults:
        """Between the cluster and all that use it by HTTP."""
        return self.cluster.http.gate.faults

    def forbid(self, verb: str, resource: Resource) -> None:
        """From now on no user has this permission."""
        what = f'{resource} is forbidden: User "reader" cannot {verb} resource "{resource.plural}"'
        self.faults.add(Effect(refusal=ApiError(403, "Forbidden", what)), verb, resource.plural, count=None)

    async def start_controller(self) -> None:
        settings = Settings(kubeconfig=str(self.kubeconfig), scrape_through="api-server", scrape_every=SCRAPE_EVERY)
        await self._controller.enter_async_context(process.running(settings))

    async def stop_controller(self) -> None:
        """From now on statuses are what tests write into them."""
        await self._controller.aclose()

    async def dashboard(self, *arguments: str, port: int = 0) -> Dashboard:
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        program = await self._programs.start(
            *(ROLLOUT_LWS, "dashboard", "--no-browser", "--port", str(port)), *arguments, environment=environment
        )
        return Dashboard(program, (await program.says(_SAYS)).removeprefix(_SAYS))

    def create(self, resource: Resource, body: Object) -> None:
        """An object with its status, as nothing but a server's store can make it."""
        meta, status = body["metadata"], body.get("status")
        self.server.create(resource, {key: value for key, value in body.items() if key != "status"})
        if status is not None:
            self.patch_status(resource, meta["name"], status, meta["namespace"])

    def patch_status(self, resource: Resource, name: str, status: Object, namespace: str = NAMESPACE) -> None:
        self.patch(resource, name, {"status": status}, namespace, subresource="status")

    def apply(self, *manifests: Object) -> None:
        for each in manifests:
            self.cluster.apply(each)

    def patch(self, resource: Resource, name: str, body: Object, namespace: str = NAMESPACE, **asked: str) -> Object:
        return self.server.patch(resource, namespace, name, body, MERGE_PATCH, **asked)

    def rollout(self, name: str = NAME, namespace: str = NAMESPACE) -> Object:
        return self.server.get(ROLLOUTS, namespace, name)

    def status(self, name: str = NAME) -> Object:
        found: Object = self.rollout(name).get("status") or {}
        return found

    def state(self, name: str = NAME) -> str:
        return summary(self.rollout(name))["state"]

    def listing(self) -> dict[str, dict[str, Object]]:
        """Objects of the namespace by kind and name, as the demo's checks take them."""
        kinds = (LEADER_WORKER_SETS, PODS, ROLLOUTS)
        return {
            kind.kind: {each["metadata"]["name"]: each for each in self.server.list(kind, NAMESPACE)} for kind in kinds
        }

    async def until(self, what: str, holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait for a state of the cluster."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            said = [f"{each['metadata']['name']}: {summary(each)}" for each in self.server.list(ROLLOUTS)]
            raise AssertionError(f"waited {seconds:g} s in vain until {what}; {'; '.join(said)}") from None

    async def until_state(self, state: str, name: str = NAME) -> None:
        await self.until(f"{name} is {state}", lambda: self.state(name) == state)


@asynccontextmanager
async def stage(directory: Path) -> AsyncIterator[Stage]:
    """A cluster whose pods start in a moment; it has a controller from ``start_controller`` on."""
    async with AsyncExitStack() as stack:
        timing = Timing(LOAD, terminate_after=ENDING, leader_longer=2 * ENDING)
        cluster = await stack.enter_async_context(playground(Options(timing=timing), DEFAULT_API_GROUP))
        programs = Programs()
        stack.push_async_callback(programs.close)
        made = Stage(cluster, directory, programs)
        stack.push_async_callback(made.stop_controller)
        yield made
        failed = [each for each in programs.started if "Traceback" in each.output]
        assert not failed, "\n".join(each.output for each in failed)
