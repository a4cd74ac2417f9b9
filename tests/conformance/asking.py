"""Requests in the words of the API, so that a behaviour is put into bytes once and both servers are asked the same.

What comes back is told as it came: nothing is raised for a refusal, as half of what is asked here is to be refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rollout_lws.kube.connection import Connection
from rollout_lws.objects.resources import Resource

Object = dict[str, Any]

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

#: Longest that an answer or the next event of a watch is waited for, in seconds.
_PATIENCE = 20.0


class Wire(Connection):
    """The product's own connection, able to ask for other forms than the object itself, as kubectl does."""

    accept = JSON

    async def _headers(self, content_type: str | None) -> list[tuple[str, str]]:
        others = [each for each in await super()._headers(content_type) if each[0].lower() != "accept"]
        return [*others, ("accept", self.accept)]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; ``body`` is its JSON, or the bytes of what is none."""

    code: int
    headers: Mapping[str, str]
    body: Any

    @property
    def refusal(self) -> tuple[int, str, str]:
        """Code, reason and message of a Status that is no success."""
        assert (self.body.get("kind"), self.body.get("status")) == ("Status", "Failure"), self.body
        assert self.body["code"] == self.code
        return self.code, self.body.get("reason", ""), self.body["message"]

    @property
    def causes(self) -> list[tuple[str, str, str]]:
        """Reason, field and message of each cause that a refusal gives, in its order."""
        causes = self.body.get("details", {}).get("causes", ())
        return [(each["reason"], each.get("field", ""), each["message"]) for each in causes]

    def ok(self) -> Object:
        """The body of an answer that is no refusal."""
        assert self.code < 400, self.body
        body: Object = self.body
        return body


class Events:
    """The events of one watch, one after the other."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines

    async def next(self) -> tuple[str, Object]:
        """Type and object of the next event; EOFError when the server closes the stream without one."""
        async with asyncio.timeout(_PATIENCE):
            line = await anext(self._lines, None)
        if line is None:
            raise EOFError("the watch has ended")
        event = msgspec.json.decode(line)
        return event["type"], event["object"]

    async def rest(self) -> list[tuple[str, Object]]:
        """What is told until the server closes the stream."""
        told = []
        with suppress(EOFError):
            while True:
                told.append(await self.next())
        return told

    async def names(self, count: int) -> list[tuple[str, str]]:
        """Type and name of the next ``count`` events."""
        told = [await self.next() for _ in range(count)]
        return [(kind, obj["metadata"]["name"]) for kind, obj in told]


class Asking:
    """One server as a client that works in ``namespace``; ``name`` is which of the two it is."""

    def __init__(self, name: str, wire: Wire, namespace: str) -> None:
        self.name = name
        self.namespace = namespace
        self._wire = wire

    async def ask(
        self, method: str, path: str, body: Any = None, content_type: str = JSON, accept: str = JSON, **params: str
    ) -> Reply:
        """Any request. A ``body`` that is bytes is sent as it is."""
        encoded = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        self._wire.accept = accept
        answer = await self._wire.request(
            method, path, params=params, body=encoded, content_type=content_type, timeout=_PATIENCE
        )
        body = msgspec.json.decode(answer.body) if answer.body.startswith(b"{") else answer.body
        return Reply(answer.status, answer.headers, body)

    async def raw(self, resource: Resource, name: str) -> bytes:
        """The bytes in which an object is answered."""
        path = resource.path(self.namespace, name)
        return (await self._wire.request("GET", path, params={}, body=None, content_type=JSON, timeout=_PATIENCE)).body

    async def create(self, resource: Resource, body: Any, **params: str) -> Reply:
        return await self.ask("POST", resource.path(self.namespace), body, **params)

    async def get(self, resource: Resource, name: str, subresource: str = "", accept: str = JSON) -> Reply:
        return await self.ask("GET", resource.path(self.namespace, name, subresource), accept=accept)

    async def list(self, resource: Resource, accept: str = JSON, **params: str) -> Reply:
        return await self.ask("GET", resource.path(self.namespace), accept=accept, **params)

    async def put(self, resource: Resource, body: Object, subresource: str = "", **params: str) -> Reply:
        """Replace the object that ``body`` names."""
        path = resource.path(self.namespace, body["metadata"]["name"], subresource)
        return await self.ask("PUT", path, body, **params)

    async def patch(
        self, resource: Resource, name: str, body: Any, kind: str = MERGE, subresource: str = "", **params: str
    ) -> Reply:
        """``kind`` is the patch's content type."""
        return await self.ask("PATCH", resource.path(self.namespace, name, subresource), body, kind, **params)

    async def apply(
        self, resource: Resource, name: str, body: Object, manager: str, *, subresource: str = "", **params: str
    ) -> Reply:
        """Server-side apply of ``body``, to which the identity is added, as ``manager``."""
        given = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        given["metadata"] = {"name": name, **given.get("metadata", {})}
        return await self.patch(resource, name, given, APPLY, subresource, fieldManager=manager, **params)

    async def delete(self, resource: Resource, name: str, options: Object | None = None, **params: str) -> Reply:
        return await self.ask("DELETE", resource.path(self.namespace, name), options, **params)

    async def delete_all(self, resource: Resource, **params: str) -> Reply:
        return await self.ask("DELETE", resource.path(self.namespace), **params)

    @asynccontextmanager
    async def watching(self, resource: Resource, accept: str = JSON, **params: str) -> AsyncIterator[Events]:
        """A watch, from here to the end of the block. ApiError when it is refused."""
        self._wire.accept = accept
        async with self._wire.stream(resource.path(self.namespace), params=params, timeout=_PATIENCE) as lines:
            yield Events(lines)

    async def until(self, resource: Resource, name: str, holds: Callable[[Object], bool]) -> Object:
        """The object as soon as ``holds`` is true of it, which must exist until then."""
        found = (await self.get(resource, name)).ok()
        async with self.changes(resource, name, found) as events:
            while not holds(found):
                kind, found = await events.next()
                assert kind != "DELETED", found
        return found

    async def gone(self, resource: Resource, name: str) -> None:
        """Until there is no such object."""
        found = await self.get(resource, name)
        if found.code == 404:
            return
        async with self.changes(resource, name, found.ok()) as events:
            while (await events.next())[0] != "DELETED":
                pass

    def changes(self, resource: Resource, name: str, seen: Object) -> AbstractAsyncContextManager[Events]:
        """What happens to an object after it was ``seen``."""
        version = seen["metadata"]["resourceVersion"]
        return self.watching(resource, fieldSelector=f"metadata.name={name}", resourceVersion=version)


@asynccontextmanager
async def wired(kubeconfig: Path) -> AsyncIterator[Wire]:
    """A connection as ``kubeconfig`` says, from here to the end of the block."""
    from kubernetes_asyncio import config
    from kubernetes_asyncio.client import Configuration

    configuration = Configuration()
    await config.load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
    wire = Wire(configuration)
    try:
        yield wire
    finally:
        await wire.close()
