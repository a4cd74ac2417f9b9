"""Stories on a cluster that somebody else has made: found as it is, and left as it was."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout_lws.api import crd
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.kube.client import Client
from rollout_lws.kubeconfig import context as kubeconfig
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    LEADER_WORKER_SETS,
    NAMESPACES,
)
from rollout_lws.objects.writes import Create, Delete
from tests.e2e import namespaces, needs, rights
from tests.e2e.place import Place
from tests.e2e.plane import connected
from tests.e2e.waiting import condition, until
from tests.scenarios.containers import Containers
from tests.scenarios.names import ROLLOUTS

#: Which cluster: a kubeconfig, whose current context counts. Its Gateway for routes, as namespace/name. The image of
#: stories' pods: any that runs until it is ended.
KUBECONFIG, GATEWAY, IMAGE = "ROLLOUT_LWS_E2E_KUBECONFIG", "ROLLOUT_LWS_E2E_GATEWAY", "ROLLOUT_LWS_E2E_IMAGE"
#: It waits for its end and nothing else, and every machine of a cluster has one like it already.
PAUSE = "registry.k8s.io/pause:3.10"
#: On every object of a run that stands outside of its namespaces, and on these: what is left over is found by it.
LABEL = "rollout-lws-e2e"
#: A controller that sees a Rollout says something about it within a fraction of this.
_ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a person has asked for; ``gateway`` is a namespace and a name."""

    kubeconfig: Path
    gateway: tuple[str, str] | None
    image: str


def chosen(environment: Mapping[str, str] = os.environ) -> Chosen | None:
    """The cluster that the environment names, None when it names none. Lacking when it makes no sense."""
    if not (named := environment.get(KUBECONFIG)):
        return None
    path = Path(named).expanduser()
    if not path.is_file():
        raise needs.Lacking(f"there is no kubeconfig {named}: give the path of one file")
    namespace, _, name = environment.get(GATEWAY, "").partition("/")
    if bool(namespace) != bool(name):
        raise needs.Lacking(f"{environment[GATEWAY]!r} is no Gateway: give its namespace/name")
    return Chosen(path, (namespace, name) if name else None, environment.get(IMAGE) or PAUSE)


async def look(asked: Chosen) -> needs.Found:
    """What is found on the cluster before anything is changed. Lacking when stories cannot be told there."""
    try:
        # People in stories and their controllers do not read a kubeconfig with the same code.
        kubeconfig.load(Target(kubeconfig=str(asked.kubeconfig)))
        async with connected(asked.kubeconfig) as connection:
            return await needs.look(connection, asked.gateway)
    except UsageError as error:
        raise needs.Lacking(str(error)) from error


@asynccontextmanager
async def elsewhere(asked: Chosen, found: needs.Found, directory: Path, tell: list[str]) -> AsyncIterator[Place]:
    """The cluster made ready for stories, and nothing left of them at the end of the block.

    What a person should know of it is added to ``tell``. Lacking when it turns out not to be fit for them.
    """
    run = f"rollout-lws-e2e-{secrets.token_hex(3)}"
    labels = {LABEL: run}
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(connected(asked.kubeconfig))
        client = Client(connection)
        stack.push_async_callback(_look_back, client, run, tell)
        await stack.enter_async_context(_defined(client, found.definitions, labels, tell))
        stack.push_async_callback(_swept, client, run)
        if len(found.definitions) < len(crd.render()):
            await _alone(client, f"{run}-probe", labels)
        try:
            account = rights.account(connection, asked.kubeconfig, run, labels, directory)
            controller = await stack.enter_async_context(account)
        except ApiError as error:
            if error.code != 403:
                raise
            tell.append(f"the controllers have the rights of {asked.kubeconfig}, which may not grant others: {error}")
            controller = asked.kubeconfig
        parent = {"namespace": asked.gateway[0], "name": asked.gateway[1]} if asked.gateway else None
        containers = Containers(asked.image)
        yield Place(asked.kubeconfig, controller, f"{run}-", labels, containers, parent, found.unrouted)


@asynccontextmanager
async def _defined(
    client: Client, definitions: Sequence[Mapping[str, Any]], labels: Mapping[str, str], tell: list[str]
) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for each in definitions:
            meta = each["metadata"]
            body = {**each, "metadata": {**meta, "labels": {**meta.get("labels", {}), **labels}}}
            made = json.loads(await client.send(Create(CUSTOM_RESOURCE_DEFINITIONS, body, "stories release with it")))
            stack.push_async_callback(_undefine, client, made["metadata"], tell)
        for body in definitions:
            name = body["metadata"]["name"]
            await until(client, CUSTOM_RESOURCE_DEFINITIONS, "", name, _established)
        yield


def _established(obj: dict[str, Any] | None) -> bool:
    return condition(obj, "Established") == "True"


async def _undefine(client: Client, meta: Mapping[str, Any], tell: list[str]) -> None:
    """Whoever has begun to use what we have installed goes on using it."""
    if json.loads(await client.list(ROLLOUTS))["items"]:
        tell.append(f"the CustomResourceDefinition {meta['name']} stays, because there are Rollouts that are not ours")
        return
    write = Delete(CUSTOM_RESOURCE_DEFINITIONS, "", meta["name"], meta["uid"], "it was not there before")
    await client.send(write)
    await until(client, CUSTOM_RESOURCE_DEFINITIONS, "", meta["name"], lambda obj: obj is None)


async def _alone(client: Client, namespace: str, labels: Mapping[str, str]) -> None:
    """Lacking when somebody else's controller takes care of Rollouts: two of them would race in each story."""
    await client.send(
        Create(NAMESPACES, {"metadata": {"name": namespace, "labels": dict(labels)}}, "to see who answers")
    )
    reference = {
        "apiVersion": LEADER_WORKER_SETS.api_version,
        "kind": LEADER_WORKER_SETS.kind,
        "name": "does-not-exist",
    }
    body = {
        "apiVersion": ROLLOUTS.api_version,
        "kind": ROLLOUTS.kind,
        "metadata": {"namespace": namespace, "name": "probe"},
        "spec": {"workloadRef": reference, "strategy": {"canary": {"steps": [{"replicas": 1}]}}},
    }
    await client.send(Create(ROLLOUTS, body, "to see who answers"))
    try:
        await until(client, ROLLOUTS, namespace, "probe", lambda obj: bool(obj and obj.get("status")), _ANSWER_SECONDS)
    except TimeoutError:
        return
    raise needs.Lacking("a controller of Rollouts runs on this cluster already: stop it, or take another cluster")


async def _look_back(client: Client, run: str, tell: list[str]) -> None:
    """Tell what is left of the run all the same, and how to be rid of it."""
    for resource in (NAMESPACES, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, CUSTOM_RESOURCE_DEFINITIONS):
        try:
            listed = json.loads(await client.list(resource, "", {"labelSelector": f"{LABEL}={run}"}))["items"]
        except ApiError as error:
            if error.code != 403:
                raise
            continue
        if listed:
            tell.append(f"{len(listed)} {resource} are left: kubectl delete {resource} -l {LABEL}={run}")


async def _swept(client: Client, run: str) -> None:
    """Take away the namespaces that stories which were interrupted have left."""
    listed = json.loads(await client.list(NAMESPACES, "", {"labelSelector": f"{LABEL}={run}"}))["items"]
    await asyncio.gather(*(namespaces.remove(client, each["metadata"]["name"]) for each in listed))
