"""A cluster with a controller, an installation and the LWS of an example, and what of ours is on it."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result

from rollout_lws.api.resources import rollouts
from rollout_lws.cli.main import program
from rollout_lws.errors import RolloutLwsError
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    DEPLOYMENTS,
    EVENTS,
    LEADER_WORKER_SETS,
    PODS,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.sandbox.behaviours.network.gateway_status import CONTROLLER as GATEWAY_CONTROLLER
from rollout_lws.sandbox.store import Event
from tests.cli.uninstall.commands import NOTHING, carry_out, printed
from tests.reader import Reader, reading

Object = dict[str, Any]
IMAGE = "registry.example.com/rollout-lws:0.1.0"
HOME, CONTROLLER = "rollout-lws-system", "rollout-lws-controller"
#: Seconds after which a story is taken for hung.
_PATIENCE = 20
_COPIES = tuple(f"{each}/" for each in (PODS, STATEFUL_SETS, CONTROLLER_REVISIONS))
_INSTALL = f"rollout-lws install --image {IMAGE} --timeout 0"


class Place:
    """The words of a story: ``name`` is that of the LWS and of its Rollout."""

    def __init__(self, reader: Reader, example: str) -> None:
        self.reader, self.server = reader, reader.server
        self.manifests: list[Object] = []
        for file in sorted(Path(reader.environment["HOME"]).glob(f"examples/{example}/*.yaml")):
            self.manifests += [each for each in yaml.safe_load_all(file.read_text()) if each]
        self.name = next(each["metadata"]["name"] for each in self.manifests if each["kind"] == "Rollout")

    def resource(self, kind: str) -> Resource:
        return next(each.resource for each in self.server.served if each.resource.kind == kind)

    async def install(self, command: str = _INSTALL) -> None:
        """With a Deployment that says that it runs; the controller of these tests is in this process."""
        await self.does(command)
        self.runs(1)

    def runs(self, available: int) -> None:
        status = {"status": {"availableReplicas": available, "replicas": 1}}
        self.server.patch(DEPLOYMENTS, HOME, CONTROLLER, status, subresource="status")

    async def apply(self) -> None:
        for each in self.manifests:
            namespaced = {"metadata": {"namespace": "default", **each["metadata"]}}
            self.server.create(self.resource(each["kind"]), {**each, **namespaced})
        await self.until(lambda: self.state() == "Healthy" and self.all_ready())

    @property
    def lws(self) -> Object:
        return self.server.get(LEADER_WORKER_SETS, "default", self.name)

    def rollout(self) -> Object:
        return self.server.get(rollouts(), "default", self.name)

    def state(self) -> str:
        return str(((self.rollout().get("status") or {}).get("summary") or {}).get("state") or "")

    def all_ready(self) -> bool:
        """All groups, of which none is missing."""
        wanted, ready = self.lws["spec"]["replicas"], (self.lws.get("status") or {}).get("readyReplicas")
        return bool(ready == wanted == len(self.leaders()))

    def leaders(self) -> dict[str, tuple[str, str]]:
        return self.reader.leaders(self.name)

    def tags(self) -> set[str]:
        return set(self.reader.tags(self.name))

    async def release(self, tag: str, state: str = "AwaitingApproval") -> None:
        await self.does(f"rollout-lws set image {self.name} '*=nginxinc/nginx-unprivileged:{tag}'")
        await self.until(lambda: self.state() == state)

    def strategy(self) -> Object:
        found: Object = self.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
        return found

    def manifested(self) -> Object:
        """The strategy of the manifest, with the defaults of LeaderWorkerSet."""
        (lws,) = [each for each in self.manifests if each["kind"] == LEADER_WORKER_SETS.kind]
        written = (lws["spec"].get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
        return {"partition": 0, "maxSurge": 0, "maxUnavailable": 1, **written}

    async def run(self, command: str) -> Result:
        """The command line in a thread, with nobody at a terminal; errors that a person can mend are in its result."""
        flags = ["--kubeconfig", self.reader.environment["KUBECONFIG"]]
        arguments = shlex.split(command.removeprefix("rollout-lws "))
        result = await asyncio.to_thread(CliRunner().invoke, program, [*flags, *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit | RolloutLwsError):
            raise result.exception
        return result

    async def does(self, command: str) -> str:
        """What a command that ends well prints."""
        result = await self.run(command)
        assert result.exit_code == 0, (result.exception, result.output)
        return result.stdout

    async def uninstall(self, *flags: str) -> list[str]:
        """The lines that are told."""
        return (await self.does(f"rollout-lws uninstall {' '.join(flags or ('--yes',))}")).splitlines()

    async def leaves(self) -> list[str]:
        """The lines that are told; then everything is deleted as they say."""
        told = await self.uninstall()
        carry_out(self.server, printed(told))
        assert (await self.uninstall())[-1] == NOTHING
        return told

    def makes(self) -> Counter[str]:
        """How often each regular leader is made from now on."""
        made: Counter[str] = Counter()
        named = re.compile(rf"{re.escape(self.name)}-[0-9]+")

        def count(event: Event) -> None:
            name = event.object["metadata"]["name"]
            if event.resource == PODS and event.type == "ADDED" and named.fullmatch(name):
                made[name] += 1

        self.server.store.subscribe(count)
        return made

    async def until(self, holds: Callable[[], bool]) -> None:
        """Looked at whenever anything changes."""
        done = asyncio.Event()

        def look(_: Event | None = None) -> None:
            if holds():
                done.set()

        unsubscribe = self.server.store.subscribe(look)
        look()
        try:
            await asyncio.wait_for(done.wait(), _PATIENCE)
        finally:
            unsubscribe()

    def everything(self) -> dict[str, Object]:
        """All objects, by kind and place; the same Events are served in two groups."""
        found = {}
        for served in self.server.served:
            if served.resource in (EVENTS, CORE_EVENTS):
                continue
            for each in self.server.list(served.resource, ""):
                meta = each["metadata"]
                found[f"{served.resource}/{meta.get('namespace', '')}/{meta['name']}"] = each
        return found

    def traces(self, group: str = "rollouts.kruise.io") -> list[str]:
        """Whatever speaks of us: a key, a finalizer, a name. Who wrote a field is the API server's own record. Labels
        of pods, and LWS's copies of the marks of an LWS, do nothing and go with the next version.
        """
        found = []
        for place, each in self.everything().items():
            unread = {"managedFields"}
            if place.startswith(_COPIES):
                unread |= {"labels", "annotations"}
            unsigned = {key: value for key, value in each["metadata"].items() if key not in unread}
            text = json.dumps({**each, "metadata": unsigned}).replace(GATEWAY_CONTROLLER, "")
            said = re.findall(rf"[^\"]*(?:{re.escape(group)}|rollout-lws)[^\"]*", text)
            found += [f"{place}: {each}" for each in said]
            if "canary" in place:
                found.append(place)
        return found


@asynccontextmanager
async def place(home: Path, example: str) -> AsyncIterator[Place]:
    async with reading(home) as reader:
        yield Place(reader, example)
