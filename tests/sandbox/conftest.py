"""A server with a clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.definitions import lws_crd

# looptime asks for the main thread's event loop even in tests that have none; unless told that there is none, asyncio
# would make one that nobody closes.
asyncio.set_event_loop(None)


class Clock:
    """Epoch seconds; add to ``now`` to let time pass."""

    def __init__(self) -> None:
        self.now = 1_767_225_600.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(clock: Clock) -> ApiServer:
    return ApiServer(clock, seed=7)


@pytest.fixture
def lws_server(server: ApiServer) -> ApiServer:
    """A server that serves LeaderWorkerSets."""
    server.create(CUSTOM_RESOURCE_DEFINITIONS, lws_crd.manifest())
    return server


@contextmanager
def refused(code: int, reason: str, text: str = "") -> Iterator[None]:
    """The block must end in this ApiError, whose message contains ``text``."""
    with pytest.raises(ApiError) as caught:
        yield
    assert (caught.value.code, caught.value.reason) == (code, reason), caught.value.message
    assert text in caught.value.message


def config_map(name: str = "settings", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


def pod(name: str = "web-0", *, node: str = "", **metadata: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "model:1"}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, "namespace": "default", **metadata}, "spec": spec}


def lws(name: str = "demo", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "model:1", "ports": [{"containerPort": 8080}]}]}}
    group = {"size": 2, "workerTemplate": template, **spec.pop("group", {})}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"leaderWorkerTemplate": group, **spec}}
