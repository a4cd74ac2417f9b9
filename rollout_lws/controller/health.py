"""The controller's HTTP server for liveness, readiness and metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from rollout_lws import inbound
from rollout_lws.errors import UsageError
from rollout_lws.metrics import CONTENT_TYPE, Metrics
from rollout_lws.settings import Address


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer of /readyz: ``lines`` say why it is not ready, or what is wrong although it is."""

    ready: bool
    lines: str


@asynccontextmanager
async def served(
    health: Address | None,
    metrics: Address | None,
    counters: Metrics,
    *,
    readiness: Callable[[], Readiness],
    stuck: Callable[[], str],
) -> AsyncIterator[None]:
    """/healthz and /readyz at ``health``, /metrics at ``metrics`` (both may be one address), until the block ends.

    ``stuck`` says why the process has to restart, "" when it need not. A blocked event loop answers nothing, so the
    probe times out.
    """
    routes: dict[Address, list[web.RouteDef]] = {}
    if health is not None:
        alive = _probe(lambda: Readiness(not (why := stuck()), why))
        routes.setdefault(health, []).extend([web.get("/healthz", alive), web.get("/readyz", _probe(readiness))])
    if metrics is not None:
        routes.setdefault(metrics, []).append(web.get("/metrics", _exposition(counters)))
    async with AsyncExitStack() as stack:
        for address, handlers in routes.items():
            application = web.Application()
            application.add_routes(handlers)
            try:
                await stack.enter_async_context(inbound.served(application, address))
            except OSError as error:
                raise UsageError(
                    f"{address.host}:{address.port} cannot be listened on: {error.strerror};"
                    " give another --health-probe-bind-address or --metrics-bind-address"
                ) from error
        yield


def _probe(look: Callable[[], Readiness]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        found = look()
        return web.Response(text=f"ok\n{found.lines}") if found.ready else web.Response(status=503, text=found.lines)

    return answer


def _exposition(counters: Metrics) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=await counters.exposition(), headers={"Content-Type": CONTENT_TYPE})

    return answer
