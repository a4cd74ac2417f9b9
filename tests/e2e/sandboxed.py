"""A sandbox API server with nothing behind it but what a real control plane has, and that calls webhooks as one does.

It stands in for kube-apiserver and kube-controller-manager where those are not built: behaviours outside it are
clients over HTTP, as they are of the real ones.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from rollout_lws.errors import ApiError
from rollout_lws.kube.connection import connect
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from rollout_lws.sandbox.api_resources import BUILTINS, Served
from rollout_lws.sandbox.apiserver import ApiServer, Operation
from rollout_lws.sandbox.behaviours.garbage_collector import GarbageCollector
from rollout_lws.sandbox.behaviours.network.endpoint_slices import EndpointSlices
from rollout_lws.sandbox.behaviours.runner import Runner
from rollout_lws.sandbox.behaviours.statefulset import StatefulSets
from rollout_lws.sandbox.definitions import gateway_api, lws_crd
from rollout_lws.sandbox.faults import Faults
from rollout_lws.sandbox.http import Server
from rollout_lws.sandbox.patching import patches
from rollout_lws.sandbox.wire import selectors
from tests.e2e.registration import MUTATING, VALIDATING

_WEBHOOK_SECONDS = 10.0
_CONFIGURATIONS = tuple(Served(each, each, each.kind.lower()) for each in (MUTATING, VALIDATING))


class ControlPlane:
    """``faults`` befall its clients, and none of what runs inside; ``port`` stays the same after a stop. Without
    ``gateways`` no kind of the Gateway API is served.
    """

    def __init__(self, *, gateways: bool = True) -> None:
        served = (*BUILTINS, *(gateway_api.SERVED if gateways else ()), *_CONFIGURATIONS)
        self.server = ApiServer(time.time, served, seed=1)
        self.server.create(CUSTOM_RESOURCE_DEFINITIONS, lws_crd.manifest())
        self.server.admission.append(self._admit)
        self.faults = Faults()
        self._http = Server(self.server, faults=self.faults)
        self._controllers = Runner(self.server, (StatefulSets(), GarbageCollector(), EndpointSlices()))
        self._port = 0

    async def start(self) -> None:
        """Serve; after a stop at the same address."""
        await self._http.start(port=self._port)
        self._port = int(self._http.url.rpartition(":")[2])

    async def stop(self) -> None:
        """Cut every watch and refuse connections; what runs inside goes on."""
        await self._http.stop()

    async def until(self, holds: Callable[[], bool], seconds: float = 20.0) -> None:
        """Wait until ``holds``, which is looked at after every change."""
        changed = asyncio.Event()
        unsubscribe = self.server.store.subscribe(lambda _: changed.set())
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    changed.clear()
                    await changed.wait()
        finally:
            unsubscribe()

    def _admit(self, operation: Operation) -> dict[str, Any]:
        """Call the webhooks that are registered for it, mutating ones first."""
        obj = operation.object
        for entry in self._registered(operation):
            obj = _called(entry, Operation(operation.verb, operation.resource, obj, operation.old))
        return obj

    def _registered(self, operation: Operation) -> Iterator[Mapping[str, Any]]:
        if operation.resource in (MUTATING, VALIDATING) or operation.subresource:
            return
        for resource in (MUTATING, VALIDATING):
            for configuration in self.server.list(resource):
                yield from (each for each in configuration["webhooks"] if _concerns(each, operation))


def _concerns(entry: Mapping[str, Any], operation: Operation) -> bool:
    labels = operation.object["metadata"].get("labels") or {}
    selected = selectors.parse_labels(selectors.format_labels(entry.get("objectSelector"))).matches(labels)
    resource = operation.resource
    return selected and any(
        resource.group in rule["apiGroups"]
        and resource.version in rule["apiVersions"]
        and resource.plural in rule["resources"]
        and operation.verb.upper() in rule["operations"]
        for rule in entry["rules"]
    )


def _called(entry: Mapping[str, Any], operation: Operation) -> dict[str, Any]:
    """What the webhook makes of the object, asked over TLS as kube-apiserver does; ApiError when it refuses."""
    asked = {
        "uid": "review-1",
        "operation": operation.verb.upper(),
        "object": operation.object,
        "oldObject": operation.old,
        "namespace": operation.object["metadata"].get("namespace", ""),
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    client = entry["clientConfig"]
    trusted = ssl.create_default_context(cadata=base64.b64decode(client["caBundle"]).decode())
    request = urllib.request.Request(
        client["url"], msgspec.json.encode(review), {"content-type": "application/json"}, method="POST"
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted))
    with opener.open(request, timeout=_WEBHOOK_SECONDS) as answer:
        response = msgspec.json.decode(answer.read())["response"]
    assert response["uid"] == asked["uid"]
    if not response["allowed"]:
        status = response["status"]
        why = f'admission webhook "{entry["name"]}" denied the request: {status["message"]}'
        raise ApiError(status["code"], status["reason"], why)
    if "patch" not in response:
        return operation.object
    assert response["patchType"] == "JSONPatch"
    patched: dict[str, Any] = patches.json_patch(
        operation.object, msgspec.json.decode(base64.b64decode(response["patch"]))
    )
    return patched


@asynccontextmanager
async def control_plane(folder: Path, *, gateways: bool = True) -> AsyncIterator[tuple[ControlPlane, Any]]:
    """A running one, and a connection to it; ``folder`` takes the kubeconfig."""
    plane = ControlPlane(gateways=gateways)
    await plane.start()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(plane._http.kubeconfig()))
    plane._controllers.start()
    connection = await connect(str(kubeconfig))
    try:
        yield plane, connection
    finally:
        await connection.close()
        plane._controllers.stop()
        await plane.stop()
