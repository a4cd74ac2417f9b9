"""Who stories' controllers are on a cluster that somebody else has made: an account with the documented role."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.kube.client import Client
from rollout_lws.kube.connection import Connection
from rollout_lws.kube.status import refused
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    Resource,
)
from rollout_lws.objects.writes import Create, Delete
from tests.e2e import namespaces
from tests.e2e.cluster import binding, role

#: Far longer than all stories take.
_TOKEN_SECONDS = 6 * 3600
_ACCOUNT = "controller"


@asynccontextmanager
async def account(
    connection: Connection, kubeconfig: Path, name: str, labels: Mapping[str, str], directory: Path
) -> AsyncIterator[Path]:
    """A kubeconfig, kept in ``directory``, of a service account with the controller's ClusterRole under ``name``, from
    here to the end of the block. ApiError 403 when the user of ``kubeconfig`` may not grant that much.
    """
    client = Client(connection)
    metadata = {"name": name, "labels": dict(labels)}
    subject = {"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": name}
    async with AsyncExitStack() as stack:
        for resource, body in (
            (CLUSTER_ROLES, {**role(), "metadata": metadata}),
            (CLUSTER_ROLE_BINDINGS, binding(name, metadata, subject)),
        ):
            made = json.loads(await client.send(Create(resource, body, "the controllers live with it")))
            stack.push_async_callback(_delete, client, resource, made)
        await client.send(Create(NAMESPACES, {"metadata": metadata}, "the controllers' account lives there"))
        stack.push_async_callback(namespaces.remove, client, name)
        account = {"metadata": {"namespace": name, "name": _ACCOUNT}}
        await client.send(Create(SERVICE_ACCOUNTS, account, "the controllers' account"))
        yield await login(connection, kubeconfig, name, _ACCOUNT, directory)


async def login(connection: Connection, kubeconfig: Path, namespace: str, account: str, directory: Path) -> Path:
    """The current context of ``kubeconfig`` with a service account as its user, kept in ``directory``."""
    user = {"token": await _token(connection, namespace, account)}
    path = directory / f"{account}.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(_as(user, kubeconfig)))
    return path


async def _delete(client: Client, resource: Resource, made: Mapping[str, Any]) -> None:
    meta = made["metadata"]
    await client.send(Delete(resource, "", meta["name"], meta["uid"], "the stories are told"))


async def _token(connection: Connection, namespace: str, account: str) -> str:
    spec = {"expirationSeconds": _TOKEN_SECONDS}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    answer = await connection.request(
        "POST",
        SERVICE_ACCOUNTS.path(namespace, account, "token"),
        params={},
        body=json.dumps(body).encode(),
        content_type="application/json",
        timeout=30.0,
    )
    if answer.status >= 400:
        raise refused(answer.status, answer.headers, answer.body)
    return str(json.loads(answer.body)["status"]["token"])


def _as(login: Mapping[str, str], kubeconfig: Path) -> dict[str, Any]:
    """The current context of ``kubeconfig`` with another user."""
    config = yaml.safe_load(kubeconfig.read_text())
    context = next(each["context"] for each in config["contexts"] if each["name"] == config["current-context"])
    cluster = next(each["cluster"] for each in config["clusters"] if each["name"] == context["cluster"])
    if authority := cluster.get("certificate-authority"):
        cluster = {**cluster, "certificate-authority": str(kubeconfig.parent.absolute() / authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": cluster}],
        "users": [{"name": _ACCOUNT, "user": dict(login)}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": _ACCOUNT}}],
        "current-context": "e2e",
    }
