"""Contour, which follows the routes of a real gateway and says whether it accepts them.

The data plane is another process: tests.nodes.gateway adds it. Contour takes some 60 MB.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES
from rollout_lws.objects.writes import Create
from rollout_lws.sandbox.api_resources import GATEWAY_CLASSES, GATEWAYS
from tests.bench.processes import Child
from tests.e2e import tools
from tests.e2e.daemons import daemon
from tests.e2e.defining import define
from tests.kubectl.programs import held_port

LOOPBACK = "127.0.0.1"
#: The Gateway, and its namespace.
GATEWAY, GATEWAY_HOME = "inference", "default"
#: The parentRef of its routes.
PARENT = {"name": GATEWAY, "namespace": GATEWAY_HOME}
#: The port of the Gateway's listener; Envoy listens on another one, which Contour derives from it.
LISTENER_PORT, ENVOY_PORT = 8080, 16080

#: Contour looks for its own defaults in a namespace of its own.
_HOME = "projectcontour"
_WHY = "routes are written with it"


def missing() -> str:
    """Why Contour is not here and how to get it, in one line; empty when it is."""
    return tools.missing(tools.GATEWAY)


def program() -> Path:
    return tools.directory(tools.GATEWAY) / "contour"


def definitions() -> Iterator[dict[str, Any]]:
    """The kinds of the Gateway API and Contour's own, as their projects publish them."""
    published = tools.directory(tools.GATEWAY)
    for path in (*sorted((published / "gateway-api").glob("gateway.*.yaml")), published / "contour.yaml"):
        for body in yaml.load_all(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if body and body["kind"] == CUSTOM_RESOURCE_DEFINITIONS.kind:
                yield body


async def install(admin: Client) -> None:
    """The definitions, the namespace that Contour expects, and a Gateway of its class for routes of every namespace."""
    await define(admin, definitions(), _WHY)
    await admin.send(Create(NAMESPACES, NAMESPACES.manifest(_HOME), "Contour looks there"))
    of_ours = {"controllerName": "projectcontour.io/gateway-controller"}
    await admin.send(Create(GATEWAY_CLASSES, GATEWAY_CLASSES.manifest("contour", spec=of_ours), _WHY))
    routes = {"namespaces": {"from": "All"}}
    listener = {"name": "http", "port": LISTENER_PORT, "protocol": "HTTP", "allowedRoutes": routes}
    spec = {"gatewayClassName": "contour", "listeners": [listener]}
    await admin.send(Create(GATEWAYS, GATEWAYS.manifest(GATEWAY, GATEWAY_HOME, spec=spec), _WHY))


@asynccontextmanager
async def contour(
    kubeconfig: Path, logs: Path, xds_port: int | None = None, address: str = LOOPBACK
) -> AsyncIterator[Child]:
    """Contour from here to the end of the block, on what ``install`` has installed. It tells an Envoy that listens at
    ``address`` of the routes, by ``xds_port`` (None: by any).
    """
    configuration = {
        "gateway": {"gatewayRef": {"namespace": GATEWAY_HOME, "name": GATEWAY}},
        "kubeconfig": str(kubeconfig),
        "incluster": False,
        "timeouts": {"request-timeout": "infinity"},
    }
    file = logs / "contour-configuration.yaml"
    file.write_text(yaml.safe_dump(configuration))
    ports = {"xds": xds_port or held_port(), "http": held_port(), "health": held_port(), "debug-http": held_port()}
    at = [word for name, port in ports.items() for word in (f"--{name}-address={LOOPBACK}", f"--{name}-port={port}")]
    envoys = (f"--envoy-service-http-address={address}", f"--envoy-service-http-port={LISTENER_PORT}")
    options = ("--disable-leader-election", "--insecure", f"--stats-address={LOOPBACK}", *at, *envoys)
    configured = (f"--config-path={file}", f"--kubeconfig={kubeconfig}")
    async with daemon(program(), "serve", *configured, *options, logs=logs) as running:
        yield running
