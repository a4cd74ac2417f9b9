"""The small web server of a controller: is it alive, is it ready, and what does it count."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from rollout_lws.errors import UsageError
from rollout_lws.metrics import CONTENT_TYPE, Metrics
from rollout_lws.settings import Address


@asynccontextmanager
async def served(
    health: Address | None,
    metrics: Address | None,
    counters: Metrics,
    *,
    missing: Callable[[], str],
    stuck: Callable[[], str],
) -> AsyncIterator[None]:
    """/healthz and /readyz at ``health``, /metrics at ``metrics`` (both may be one address), until the block ends.

    ``missing`` says why the process is not ready, ``stuck`` why it has to begin anew; "" when all is well. Who blocks
    the event loop answers nothing, and the probe ends by its own time-out.
    """
    routes: dict[Address, list[web.RouteDef]] = {}
    if health is not None:
        routes.setdefault(health, []).extend([web.get("/healthz", _probe(stuck)), web.get("/readyz", _probe(missing))])
    if metrics is not None:
        routes.setdefault(metrics, []).append(web.get("/metrics", _exposition(counters)))
    runners: list[web.AppRunner] = []
    try:
        for address, handlers in routes.items():
            application = web.Application()
            application.add_routes(handlers)
            runner = web.AppRunner(application, access_log=None)
            runners.append(runner)
            await runner.setup()
            try:
                await web.TCPSite(runner, address.host or None, address.port).start()
            except OSError as error:
                raise UsageError(
                    f"{address.host}:{address.port} cannot be listened on: {error.strerror};"
                    " give another --health-probe-bind-address or --metrics-bind-address"
                ) from error
        yield
    finally:
        for runner in runners:
            await runner.cleanup()


def _probe(missing: Callable[[], str]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        why = missing()
        return web.Response(status=503, text=why) if why else web.Response(text="ok\n")

    return answer


def _exposition(counters: Metrics) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=await counters.exposition(), headers={"Content-Type": CONTENT_TYPE})

    return answer
