"""Kubernetes API client: gets, lists, watches and writes objects, checks every status, sets a timeout on every call.

Each write is sent once. A failed write needs a new decision from newer state; blindly repeating it would not be safe.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import msgspec

from rollout_lws.errors import ApiError, NotLeading, Unreachable
from rollout_lws.kube.denials import Denials
from rollout_lws.kube.fence import Fence
from rollout_lws.kube.status import is_status, refused
from rollout_lws.kube.transport import Answer, Relay, Transport
from rollout_lws.objects.codec import nesting
from rollout_lws.objects.go_json import encoded
from rollout_lws.objects.json_patch import is_stale, operations
from rollout_lws.objects.permissions import Permission, is_denied
from rollout_lws.objects.resources import API_RESOURCES, PODS, Resource, version_path
from rollout_lws.objects.writes import Confirm, Create, Delete, Patch, Replace, Write

T = TypeVar("T")

_JSON = "application/json"
_MERGE = "application/merge-patch+json"
_JSON_PATCH = "application/json-patch+json"
#: Attempts of a read while the server is busy or briefly unreachable.
_READS = 4
#: Concurrent reads. A new leader with hundreds of releases in progress lists something for each of them at the same
#: time; its Lease renewals and writes would wait behind all of that.
_READS_AT_ONCE = 16
#: Longest Retry-After that a read waits for by itself, in seconds.
_PATIENCE = 10.0

#: Called with each request: verb, resource, code (0 without an answer) and seconds.
Observe = Callable[[str, Resource, int, float], None]


class _Confirmed(msgspec.Struct):
    uid: str = ""
    generation: int = 0


class _Object(msgspec.Struct):
    metadata: _Confirmed


_confirmed = msgspec.json.Decoder(_Object)
_whole = msgspec.json.Decoder(dict[str, Any])


def _object(answer: bytes) -> dict[str, Any]:
    """An object as a plain value; msgspec.DecodeError for any other JSON."""
    _confirmed.decode(answer)
    return _whole.decode(answer)


class Client:
    """Client of one API server. ``timeout`` is seconds per request; ``observe`` is called with each request,
    ``denials`` records denied permissions. Writes have to pass the ``fence``.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        field_manager: str = "rollout-lws",
        timeout: float = 30.0,
        observe: Observe | None = None,
        fence: Fence | None = None,
        denials: Denials | None = None,
    ) -> None:
        self._transport = transport
        self._field_manager = field_manager
        self._timeout = timeout
        self.observe = observe
        self.denials = denials or Denials()
        self._fence = fence or Fence.none()
        #: Per kind, so that a kind with slow answers does not delay the others.
        self._reading: defaultdict[Resource, asyncio.Semaphore] = defaultdict(
            partial(asyncio.Semaphore, _READS_AT_ONCE)
        )

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        """One object's JSON; ApiError 404 when it does not exist."""
        return await self._read(Permission("get", resource, namespace), resource.path(namespace, name), {})

    async def relayed(self, namespace: str, pod: str, path: str, relay: Relay) -> Answer:
        """What ``pod``, with its port as "name:port", answers behind the API server, whatever its status. Not repeated.
        ApiError if the API server answers in its place, as it does for a pod that cannot be reached; a redirect is not
        followed.
        """
        permission = Permission(VERBS[relay.method], PODS, namespace, "proxy")
        guard = None if relay.method == "GET" else self._fence.check
        behind = PODS.path(namespace, pod, "proxy") + path
        # A pod that hangs says nothing of the API server.
        answer = await self._observed(permission, self._transport.relay(behind, relay, guard), away=lambda: None)
        error = refused(answer.status, answer.headers, answer.body) if is_status(answer.body) else None
        denied = error if error is not None and is_denied(error, permission.verb) else None
        self.denials.answered(permission, denied)
        if error is not None:
            raise error
        return answer

    async def list(self, resource: Resource, namespace: str = "", params: Mapping[str, str] | None = None) -> bytes:
        """One page of a list, according to the parameters (labelSelector, limit, continue …)."""
        return await self._read(Permission("list", resource, namespace), resource.path(namespace), params or {})

    async def discover(self, group: str, version: str) -> bytes:
        """The kinds that the server has in this version of a group ("": the core group), as an APIResourceList."""
        return await self._read(Permission("get", API_RESOURCES), version_path(group, version), {})

    @asynccontextmanager
    async def watch(
        self, resource: Resource, namespace: str, params: Mapping[str, str], silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Lines of a watch; it is cut after ``silence`` seconds without a byte."""
        permission = Permission("watch", resource, namespace)
        async with AsyncExitStack() as stack:
            try:
                stream = self._transport.stream(resource.path(namespace), params=params, timeout=silence)
                lines = await stack.enter_async_context(stream)
            except ApiError as error:
                self.denials.answered(permission, error)
                raise
            except Unreachable:
                self.denials.away()
                raise
            self.denials.answered(permission, None)
            try:
                yield lines
            except Unreachable:
                self.denials.away()
                raise

    async def send(self, write: Write) -> bytes:
        """Carry out one write and return the server's answer. ApiError or Unreachable when it failed, or may have
        failed.
        """
        async with self._fence.passing():
            return await self._send(write)

    async def _send(self, write: Write) -> bytes:
        if isinstance(write, Confirm):
            return await self._confirm(write)
        method, path, body, content_type = request_of(write)
        params = {} if method == "DELETE" else {"fieldManager": self._field_manager}
        subresource = write.subresource if isinstance(write, Patch | Replace) else ""
        permission = Permission(VERBS[method], write.resource, write.namespace, subresource)
        try:
            return await self._call(permission, method, path, params, body, content_type)
        except ApiError as error:
            if error.code != 422 or not isinstance(write, Patch) or write.generation is None:
                raise
            # A failed JSON Patch test gets the same code as an invalid object, but is a conflict.
            live = understood(_object, await self._live(write), write)
            if is_stale(write, live):
                raise _changed(write) from error
            raise

    async def _confirm(self, write: Confirm) -> bytes:
        body = await self._live(write)
        live = understood(_confirmed.decode, body, write).metadata
        if (live.uid, live.generation) != (write.uid, write.generation):
            raise _changed(write)
        return body

    async def _live(self, write: Confirm | Patch) -> bytes:
        """Not retried: a stopping process waits for the current write, and the next decision asks again."""
        path = write.resource.path(write.namespace, write.name)
        permission = Permission("get", write.resource, write.namespace)
        return await self._call(permission, "GET", path, {}, None, _JSON)

    async def _read(self, permission: Permission, path: str, params: Mapping[str, str]) -> bytes:
        delay = 0.1
        for left in range(_READS - 1, -1, -1):
            wait = 0.0
            try:
                async with self._reading[permission.resource]:
                    return await self._call(permission, "GET", path, params, None, _JSON)
            except Unreachable:
                if not left:
                    raise
            except ApiError as error:
                wait = error.retry_after or 0.0
                if not left or (error.code != 429 and error.code < 500) or wait > _PATIENCE:
                    raise
            await asyncio.sleep(max(delay, wait))
            delay *= 3
        raise AssertionError("unreachable: the last try returns or raises")

    async def _call(
        self,
        permission: Permission,
        method: str,
        path: str,
        params: Mapping[str, str],
        body: bytes | None,
        content_type: str,
    ) -> bytes:
        guard = None if method == "GET" else self._fence.check
        asked = self._transport.request(
            method,
            path,
            params=params,
            body=body,
            content_type=content_type,
            timeout=self._timeout,
            guard=guard,
        )
        answer = await self._observed(permission, asked, self.denials.away)
        error = refused(answer.status, answer.headers, answer.body) if answer.status >= 400 else None
        self.denials.answered(permission, error)
        if error is not None:
            raise error
        return answer.body

    async def _observed(self, permission: Permission, asked: Awaitable[Answer], away: Callable[[], None]) -> Answer:
        """The answer, which ``observe`` is told of; ``away`` is called if there is none."""
        started, code = asyncio.get_running_loop().time(), 0
        try:
            answer = await asked
            code = answer.status
        except NotLeading:
            raise
        except Unreachable:
            away()
            raise
        finally:
            if self.observe is not None:
                self.observe(permission.verb, permission.resource, code, asyncio.get_running_loop().time() - started)
        return answer


def understood(decode: Callable[[bytes], T], answer: bytes, write: Write) -> T:
    """The decoded body of a successful answer. Unreachable when it is not such JSON: truncated, or a proxy's page."""
    try:
        return nesting.read(decode, answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreachable(f"{write.resource} {write.name}: the answer is not an API server's ({error})") from error


def _changed(write: Confirm | Patch) -> ApiError:
    return ApiError(409, "Conflict", f"{write.resource} {write.namespace}/{write.name} has changed since it was seen")


#: Verbs of RBAC by method.
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def request_of(write: Create | Patch | Replace | Delete) -> tuple[str, str, bytes, str]:
    """Method, path, body and content type of a write."""
    resource = write.resource
    if isinstance(write, Create):
        return "POST", resource.path(write.namespace), encoded(write.body), _JSON
    if isinstance(write, Replace):
        return "PUT", resource.path(write.namespace, write.name, write.subresource), encoded(write.body), _JSON
    path = resource.path(write.namespace, write.name)
    if isinstance(write, Patch):
        path = resource.path(write.namespace, write.name, write.subresource)
        if write.generation is not None:
            return "PATCH", path, encoded(operations(write)), _JSON_PATCH
        body = dict(write.body)
        if write.resource_version is not None:
            body["metadata"] = {**body.get("metadata", {}), "resourceVersion": write.resource_version}
        return "PATCH", path, encoded(body), _MERGE
    preconditions = {"uid": write.uid}
    if write.resource_version is not None:
        preconditions["resourceVersion"] = write.resource_version
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": preconditions,
        "propagationPolicy": write.propagation,
    }
    if write.grace_seconds is not None:
        options["gracePeriodSeconds"] = write.grace_seconds
    return "DELETE", path, encoded(options), _JSON
