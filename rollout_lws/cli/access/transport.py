"""API requests over the standard library's HTTP client: one connection, one request at a time."""

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

from rollout_lws.cli.access.clock import ServerClock
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
#: Seconds after which a watch ends and is restarted, so that a dead connection is noticed.
WATCH_SECONDS = 240
#: Objects in each page of a list, unless another number is asked for.
_PAGE = 500
#: Retries at a busy server that sends Retry-After; kubectl makes as many.
_REPEATS = 10
#: Seconds before a retry when the server sends no Retry-After.
_BUSY_SECONDS = 1.0
_MERGE, _JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
#: JSON is YAML, and all supported API servers know apply patches by this media type only.
_APPLY = "application/apply-patch+yaml"
#: A request body: an object, or the operations of a JSON Patch.
Body: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Transport:
    """Client of one cluster; answers are JSON values. ApiError for a refusal, Unreachable for no answer.

    ``timeout`` is seconds per request, including retries while the server is busy (429, or 503 with Retry-After).
    Credentials that the server rejects are renewed once where that may help; unless ``asks``, a credential plugin may
    not prompt and has no more time than a request. ``clock`` is the server's, which twins share.
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
        self.clock = ServerClock()
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
        """A client for kubeconfig and flags; the namespace is the flag's, else the context's."""
        return cls(kubeconfig.load(target), target.request_timeout or DEFAULT_TIMEOUT)

    def twin(self) -> Transport:
        """A second connection to the same cluster with the same credentials, for use in another thread."""
        twin = copy.copy(self)
        twin._connection, twin._watches, twin._hung_up = None, set(), threading.Event()
        return twin

    def within(self, namespace: str) -> Transport:
        """A twin whose namespace is another one."""
        twin = self.twin()
        twin.namespace = namespace
        return twin

    def until(self, deadline: float | None) -> None:
        """Stop retries at a busy server at ``deadline`` (``time.monotonic()``); None removes the limit."""
        self._deadline = math.inf if deadline is None else deadline

    def hang_up(self) -> None:
        """End all open watches, and make later ones end at once; callable from any thread."""
        self._hung_up.set()
        for connection in list(self._watches):
            # close() would not wake the reading thread, shutdown does.
            with contextlib.suppress(OSError):
                connection.hang_up()

    def get(self, path: str, **query: str) -> Object:
        return self._json("GET", path, query)

    def find(self, path: str, **query: str) -> Object | None:
        """The object or list; None when it does not exist, or when the cluster does not serve the kind."""
        try:
            return self.get(path, **query)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def pages(self, path: str, size: int | None = None, **query: str) -> Iterator[Object]:
        """A list in parts of ``size`` objects, so that a large one is never in memory as a whole; all have the first's
        resourceVersion.
        """
        query |= {"limit": str(size or _PAGE)}
        while True:
            page = self.get(path, **query)
            yield page
            if not page["metadata"].get("continue"):
                return
            query["continue"] = page["metadata"]["continue"]

    def serves(self, resource: Resource) -> bool:
        """Whether the cluster serves the kind; True when the user may not ask."""
        try:
            known = (self.find(f"/apis/{resource.api_version}") or {}).get("resources") or ()
        except ApiError:
            return True
        return any(each["name"] == resource.plural for each in known)

    def create(self, path: str, obj: Mapping[str, Any]) -> Object:
        """Send one object; what the server makes of it."""
        return self._json("POST", path, {}, obj)

    def merge_patch(self, path: str, body: Mapping[str, Any]) -> Object:
        return self._json("PATCH", path, {"fieldManager": "rollout-lws-cli"}, body, _MERGE)

    def json_patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> Object:
        return self._json("PATCH", path, {"fieldManager": "rollout-lws-cli"}, operations, _JSON_PATCH)

    def apply(self, path: str, obj: Mapping[str, Any], manager: str) -> Object:
        """Server-side apply of one object with force. It creates the object or sets the fields in ``obj``, also those
        of other managers; fields that ``manager`` applied before and that are not in ``obj`` are removed.
        """
        return self._json("PATCH", path, {"fieldManager": manager, "force": "true"}, obj, _APPLY)

    def delete(self, path: str, uid: str = "") -> Object | None:
        """Delete the object; None when it is gone already. With ``uid``, only that very object: another one of its name
        is a conflict.
        """
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        try:
            return self._json("DELETE", path, {}, options if uid else None)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    @property
    def cluster(self) -> str:
        """Context name and server, for messages; without the URL's path, which may contain a secret."""
        return f"{self._context.name} ({shown(self._context.server)})"

    def watch(self, path: str, resource_version: str, deadline: float | None = None, **query: str) -> Iterator[Object]:
        """Watch events of a collection until the server ends the watch or ``time.monotonic()`` passes ``deadline``."""
        remaining = WATCH_SECONDS if deadline is None else min(WATCH_SECONDS, deadline - time.monotonic())
        if remaining <= 0:
            return
        query |= {"watch": "true", "resourceVersion": resource_version, "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = str(max(1, round(remaining)))
        connection = self._connect(min(remaining, self._timeout))
        self._watches.add(connection)
        try:
            # The normal timeout covers the start of the answer; after that the server may be silent for long.
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
            # Servers and proxies close idle connections; retry on a new one.
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
            began = time.time()
            answer = self._ask_logged_in(connection, method, target, content, content_type)
            self.clock.heard(answer.headers.get("Date"), began)
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
            # A proxy may close a connection that is idle for so long.
            connection.close()
            self._hung_up.wait(wait)

    def _ask_logged_in(
        self, connection: Connection, method: str, target: str, body: bytes | None, content_type: str
    ) -> http.client.HTTPResponse:
        answer = connection.ask(method, target, body, content_type)
        if answer.status == 401 and self._login.refused():
            # New credentials may include a new client certificate, which needs a new connection.
            answer.read()
            connection.close()
            answer = connection.ask(method, target, body, content_type)
        return answer


def _encoded(body: Body) -> bytes:
    # Imported here, since read-only commands do not need it.
    from rollout_lws.objects.go_json import encoded

    return encoded(body)


def _told(answer: http.client.HTTPResponse) -> Object:
    """The Status of a refusal, or what can be parsed of one."""
    said = answer.read()
    try:
        status = nesting.read(json.loads, said)
    except ValueError:
        status = {"message": said[:200].decode(errors="replace").strip() or answer.reason}
    return status if isinstance(status, dict) else {}


def _wait(answer: http.client.HTTPResponse) -> float | None:
    """Seconds before a retry at a busy server, None for any other refusal."""
    after = answer.headers.get("Retry-After", "")
    if after.replace(".", "", 1).isdigit() and answer.status in (429, 503):
        return float(after)
    return _BUSY_SECONDS if answer.status == 429 else None


def _object(text: bytes) -> Object:
    found: Object = json.loads(text)
    return found


def _events(answer: http.client.HTTPResponse) -> Iterator[Object]:
    """Events of a watch, until the server ends it or has been silent past the timeout."""
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
    """The error without its errno, and without the server's path, which may contain a secret."""
    if isinstance(error, http.client.InvalidURL):
        return "its URL has characters that no URL can have"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
