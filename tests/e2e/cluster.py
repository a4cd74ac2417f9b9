"""A whole cluster on this machine for stories: a control plane, the definitions, a role for the controller, and what
machines and LeaderWorkerSet's manager would do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout_lws.cli.install import rbac
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    Resource,
)
from rollout_lws.objects.writes import Create
from rollout_lws.sandbox.behaviours.network.gateway import Gateways
from rollout_lws.sandbox.definitions import gateway_api, istio
from tests.bench.processes import Failed, child
from tests.definitions import definitions
from tests.e2e import audit, contour
from tests.e2e.audit import Entry
from tests.e2e.certificates import Authority
from tests.e2e.defining import define
from tests.e2e.place import Place
from tests.e2e.plane import ControlPlane, Install, control_plane

#: Who the controller is to the API server: its role is all that it may do, and what it asks is written down.
CONTROLLER = "rollout-lws-controller"

_START_SECONDS = 60.0
#: How a JSON patch is refused whose test fails.
_CAME_TOO_LATE = "the server rejected our request due to an error in our request"


@dataclass(frozen=True, slots=True)
class Cluster:
    """``plane`` with everything on it; ``controller`` is the kubeconfig of who has the controller's role, ``gateway``
    the parentRef to Contour's Gateway, if there is one.
    """

    plane: ControlPlane
    controller: Path
    gateway: Mapping[str, str] | None = None

    @property
    def place(self) -> Place:
        return Place(self.plane.admin, self.controller, gateway=self.gateway)


def role() -> dict[str, Any]:
    """The ClusterRole that `rollout-lws install` gives the controller, and that the documentation shows."""
    return rbac.controller_role()


def binding(name: str, metadata: Mapping[str, Any], subject: Mapping[str, Any]) -> dict[str, Any]:
    """The ClusterRoleBinding that gives ``subject`` the ClusterRole ``name``."""
    reference = {"apiGroup": CLUSTER_ROLES.group, "kind": "ClusterRole", "name": name}
    return {"metadata": dict(metadata), "roleRef": reference, "subjects": [dict(subject)]}


async def install(admin: Client) -> None:
    """The definitions, and the documented role for CONTROLLER: what ``control_plane`` is given to install."""
    await define(admin, (*definitions(), *gateway_api.manifests(), *istio.manifests()), "stories release with it")
    await _grant(admin)


async def _install_with_contour(admin: Client) -> None:
    """The same with the definitions that the Gateway API and Contour publish, and a Gateway of Contour's."""
    await define(admin, definitions(), "stories release with it")
    await contour.install(admin)
    await _grant(admin)


async def _grant(admin: Client) -> None:
    granted = role()
    await admin.send(Create(CLUSTER_ROLES, granted, "the controller lives with it"))
    user = {"apiGroup": CLUSTER_ROLES.group, "kind": "User", "name": CONTROLLER}
    bound = binding(granted["metadata"]["name"], {"name": CONTROLLER}, user)
    await admin.send(Create(CLUSTER_ROLE_BINDINGS, bound, "the controller lives with it"))


@asynccontextmanager
async def cluster(
    tools: Path,
    logs: Path,
    *,
    nodes: int = 64,
    gpus_per_node: int = 8,
    ready_after: str = "1s",
    in_full: Sequence[Resource] = (),
    audited: Sequence[str] = (CONTROLLER,),
    install: Install = install,
    with_contour: bool = False,
) -> AsyncIterator[Cluster]:
    """Everything up and registered, from here to the end of the block; ``ready_after`` is how long pods load. The audit
    log has what the ``audited`` users ask, and of the kinds ``in_full`` each write of everybody's. ``with_contour``
    routes are accepted by Contour, whose kinds are installed instead of ``install``, and by the sandbox without.
    """
    install = _install_with_contour if with_contour else install
    async with AsyncExitStack() as stack:
        audited = control_plane(tools, logs, audited=audited, in_full=in_full, install=install)
        plane = await stack.enter_async_context(audited)
        arguments = ("-m", "tests.e2e.serve", str(plane.admin), "--webhooks", *map(str, webhook_certificates(logs)))
        options = ("--nodes", str(nodes), "--gpus-per-node", str(gpus_per_node), "--ready-after", ready_after)
        if with_contour:
            kubeconfig = plane.kubeconfig_for("contour", ["system:masters"])
            await stack.enter_async_context(contour.contour(kubeconfig, logs))
            options += ("--without", Gateways.name)
        served = await stack.enter_async_context(child("lws-sandbox", *arguments, *options, logs=logs))
        await served.told("ready", lambda _: None, _START_SECONDS)
        yield Cluster(plane, plane.kubeconfig_for(CONTROLLER), contour.PARENT if with_contour else None)
        await served.rest_of("ready")
        if await served.process.wait() != 0:
            raise Failed(f"what stands in for machines and LeaderWorkerSet failed\n{served.last_words()}")


def webhook_certificates(directory: Path) -> tuple[Path, Path, Path]:
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


def invalid(audit_log: Path) -> list[Entry]:
    """What CONTROLLER has sent that the server found invalid. Patches that were bound to an object as it was seen, and
    came too late, are none of that.
    """
    return [
        each
        for each in audit.read(audit_log)
        if each.user == CONTROLLER and each.is_write and each.code in (400, 422) and each.said != _CAME_TOO_LATE
    ]


def _kind(entry: Entry) -> str:
    """As a role names it: leaderworkersets.leaderworkerset.x-k8s.io, rollouts/status.rollouts.kruise.io."""
    name, _, group = entry.resource.partition(".")
    kind = f"{name}/{entry.subresource}" if entry.subresource else name
    return f"{kind}.{group}" if group else kind
