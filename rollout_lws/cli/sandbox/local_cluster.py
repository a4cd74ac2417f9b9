"""An in-process cluster on a loopback port, which `sandbox` keeps running and `demo` throws away."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.api import crd
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Cluster, Options
from rollout_lws.sandbox.definitions import disaggregated_set_crd, lws_crd
from rollout_lws.sandbox.http import Server
from rollout_lws.sandbox.model_servers import ModelServers
from rollout_lws.sandbox.patching import patches

Object = dict[str, Any]
DEFAULT_NAMESPACE = "default"
_MANAGER = "rollout-lws-sandbox"


@dataclass(frozen=True, slots=True)
class Playground:
    """A running cluster; clients use ``url`` and ``kubeconfig``, ``apply`` takes manifests from files."""

    server: ApiServer
    http: Server

    @property
    def url(self) -> str:
        return self.http.url

    @property
    def model_servers(self) -> ModelServers:
        return self.http.gate.models

    def write_kubeconfig(self, path: Path) -> None:
        """Write a kubeconfig, readable by its owner only, since it contains the token; UsageError when that fails, or
        when it would replace the user's access to another cluster.
        """
        try:
            before = path.read_text(errors="replace") if path.is_file() else ""
            if before and "server: http://127.0.0.1:" not in before:
                raise UsageError(f"{path} is there and no sandbox wrote it: give another --kubeconfig, or remove it")
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                yaml.safe_dump(self.http.kubeconfig(), file, sort_keys=False)
        except OSError as error:
            raise UsageError(f"the kubeconfig cannot be written: {error}; give another --kubeconfig") from error

    def apply(self, manifest: Object) -> Object:
        """Create or update an object by server-side apply; UsageError names a manifest that is refused."""
        resource = self.resource_of(manifest)
        metadata = {**manifest["metadata"]}
        namespace = metadata.setdefault("namespace", DEFAULT_NAMESPACE) if resource.namespaced else ""
        try:
            return self.server.patch(
                resource,
                namespace,
                metadata["name"],
                {**manifest, "metadata": metadata},
                patches.APPLY_PATCH,
                field_manager=_MANAGER,
                force=True,
            )
        except ApiError as error:
            raise UsageError(f"{resource.kind} {metadata['name']} is refused: {error.message}") from error

    def resource_of(self, manifest: Object) -> Resource:
        for served in self.server.served:
            if (served.resource.api_version, served.resource.kind) == (manifest["apiVersion"], manifest["kind"]):
                return served.resource
        raise UsageError(
            f"{manifest['kind']} of {manifest['apiVersion']} is not served by the sandbox: see `kubectl api-resources`"
        )


@asynccontextmanager
async def playground(options: Options, api_group: str, port: int = 0, lws: str = "0.10") -> AsyncIterator[Playground]:
    """A cluster with LeaderWorkerSet, of version ``lws``, and our kinds, for the duration of the block."""
    if find_spec("celpy") is None:
        # celpy is otherwise imported with the first rule, in the middle of a client's request.
        raise ModuleNotFoundError(name="celpy")
    server = ApiServer(time.time)
    for definition in (lws_crd.manifest(lws), disaggregated_set_crd.manifest(), *crd.render(api_group)):
        server.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    cluster, http = Cluster(server, options), Server(server)
    try:
        await http.start(port=port)
    except OSError as error:
        raise UsageError(f"port {port} cannot be listened on: {error.strerror}; give another --port") from error
    cluster.start()
    try:
        yield Playground(server, http)
    finally:
        cluster.stop()
        await http.stop()
