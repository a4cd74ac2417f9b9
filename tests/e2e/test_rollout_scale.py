"""The Rollout is scaled through a real API server: by hand, by an autoscaler, and past it by another client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tests.e2e import tools
from tests.e2e.cluster import Cluster, beyond_the_role, cluster, invalid
from tests.e2e.world import RemoteWorld, remote_world
from tests.kubectl.programs import Programs
from tests.scenarios.names import ROLLOUTS
from tests.scenarios.scaled import create_autoscaler, wants
from tests.scenarios.world import NAME, NAMESPACE

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with cluster(tools.directory(), tmp_path_factory.mktemp("cluster")) as running:
        yield running


def scale(world: RemoteWorld, groups: int) -> None:
    """``kubectl scale rollout``."""
    kind = "application/merge-patch+json"
    world.server.patch(ROLLOUTS, NAMESPACE, NAME, {"spec": {"replicas": groups}}, kind, subresource="scale")


def has(world: RemoteWorld, groups: int, tag: str) -> Callable[[], bool]:
    return lambda: world.groups() == dict.fromkeys(range(groups), tag)


async def test_an_autoscaler_of_the_rollout_adds_groups_in_a_release_and_takes_them_after_it(whole: Cluster) -> None:
    programs = Programs()
    try:
        async with remote_world(whole.plane.admin, whole.controller, "scaled", programs) as world:
            world.create_workload(replicas=2)
            world.create_rollout({"replicas": 1, "pause": {}}, {"replicas": "100%"})
            await world.until(lambda: world.state == "Healthy" and has(world, 2, "v1")(), "at rest", 120)
            scale(world, 3)
            await world.until(has(world, 3, "v1"), "scaled by hand", 60)
            world.patch_lws({"replicas": 1})
            told = "somebody set spec.replicas of LeaderWorkerSet llama to 1"
            await world.until(lambda: any(told in each.note for each in world.events), "told", 60)
            await world.until(has(world, 3, "v1"), "put back", 60)
            create_autoscaler(world, of=ROLLOUTS)  # type: ignore[arg-type]
            world.set_image("v2")
            await world.until(lambda: world.state == "AwaitingApproval", "in the release", 60)
            wants(world, 4)  # type: ignore[arg-type]
            await world.until(has(world, 4, "v1"), "the autoscaler adds a group", 90)
            world.kill_after(1)
            wants(world, 2)  # type: ignore[arg-type]
            waits = "spec.replicas 2 waits for the end of the release"
            await world.until(lambda: waits in world.status.get("message", ""), "waits", 90)
            assert world.lws["spec"]["replicas"] == 4
            world.approve()
            await world.until(has(world, 2, "v2"), "released, then scaled down", 180)
            assert world.kills == 1
        assert beyond_the_role(whole.plane.audit_log) == []
        assert invalid(whole.plane.audit_log) == []
    finally:
        await programs.close()
        print(*programs.logs(), sep="\n")
