"""Where stories are told, as far as they have to know: a control plane of their own, or any other cluster."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rollout_lws.kube.client import Client
from tests.e2e import namespaces
from tests.e2e.plane import connected
from tests.e2e.world import RemoteWorld, remote_world
from tests.kubectl.programs import Programs
from tests.scenarios.containers import TAGGED, Containers

#: What the reason begins with for which some are skipped.
UNROUTED = "stories with a route"
#: What Kubernetes allows a namespace's name to have, in characters.
_LONGEST = 63


@dataclass(frozen=True, slots=True)
class Place:
    """``admin`` is the kubeconfig of the stories' people, ``controller`` that of their controllers.

    Names of namespaces begin with ``prefix``; with ``labels`` they get those, and go when their story has ended: a
    control plane of one's own goes as a whole. ``gateway`` is the parentRef to a Gateway that is lent; without one each
    story makes its own. ``unrouted`` says why stories with a route cannot be told, "" where they can.
    """

    admin: Path
    controller: Path
    prefix: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    containers: Containers = TAGGED
    gateway: Mapping[str, str] | None = None
    unrouted: str = ""

    def namespace(self, name: str) -> str:
        """That of the story ``name``: as long as a namespace's name may be, and no two stories' the same."""
        whole = self.prefix + name
        if len(whole) <= _LONGEST:
            return whole
        return f"{whole[: _LONGEST - 9].rstrip('-')}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"

    @asynccontextmanager
    async def world(self, name: str, programs: Programs) -> AsyncIterator[RemoteWorld]:
        """The world of the story ``name``."""
        namespace = self.namespace(name)
        async with AsyncExitStack() as stack:
            if self.labels:
                client = Client(await stack.enter_async_context(connected(self.admin)))
                stack.push_async_callback(namespaces.remove, client, namespace)
            world = remote_world(
                self.admin,
                self.controller,
                namespace,
                programs,
                labels=self.labels,
                containers=self.containers,
                gateway=self.gateway,
            )
            yield await stack.enter_async_context(world)
