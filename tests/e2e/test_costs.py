"""What a release asks of a real API server, from the server's own audit log: how much, and nothing beyond its role."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.objects.writes import Patch
from tests.e2e import audit, tools
from tests.e2e.audit import Entry
from tests.e2e.cluster import Cluster, beyond_the_role, cluster
from tests.e2e.costs import steering
from tests.e2e.plane import connected
from tests.e2e.world import RemoteWorld, remote_world
from tests.kubectl.programs import Programs
from tests.scenarios.names import NAME
from tests.scenarios.routed import assert_given_back, create_route, hold_record, routing
from tests.scenarios.test_writes import MOST

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

#: Seconds in which an approval is awaited and nothing may be written.
SILENCE = 20.0
#: Releases of which one has to keep to its writes: on a machine that has no time, what would be over in a moment is
#: told, and that is more.
RELEASES = 3


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with cluster(tools.directory(), tmp_path_factory.mktemp("cluster")) as running:
        yield running


@asynccontextmanager
async def routed(whole: Cluster, namespace: str, *steps: dict[str, Any]) -> AsyncIterator[RemoteWorld]:
    """Five groups at rest with a route, in care of a Rollout."""
    programs = Programs()
    try:
        async with remote_world(whole.plane.admin, whole.controller, namespace, programs) as world:
            told: Any = world
            create_route(told)
            world.create_workload(replicas=5)
            words = routing(gracePeriodSeconds=1, drainSeconds=2)
            world.create_rollout(*steps, canary={"trafficRoutings": words})
            await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v1"}, "at rest")
            await world.rest()
            yield world
    finally:
        await programs.close()
        print(*programs.logs(), sep="\n")


def asked(whole: Cluster, namespace: str, after: int = 0) -> Sequence[Entry]:
    """What the controller of a namespace has asked, from its entry number ``after`` on."""
    return [each for each in audit.read(whole.plane.audit_log) if each.namespace == namespace][after:]


async def five_steps(whole: Cluster, namespace: str) -> list[Entry]:
    """All writes of a release of five weighted steps."""
    steps = ({"replicas": number, "traffic": f"{10 * number}%", "pause": {"duration": 2}} for number in range(1, 6))
    async with routed(whole, namespace, *steps) as world:
        told: Any = world
        lent = hold_record(told)
        before = len(asked(whole, namespace))
        world.set_image("v2")
        await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"}, "released")
        await world.rest()
        assert_given_back(told, lent)
        return [each for each in asked(whole, namespace, before) if each.is_write]


@pytest.mark.timeout(600)
async def test_five_weighted_steps_take_no_more_than_sixty_writes_and_hardly_one_is_refused(whole: Cluster) -> None:
    all_told, refused, counts = 0, [], []
    for number in range(RELEASES):
        writes = await five_steps(whole, f"five-steps-{number}")
        all_told += len(writes)
        refused += [each for each in writes if each.was_refused]
        steered = steering(writes)
        counts.append(Counter(f"{each.verb} {each.resource}/{each.subresource} {each.name}" for each in steered))
        if len(steered) <= MOST:
            break
    else:
        raise AssertionError("\n".join(str(each.most_common()) for each in counts))
    assert len(refused) < all_told / 100, refused


async def test_nothing_is_written_while_an_approval_is_awaited(whole: Cluster) -> None:
    async with routed(whole, "silence", {"replicas": 1, "traffic": "20%", "pause": {}}) as world:
        world.set_image("v2")
        await world.until_state("AwaitingApproval")
        await world.rest()
        before = len(asked(whole, "silence"))
        await world.sleep(SILENCE)
        written = [each for each in asked(whole, "silence", before) if each.is_write]
        assert written == []


async def test_a_patch_of_a_spec_that_has_changed_is_a_conflict_and_changes_nothing(whole: Cluster) -> None:
    async with routed(whole, "stale", {"replicas": 1, "traffic": "20%", "pause": {}}) as world:
        seen = world.lws["metadata"]

        def scaled(replicas: int) -> Patch:
            body = {"spec": {"replicas": replicas}}
            return Patch(
                *(LEADER_WORKER_SETS, "stale", NAME, body, "a person scales"),
                uid=seen["uid"],
                generation=seen["generation"],
            )

        async with connected(whole.controller) as connection:
            client = Client(connection)
            await client.send(scaled(4))
            with pytest.raises(ApiError) as caught:
                await client.send(scaled(3))
        assert (caught.value.code, caught.value.reason) == (409, "Conflict")
        await world.until(lambda: len(world.groups()) == 4 and world.state == "Healthy", "scaled once")


async def test_nothing_is_asked_beyond_the_role(whole: Cluster) -> None:
    assert beyond_the_role(whole.plane.audit_log) == []
