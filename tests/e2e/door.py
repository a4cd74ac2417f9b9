"""Writes of a story's people to an API server: one at a time, answered before the story's next line.

Stories are written as if a person's deed took no time, so the event loop stands still for the few milliseconds that a
request takes; everything else of a story's world runs in processes of its own.
"""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from rollout_lws.cli.access.connection import Connection
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kubeconfig import context as kubeconfig
from rollout_lws.kubeconfig.login import Login
from rollout_lws.kubeconfig.proxies import proxy_of
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import Resource
from tests.e2e.mirror import Mirror, Object, Reading
from tests.scenarios.names import NAMESPACE

_PATIENCE_SECONDS = 30.0
_MERGE = "application/merge-patch+json"


class Door:
    """The part of the sandbox's server that stories use, in ``namespace`` of the cluster that a kubeconfig leads to.

    What is read is the mirror's newest; what is written is there before the call returns.
    """

    def __init__(self, access: Path, namespace: str, mirror: Mirror) -> None:
        self._context = kubeconfig.load(Target(kubeconfig=str(access)))
        self._login = Login(self._context)
        self._namespace = namespace
        self._mirror = mirror
        self._connection: http.client.HTTPConnection | None = None
        self.clock = mirror.newest.clock

    @property
    def store(self) -> Reading:
        return self._mirror.newest

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        return self._mirror.newest.get(resource, namespace, name)

    def list(self, resource: Resource, namespace: str = NAMESPACE, label_selector: str = "") -> list[Object]:
        return self._mirror.newest.list(resource, namespace, label_selector)

    def create(self, resource: Resource, body: Mapping[str, Any], *, field_manager: str = "") -> Object:
        """Whatever the field manager, it is the one of all people here."""
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        meta = {**body["metadata"], "namespace": self._namespace}
        return self._told(resource, "POST", resource.path(self._namespace), {**head, **body, "metadata": meta})

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        kind: str = _MERGE,
        *,
        subresource: str = "",
    ) -> Object:
        return self._told(resource, "PATCH", resource.path(self._namespace, name, subresource), body, kind)

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        propagation: str = "Background",
        grace_seconds: int | None = None,
    ) -> Object:
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        return self._told(resource, "DELETE", resource.path(self._namespace, name), options)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _told(
        self, resource: Resource, method: str, path: str, body: Mapping[str, Any], kind: str = "application/json"
    ) -> Object:
        answer = self._answer(method, path, json.dumps(body), kind)
        self._mirror.absorb(resource, answer)
        told: Object = json.loads(answer)
        return told

    def _answer(self, method: str, path: str, body: str, kind: str) -> bytes:
        reused = self._connection is not None
        try:
            answer, content = self._sent(method, path, body, kind)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if reused:
                # A connection that was kept open has ended together with the server's process.
                return self._answer(method, path, body, kind)
            raise Unreachable(f"{method} {path}: {error or type(error).__name__}") from error
        if answer.status >= 400:
            status = json.loads(content)
            raise ApiError(answer.status, str(status.get("reason") or ""), str(status.get("message") or ""))
        return content

    def _sent(self, method: str, path: str, body: str, kind: str) -> tuple[http.client.HTTPResponse, bytes]:
        if self._connection is None:
            proxy = proxy_of(self._context.server, self._context.cluster, os.environ)
            self._connection = Connection(self._context, self._login, proxy, _PATIENCE_SECONDS)
        headers = {**dict(self._login.headers), "Accept": "application/json", "Content-Type": kind}
        self._connection.request(method, f"{path}?{urlencode({'fieldManager': 'somebody'})}", body, headers)
        answer = self._connection.getresponse()
        return answer, answer.read()
