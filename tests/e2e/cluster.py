"""A whole cluster on this machine for stories: a control plane, the definitions, a role for the controller, and what
machines and LeaderWorkerSet's manager would do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from rollout_lws.objects.writes import Create
from rollout_lws.sandbox import gateway_api
from tests.bench.processes import Failed, child
from tests.definitions import definitions
from tests.docs.pages import blocks
from tests.e2e import audit
from tests.e2e.audit import Entry
from tests.e2e.certificates import Authority
from tests.e2e.place import Place
from tests.e2e.plane import ControlPlane, control_plane
from tests.e2e.waiting import condition, until

#: Who the controller is to the API server: its role is all that it may do, and what it asks is written down.
CONTROLLER = "rollout-lws-controller"

_RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLES = Resource(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
_PAGE = Path(__file__).parents[2] / "docs" / "run-on-a-cluster.md"
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """``plane`` with everything on it; ``controller`` is the kubeconfig of who has the controller's role."""

    plane: ControlPlane
    controller: Path

    @property
    def place(self) -> Place:
        return Place(self.plane.admin, self.controller)


def role() -> dict[str, Any]:
    """The ClusterRole that the documentation tells people to install."""
    found = [yaml.safe_load(each) for each in blocks(_PAGE, "yaml")]
    role: dict[str, Any] = next(each for each in found if each["kind"] == "ClusterRole")
    return role


def binding(name: str, metadata: Mapping[str, Any], subject: Mapping[str, Any]) -> dict[str, Any]:
    """The ClusterRoleBinding that gives ``subject`` the ClusterRole ``name``."""
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
    return {"metadata": dict(metadata), "roleRef": reference, "subjects": [dict(subject)]}


@asynccontextmanager
async def cluster(
    tools: Path,
    logs: Path,
    *,
    nodes: int = 64,
    gpus_per_node: int = 8,
    ready_after: str = "1s",
    in_full: Sequence[Resource] = (),
) -> AsyncIterator[Cluster]:
    """Everything up and registered, from here to the end of the block; ``ready_after`` is how long pods load, and of
    the kinds ``in_full`` the audit log has each write of everybody's.
    """
    async with AsyncExitStack() as stack:
        audited = control_plane(tools, logs, audited=[CONTROLLER], in_full=in_full, install=install)
        plane = await stack.enter_async_context(audited)
        arguments = ("-m", "tests.e2e.serve", str(plane.admin), "--webhooks", *map(str, _certificates(logs)))
        options = ("--nodes", str(nodes), "--gpus-per-node", str(gpus_per_node), "--ready-after", ready_after)
        served = await stack.enter_async_context(child("lws-sandbox", *arguments, *options, logs=logs))
        await served.told("ready", lambda _: None, _START_SECONDS)
        yield Cluster(plane, plane.kubeconfig_for(CONTROLLER))
        await served.rest_of("ready")
        if await served.process.wait() != 0:
            raise Failed(f"what stands in for machines and LeaderWorkerSet failed\n{served.last_words()}")


async def install(admin: Client) -> None:
    """The definitions, and the documented role for CONTROLLER: what ``control_plane`` is given to install."""
    for body in (*definitions(), *gateway_api.manifests()):
        await admin.send(Create(CUSTOM_RESOURCE_DEFINITIONS, body, "stories release with it"))
    for body in (*definitions(), *gateway_api.manifests()):
        name = body["metadata"]["name"]
        await until(admin, CUSTOM_RESOURCE_DEFINITIONS, "", name, lambda obj: condition(obj, "Established") == "True")
    granted = role()
    await admin.send(Create(CLUSTER_ROLES, granted, "the controller lives with it"))
    user = {"apiGroup": _RBAC, "kind": "User", "name": CONTROLLER}
    bound = binding(granted["metadata"]["name"], {"name": CONTROLLER}, user)
    await admin.send(Create(CLUSTER_ROLE_BINDINGS, bound, "the controller lives with it"))


def _certificates(directory: Path) -> tuple[Path, Path, Path]:
    """Certificate, key and authority of the webhooks' server."""
    authority = Authority("webhooks")
    issued = authority.server("127.0.0.1")
    paths = directory / "webhooks.crt", directory / "webhooks.key", directory / "webhooks-ca.crt"
    for path, content in zip(paths, (issued.certificate, issued.key, authority.certificate), strict=True):
        path.write_bytes(content)
    return paths


def beyond_the_role(audit_log: Path) -> list[Entry]:
    """What CONTROLLER has asked beyond its role, or was forbidden, by a log of which that it asked something at all is
    certain.
    """
    allowed = {
        (verb, f"{resource}.{group}" if group else resource)
        for rule in role()["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    asked = [each for each in audit.read(audit_log) if each.user == CONTROLLER]
    assert asked, "the audit log is empty"
    return [each for each in asked if each.code == 403 or (each.verb, _kind(each)) not in allowed]


def _kind(entry: Entry) -> str:
    """As a role names it: leaderworkersets.leaderworkerset.x-k8s.io, rollouts/status.rollouts.kruise.io."""
    name, _, group = entry.resource.partition(".")
    kind = f"{name}/{entry.subresource}" if entry.subresource else name
    return f"{kind}.{group}" if group else kind
