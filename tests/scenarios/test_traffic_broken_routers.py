"""A route that is deleted, or cannot be written, for five minutes of a step, a promotion, an abort: nothing that serves
goes, the status names the object and the cause, and the release goes on by itself. (A route that is refused: see
test_traffic_meter_losses.py.)
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import PODS
from rollout_lws.objects.writes import Write
from rollout_lws.sandbox.store import Object
from tests.scenarios.metered import Metered, metered, shared
from tests.scenarios.routed import (
    EACH,
    ROUTE,
    by_each,
    called,
    kind,
    written,
)
from tests.scenarios.stories import CANARY
from tests.scenarios.test_traffic_meter_losses import TWO

pytestmark = pytest.mark.looptime

#: Begins the trouble; gives what ends it.
Break = Callable[[Metered], Callable[[], None]]


def deleted(m: Metered) -> Callable[[], None]:
    """Somebody deletes the route, and applies it again from their manifests."""
    live = m.world.get(kind(), ROUTE)
    assert live is not None
    spec = copy.deepcopy(m.before[called()][0])
    manifest: Object = {"apiVersion": live["apiVersion"], "kind": live["kind"], "spec": spec}
    m.world.delete(kind(), ROUTE)
    meta = {"name": ROUTE, "namespace": live["metadata"]["namespace"]}
    return lambda: m.world.server.create(kind(), {**manifest, "metadata": meta}) and None


def unwritable(m: Metered) -> Callable[[], None]:
    """The API server answers 500 to whoever writes the route."""

    def refuse(write: Write) -> ApiError | None:
        return ApiError(500, "InternalError", "etcd is away") if write.resource == kind() else None

    m.world.refuse = refuse

    def mend() -> None:
        m.world.refuse = lambda _: None

    return mend


#: What the status says meanwhile.
def told_of(trouble: Break) -> str:
    return f"{ROUTE} does not exist: make it anew" if trouble is deleted else f"{written()}: etcd is away"


def pods(m: Metered) -> set[str]:
    return {pod["metadata"]["uid"] for pod in m.world.server.list(PODS, "default")}


async def five_minutes(m: Metered, trouble: Break) -> None:
    """No pod goes, and the status says which object is the matter."""
    standing = pods(m)
    await m.world.sleep(300)
    assert standing <= pods(m), "a pod went that served"
    messages = [each["message"] for each in m.world.status["conditions"] if each["status"] == "True"]
    assert any(f"{kind().kind} {told_of(trouble)}" in each for each in messages), messages


@pytest.mark.parametrize("trouble", [pytest.param(deleted, marks=pytest.mark.long), unwritable])
@pytest.mark.parametrize("step", [1, pytest.param(2, marks=pytest.mark.long)], ids=["step", "promotion"])
@by_each(EACH)
async def test_nothing_that_serves_goes_and_the_release_goes_on_by_itself(step: int, trouble: Break) -> None:
    async with metered(*TWO, replicas=2) as m:
        await m.release(step)
        await m.world.sleep(40)
        mend = trouble(m)
        m.world.approve()
        await five_minutes(m, trouble)
        mend()
        if step == 1:
            await m.step(2)
            assert await m.shares() == shared(0.5)
        await m.finish()
        assert m.cuts == []
        # Without a route nobody gets through by it, whatever a release does.
        assert {each.client for each in m.meter.failures} <= ({"users", "tagged"} if trouble is deleted else set())


@pytest.mark.long
@by_each(EACH)
async def test_an_abort_keeps_the_canary_for_as_long_as_the_route_cannot_be_written() -> None:
    async with metered(*TWO, replicas=2) as m:
        await m.release(2)
        await m.world.sleep(40)
        mend = unwritable(m)
        m.world.request("Abort")
        await five_minutes(m, unwritable)
        mend()
        await m.world.until_state("Aborted", 600)
        await m.settled()
        m.assert_unharmed()


@by_each(EACH)
async def test_an_abort_does_not_wait_for_a_route_that_is_gone_and_the_next_one_is_left_alone() -> None:
    async with metered(*TWO, replicas=2) as m:
        await m.release(2)
        await m.world.sleep(40)
        mend = deleted(m)
        stable = set(m.world.leader_uids().values())
        m.world.request("Abort")
        await m.world.until_state("Aborted", 300)
        assert set(m.world.leader_uids().values()) == stable
        mend()
        await m.settled()
        assert [each for each in m.meter.failures if each.client == "direct"] == []
        assert CANARY not in m.world.names()["leaderworkersets"]
