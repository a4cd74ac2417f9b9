"""What the benchmark's own API servers have in common: a socket, a kubeconfig, and the frames of lists and watches."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

#: Objects a page when a client names no limit.
PAGE_LIMIT = 500


@asynccontextmanager
async def listening(serve: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A server on a free port of 127.0.0.1 for every method and path; gives its URL."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def write_kubeconfig(path: Path, url: str) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": url}}],
        "users": [{"name": "bench", "user": {"token": "none-needed"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }
    path.write_text(json.dumps(document))


def page(items: Sequence[bytes], version: int, rest: str = "") -> bytes:
    """A list; ``rest`` is the token of its next page."""
    metadata = {"resourceVersion": str(version)} | ({"continue": rest} if rest else {})
    return b'{"metadata":' + json.dumps(metadata).encode() + b',"items":[' + b",".join(items) + b"]}"


def bookmark(version: int) -> bytes:
    event = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}
    return json.dumps(event).encode() + b"\n"
