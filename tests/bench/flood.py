"""How fast an informer takes in changes: one process floods a watch with them, another absorbs them and is timed.

Usage: python -m tests.bench.flood serve KUBECONFIG TEMPLATE EVENTS
   or: python -m tests.bench.flood absorb KUBECONFIG EVENTS
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from rollout_lws.controller.on_demand_watches import pods_of
from rollout_lws.kube.client import Client
from rollout_lws.kube.connection import connect
from rollout_lws.objects.resources import LWS_NAME, PODS
from rollout_lws.objects.workloads import Pod
from tests.bench.lines import tell
from tests.bench.wire import listening, page, write_kubeconfig

_PODS = 1000
_NAMESPACE = "flood"
_VERSION = "@version@"


class Flood:
    """A list of pods, and then ``events`` changes of them, each of a size that pods have in a real cluster."""

    def __init__(self, pod: dict[str, Any], events: int) -> None:
        self._events = events
        self._halves = [tuple(_numbered(pod, number).split(_VERSION.encode())) for number in range(_PODS)]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") != "true":
            items = [before + b"1" + after for before, after in self._halves]
            return web.Response(body=page(items, 1), content_type="application/json")
        response = web.StreamResponse(headers={"content-type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        for event in self._changes():
            # One chunk an event, as API servers flush them.
            await response.write(event)
        await response.write_eof()
        return response

    @property
    def size(self) -> int:
        """Bytes of one event."""
        return len(next(self._changes()))

    def _changes(self) -> Iterator[bytes]:
        for number in range(self._events):
            before, after = self._halves[number % _PODS]
            yield b'{"type":"MODIFIED","object":' + before + str(number + 2).encode() + after + b"}\n"


def _numbered(pod: dict[str, Any], number: int) -> bytes:
    name = f"llama-{number}"
    meta = {**pod["metadata"], "name": name, "namespace": _NAMESPACE, "uid": name, "resourceVersion": _VERSION}
    return msgspec.json.encode({**pod, "metadata": meta})


def largest_pod(template: Path) -> dict[str, Any]:
    pods = [each["object"] for each in msgspec.json.decode(template.read_bytes()) if each["resource"] == str(PODS)]
    return max(pods, key=lambda pod: len(msgspec.json.encode(pod)))


async def serve(path: Path, flood: Flood) -> None:
    async with listening(flood.serve) as url:
        write_kubeconfig(path, url)
        tell(listening=url, size=flood.size)
        await asyncio.Event().wait()


async def absorb(path: Path, events: int) -> None:
    """Follow the pods as a controller does, indexed and handled; seconds from the first change to the last."""
    connection = await connect(str(path))
    lws = "llama"
    informer = pods_of(Client(connection), _NAMESPACE, lws)
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    seen, first = 0, 0.0

    def changed(before: Pod | None, after: Pod | None) -> None:
        nonlocal seen, first
        if before is None or after is None or after.metadata.labels[LWS_NAME] != lws:
            return
        first = first or time.perf_counter()
        seen += 1
        if seen == events:
            over.set_result(None)

    informer.on_change(changed)
    following = asyncio.create_task(informer.run())
    await over
    tell(seconds=time.perf_counter() - first)
    following.cancel()
    await asyncio.wait({following})
    await connection.close()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve(Path(sys.argv[2]), Flood(largest_pod(Path(sys.argv[3])), int(sys.argv[4]))))
    else:
        asyncio.run(absorb(Path(sys.argv[2]), int(sys.argv[3])))
