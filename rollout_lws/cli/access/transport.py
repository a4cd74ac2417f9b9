"""Requests to an API server by the standard library's HTTP client: one connection, one request at a time."""

from __future__ import annotations

import contextlib
import copy
import http.client
import json
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import urlencode, urlsplit

from rollout_lws.cli.access.connection import JSON, Connection
from rollout_lws.cli.access.refusals import refusal, too_busy
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kubeconfig import context as kubeconfig
from rollout_lws.kubeconfig import proxies
from rollout_lws.kubeconfig.context import Context
from rollout_lws.kubeconfig.login import Login
from rollout_lws.kubeconfig.target import Target
from rollout_lws.kubeconfig.urls import shown
from rollout_lws.objects.codec import nesting
from rollout_lws.objects.resources import Resource

Object = dict[str, Any]
DEFAULT_TIMEOUT = 30.0
#: A watch is asked to end, and begun anew, after this many seconds, so that a dead connection is noticed.
WATCH_SECONDS = 240
#: A server that is busy says when to come again; it is asked so often more, as kubectl does.
_REPEATS = 10
#: Seconds until then where it does not say.
_BUSY_SECONDS = 1.0
_MERGE, _JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
#: JSON is YAML, and there is no other name for it that all supported API servers know.
_APPLY = "application/apply-patch+yaml"
#: What a request carries: an object, or the operations of a JSON Patch.
Body: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Transport:
    """A cluster to talk to; answers are JSON values. Errors: ApiError for a refusal, Unreachable for no answer.

    ``timeout`` is seconds a request, with its repeats while the server is busy (429, or 503 that says when to come
    back). A login that the server refuses is asked for once more where that may help; one that ``asks`` nobody has no
    longer than a request, either.
    """

    def __init__(
        self,
        context: Context,
        timeout: float = DEFAULT_TIMEOUT,
        environment: Mapping[str, str] = os.environ,
        *,
        asks: bool = True,
    ) -> None:
        self.namespace = context.namespace
        self._context = context
        self._url = urlsplit(context.server)
        self._timeout = timeout
        self._deadline = math.inf
        self._login = Login(context, None if asks else timeout)
        self._proxy = proxies.proxy_of(context.server, context.cluster, environment)
        self._connection: Connection | None = None
        self._watches: set[Connection] = set()
        self._hung_up = threading.Event()

    @classmethod
    def to(cls, target: Target) -> Transport:
        """By kubeconfig and flags; ``namespace`` is the flag's, else the context's."""
        return cls(kubeconfig.load(target), target.request_timeout or DEFAULT_TIMEOUT)

    def twin(self) -> Transport:
        """Another connection to the same cluster by the same login, for a thread of its own."""
        twin = copy.copy(self)
        twin._connection, twin._watches, twin._hung_up = None, set(), threading.Event()
        return twin

    def until(self, deadline: float | None) -> None:
        """Have no request wait for a busy server beyond a ``deadline`` by ``time.monotonic()``; None for no such."""
        self._deadline = math.inf if deadline is None else deadline

    def hang_up(self) -> None:
        """End the watches that are open, and have every later one end at once; from any thread."""
        self._hung_up.set()
        for connection in list(self._watches):
            # Closing it would not wake the thread that reads.
            with contextlib.suppress(OSError):
                connection.hang_up()

    def get(self, path: str, **query: str) -> Object:
        return self._json("GET", path, query)

    def find(self, path: str, **query: str) -> Object | None:
        """What is there, None where it does not exist, or where the cluster does not serve such a kind."""
        try:
            return self.get(path, **query)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def serves(self, resource: Resource) -> bool:
        """Whether the cluster has such a kind, as far as the user may ask."""
        try:
            known = (self.find(f"/apis/{resource.api_version}") or {}).get("resources") or ()
        except ApiError:
            return True
        return any(each["name"] == resource.plural for each in known)

    def merge_patch(self, path: str, body: Mapping[str, Any]) -> Object:
        return self._json("PATCH", path, {"fieldManager": "rollout-lws-cli"}, body, _MERGE)

    def json_patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> Object:
        return self._json("PATCH", path, {"fieldManager": "rollout-lws-cli"}, operations, _JSON_PATCH)

    def apply(self, path: str, obj: Mapping[str, Any], manager: str) -> Object:
        """Server-side apply of one object: made where there is none, else brought to what ``obj`` says. Fields that
        ``manager`` has applied before and that ``obj`` has no longer go; those that others have changed are taken back.
        """
        return self._json("PATCH", path, {"fieldManager": manager, "force": "true"}, obj, _APPLY)

    def delete(self, path: str, uid: str = "", propagation: str = "") -> Object:
        """With ``uid``, only that very object: another one of its name is a conflict. ``propagation`` is what becomes
        of what it owns, the server's own default when empty.
        """
        body: Object = {"preconditions": {"uid": uid}} if uid else {}
        body |= {"propagationPolicy": propagation} if propagation else {}
        return self._json("DELETE", path, {}, {"apiVersion": "v1", "kind": "DeleteOptions", **body} if body else None)

    @property
    def cluster(self) -> str:
        """Which one it is, for people: the context's name and the server. A URL's path may hold a secret."""
        return f"{self._context.name} ({shown(self._context.server)})"

    def watch(self, path: str, resource_version: str, deadline: float | None = None, **query: str) -> Iterator[Object]:
        """Watch events of a collection, until the server ends it or ``time.monotonic()`` is past ``deadline``."""
        remaining = WATCH_SECONDS if deadline is None else min(WATCH_SECONDS, deadline - time.monotonic())
        if remaining <= 0:
            return
        query |= {"watch": "true", "resourceVersion": resource_version, "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = str(max(1, round(remaining)))
        connection = self._connect(min(remaining, self._timeout))
        self._watches.add(connection)
        try:
            # That a server begins to answer at all is waited for like any answer; then it may be silent for long.
            answer = self._send(connection, "GET", path, query)
            with answer:
                connection.be_patient(remaining)
                if not self._hung_up.is_set():
                    yield from _events(answer)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(f"the watch on {shown(self._context.server)} broke: {_words(error)}") from error
        finally:
            self._watches.discard(connection)
            connection.close()

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Body | None = None,
        content_type: str = JSON,
    ) -> Object:
        try:
            answer = nesting.read(_object, self._answer(method, path, query, body, content_type))
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise Unreachable(
                f"no answer from {shown(self._context.server)}: {_words(error)}; is it up? check the kubeconfig and"
                " the network"
            ) from error
        return answer

    def _answer(self, method: str, path: str, query: Mapping[str, str], body: Body | None, content_type: str) -> bytes:
        reused, self._connection = self._connection is not None, self._connection or self._connect(self._timeout)
        try:
            return self._send(self._connection, method, path, query, body, content_type).read()
        except (ConnectionError, http.client.RemoteDisconnected, http.client.CannotSendRequest):
            self.close()
            if not reused or method != "GET":
                raise
            # A server, or what stands before it, ends a connection that nobody has used for a while.
            return self._answer(method, path, query, body, content_type)

    def _connect(self, timeout: float) -> Connection:
        return Connection(self._context, self._login, self._proxy, timeout)

    def _send(
        self,
        connection: Connection,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Body | None = None,
        content_type: str = JSON,
    ) -> http.client.HTTPResponse:
        target = self._url.path + path + (f"?{urlencode(query)}" if query else "")
        content = None if body is None else _encoded(body)
        asked, busy = time.monotonic(), 0
        while True:
            answer = self._ask_logged_in(connection, method, target, content, content_type)
            if answer.status < 400:
                return answer
            told = _told(answer)
            wait = _wait(answer)
            if wait is None:
                raise refusal(answer.status, told)
            busy += 1
            latest = min(asked + self._timeout, self._deadline)
            if busy > _REPEATS or time.monotonic() + wait > latest or self._hung_up.is_set():
                raise too_busy(answer.status, told, method, path, busy)
            # Whoever stands before the server may end a connection that is silent for so long.
            connection.close()
            self._hung_up.wait(wait)

    def _ask_logged_in(
        self, connection: Connection, method: str, target: str, body: bytes | None, content_type: str
    ) -> http.client.HTTPResponse:
        answer = connection.ask(method, target, body, content_type)
        if answer.status == 401 and self._login.refused():
            # With a new login comes a new certificate, perhaps, and that belongs to the connection.
            answer.read()
            connection.close()
            answer = connection.ask(method, target, body, content_type)
        return answer


def _encoded(body: Body) -> bytes:
    # Whoever writes nothing need not load it.
    from rollout_lws.objects.go_json import encoded

    return encoded(body)


def _told(answer: http.client.HTTPResponse) -> Object:
    """The Status of a refusal, or what there is of one."""
    said = answer.read()
    try:
        status = nesting.read(json.loads, said)
    except ValueError:
        status = {"message": said[:200].decode(errors="replace").strip() or answer.reason}
    return status if isinstance(status, dict) else {}


def _wait(answer: http.client.HTTPResponse) -> float | None:
    """Seconds until a server that did nothing wants to be asked again, None for any other refusal."""
    after = answer.headers.get("Retry-After", "")
    if after.replace(".", "", 1).isdigit() and answer.status in (429, 503):
        return float(after)
    return _BUSY_SECONDS if answer.status == 429 else None


def _object(text: bytes) -> Object:
    found: Object = json.loads(text)
    return found


def _events(answer: http.client.HTTPResponse) -> Iterator[Object]:
    """Of a watch, until the server ends it, or has been silent for longer than it was asked to go on."""
    while True:
        try:
            line = answer.readline()
        except TimeoutError:
            return
        if not line:
            return
        event = nesting.read(_object, line)
        if event["type"] == "ERROR":
            raise refusal(int(event["object"].get("code") or 500), event["object"])
        yield event


def _words(error: Exception) -> str:
    """Without the number that only the machine's manual explains, and without what the path of a server may hold."""
    if isinstance(error, http.client.InvalidURL):
        return "its URL has characters that no URL can have"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
