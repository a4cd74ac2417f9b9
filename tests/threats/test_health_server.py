"""The controller's own server answers what it has, reads nothing that it is sent, and changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from rollout_lws.controller import health
from rollout_lws.metrics import Metrics
from rollout_lws.settings import Address


@pytest.fixture
async def session(unused_tcp_port: int) -> AsyncIterator[aiohttp.ClientSession]:
    address = Address("127.0.0.1", unused_tcp_port)
    server = health.served(address, address, Metrics(), readiness=lambda: health.Readiness(True, ""), stuck=lambda: "")
    async with server, aiohttp.ClientSession(f"http://127.0.0.1:{unused_tcp_port}") as session:
        yield session


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_nothing_but_reading(method: str, path: str, session: aiohttp.ClientSession) -> None:
    async with session.request(method, path, data=b"x" * 1000) as answer:
        assert answer.status == 405


@pytest.mark.parametrize("path", ["/", "/../etc/passwd", "/debug/pprof", "/healthz/x", "/%2e%2e/x", "/metrics/a"])
async def test_no_other_path(path: str, session: aiohttp.ClientSession) -> None:
    async with session.get(path) as answer:
        assert answer.status == 404
