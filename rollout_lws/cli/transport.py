"""The command line's way to an API server: the standard library's HTTP client, because `get` has 0.16 s in all.

One connection, one request at a time; the controller's own edge (``rollout_lws.kube``) takes too long to load.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from rollout_lws.cli import kubeconfig
from rollout_lws.cli.options import Target
from rollout_lws.errors import ApiError, Unreachable

Object = dict[str, Any]
DEFAULT_TIMEOUT = 30.0
#: A watch is asked to end, and begun anew, after this many seconds, so that a dead connection is noticed.
WATCH_SECONDS = 240


class Transport:
    """A cluster to talk to; answers are JSON values. Errors: ApiError for a refusal, Unreachable for no answer."""

    def __init__(
        self, access: kubeconfig.Access, timeout: float = DEFAULT_TIMEOUT, impersonate: str | None = None
    ) -> None:
        self.namespace = access.namespace
        self._access = access
        self._url = urlsplit(access.server)
        self._timeout = timeout
        self._headers = {**access.headers, "Accept": "application/json", "User-Agent": "rollout-lws"}
        if impersonate:
            self._headers["Impersonate-User"] = impersonate
        self._connection: http.client.HTTPConnection | None = None

    @classmethod
    def to(cls, target: Target) -> Transport:
        """By kubeconfig and flags; ``namespace`` is the flag's, else the context's."""
        transport = cls(
            kubeconfig.load(target.kubeconfig, target.context),
            target.request_timeout or DEFAULT_TIMEOUT,
            target.impersonate,
        )
        transport.namespace = target.namespace or transport.namespace
        return transport

    def get(self, path: str, **query: str) -> Object:
        return self._json("GET", path, query)

    def merge_patch(self, path: str, body: Mapping[str, Any]) -> Object:
        return self._json("PATCH", path, {"fieldManager": "rollout-lws-cli"}, body)

    def watch(self, path: str, resource_version: str, deadline: float | None = None, **query: str) -> Iterator[Object]:
        """Watch events of a collection, until the server ends it or ``time.monotonic()`` is past ``deadline``."""
        remaining = WATCH_SECONDS if deadline is None else min(WATCH_SECONDS, deadline - time.monotonic())
        if remaining <= 0:
            return
        query |= {"watch": "true", "resourceVersion": resource_version, "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = str(max(1, round(remaining)))
        connection = self._connect(remaining)
        try:
            answer = self._send(connection, "GET", path, query)
            with answer:
                while line := answer.readline():
                    event: Object = json.loads(line)
                    if event["type"] == "ERROR":
                        raise _refusal(int(event["object"].get("code") or 500), event["object"])
                    yield event
        except TimeoutError:
            return
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(f"the watch on {self._access.server} broke: {error or type(error).__name__}") from error
        finally:
            connection.close()

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _json(self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None = None) -> Object:
        if self._connection is None:
            self._connection = self._connect(self._timeout)
        try:
            content = self._send(self._connection, method, path, query, body).read()
            answer: Object = json.loads(content)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise Unreachable(
                f"no answer from {self._access.server}: {error or type(error).__name__};"
                " check the kubeconfig and the network"
            ) from error
        return answer

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        host = self._url.hostname or ""
        if self._access.tls is None:
            return http.client.HTTPConnection(host, self._url.port, timeout=timeout)
        return http.client.HTTPSConnection(host, self._url.port, timeout=timeout, context=self._access.tls)

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
    ) -> http.client.HTTPResponse:
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        target = self._url.path + path + (f"?{urlencode(query)}" if query else "")
        connection.request(method, target, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        if answer.status < 400:
            return answer
        content = answer.read()
        try:
            status = json.loads(content)
        except ValueError:
            status = {"message": content[:200].decode(errors="replace").strip() or answer.reason}
        raise _refusal(answer.status, status)


def _refusal(code: int, status: Mapping[str, Any]) -> ApiError:
    message = str(status.get("message") or f"the API server answered {code}")
    if code == 401:
        message += "; log in again, or check the kubeconfig's user"
    return ApiError(code, str(status.get("reason") or ""), message)
