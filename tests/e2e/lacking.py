"""Controllers in one process, each in a namespace of its own, under an account that lacks one right of the role."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from rollout_lws.cli.install.rbac import Rule, controller_rules
from rollout_lws.clock import WallClock
from rollout_lws.controller.controller import Controller
from rollout_lws.kube.client import Client
from rollout_lws.kube.denials import Denials
from rollout_lws.metrics import Metrics
from rollout_lws.objects.permissions import Permission
from rollout_lws.objects.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS
from rollout_lws.objects.writes import Create, Patch
from rollout_lws.settings import Settings
from tests.controller.guarded import Right
from tests.e2e.cluster import binding
from tests.e2e.plane import ControlPlane, connected


class Heard(Denials):
    """Tells when the API server has denied a right, and when it has allowed it."""

    def __init__(self, right: Right) -> None:
        super().__init__()
        self._right = right
        self.denied, self.allowed = asyncio.Event(), asyncio.Event()
        self.times = 0

    def answered(self, permission: Permission, error: Exception | None) -> None:
        super().answered(permission, error)
        if _right(permission) != self._right:
            return
        if self.now_denied:
            self.times += 1
            # What follows from the first has been done when it is asked for again.
            if self.times > 1:
                self.denied.set()
        elif self.times:
            self.allowed.set()

    @property
    def now_denied(self) -> Collection[Right]:
        return {_right(permission) for permission, _ in self.current}


def _right(permission: Permission) -> Right:
    subresource = f"/{permission.subresource}" if permission.subresource else ""
    return Right(permission.resource.group, permission.resource.plural + subresource, permission.verb)


class Lacking:
    """A controller that lacks ``right`` in ``namespace`` until it is restored; ``lacking`` makes one."""

    def __init__(self, admin: Client, right: Right, namespace: str, heard: Heard, controller: Controller) -> None:
        self.right, self.namespace, self.heard, self.controller = right, namespace, heard, controller
        self._admin = admin

    async def give_back(self) -> None:
        for cluster in (False, True):
            body = {"rules": _rules(cluster, None)}
            await self._admin.send(Patch(CLUSTER_ROLES, "", _role(self.namespace, cluster), body, "it is fixed"))


@asynccontextmanager
async def lacking(plane: ControlPlane, admin: Client, namespace: str, right: Right) -> AsyncIterator[Lacking]:
    """It watches ``namespace``, which there must be, as a user of that name, from here to the end of the block."""
    user = {"apiGroup": CLUSTER_ROLES.group, "kind": "User", "name": namespace}
    for cluster in (False, True):
        role = _role(namespace, cluster)
        body = {"metadata": {"name": role}, "rules": _rules(cluster, right)}
        await admin.send(Create(CLUSTER_ROLES, body, "all but one"))
        place = {"name": role} if cluster else {"name": role, "namespace": namespace}
        kind = CLUSTER_ROLE_BINDINGS if cluster else ROLE_BINDINGS
        await admin.send(Create(kind, binding(role, place, user), "the controller lives with it"))
    async with connected(plane.kubeconfig_for(namespace)) as connection:
        heard = Heard(right)
        client = Client(connection, denials=heard)
        controller = Controller(client, Settings(namespaces=(namespace,)), WallClock(), Metrics())
        task = asyncio.create_task(_run(controller))
        try:
            yield Lacking(admin, right, namespace, heard, controller)
        finally:
            task.cancel()
            await asyncio.wait([task])


async def _run(controller: Controller) -> None:
    async with controller.running():
        await asyncio.Event().wait()


def _role(namespace: str, cluster: bool) -> str:
    return f"{namespace}-cluster" if cluster else namespace


def _rules(cluster: bool, without: Right | None) -> list[dict[str, Any]]:
    """The controller's, for what is in namespaces or for what is in none, all but one right of them."""
    return [
        Rule(rule.group, (resource,), (verb,)).rendered()
        for rule in controller_rules()
        if rule.cluster is cluster
        for resource in rule.resources
        for verb in rule.verbs
        if (rule.group, resource, verb) != without
    ]
