"""What may not be read is told as that, and ends nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from rollout_lws.cli.doctor.cluster import Cluster
from rollout_lws.cli.doctor.facts import gather
from rollout_lws.cli.doctor.links import Name, State, first
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    CUSTOM_RESOURCE_DEFINITIONS,
    ENDPOINT_SLICES,
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    LEADER_WORKER_SETS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from tests.cli.doctor.looking import StoreSource, links, told
from tests.scenarios.failures import apply
from tests.scenarios.routed import routed_at_rest
from tests.scenarios.scaled import create_autoscaler
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime

_LINKS: dict[Resource, set[Name]] = {
    ROLLOUTS: set(),
    LEADER_WORKER_SETS: {Name.WORKLOAD},
    CONTROLLER_REVISIONS: {Name.HISTORY},
    STATEFUL_SETS: {Name.LEADER_SET, Name.GROUPS},
    PODS: {Name.GROUPS, Name.SERVICE},
    SERVICES: {Name.SERVICE},
    ENDPOINT_SLICES: {Name.ENDPOINTS},
    HTTP_ROUTES: {Name.ROUTE},
    HORIZONTAL_POD_AUTOSCALERS: {Name.AUTOSCALER},
    CUSTOM_RESOURCE_DEFINITIONS: set(),
}


@pytest.mark.parametrize("kind", [each for each in _LINKS if each != ROLLOUTS], ids=str)
async def test_a_kind_that_may_not_be_read_leaves_its_links_open_and_breaks_none(world: World, kind: Resource) -> None:
    create_autoscaler(world)
    await routed_at_rest(world)
    found = await links(world, lambda asked: asked == kind)
    unknown = [each for each in found if each.state is State.UNKNOWN]
    assert {each.name for each in unknown} == _LINKS[kind], told(found)
    assert first(found, State.BROKEN) is None, told(found)
    assert found[-1].name is Name.RELEASE
    for each in unknown:
        assert f'{kind} may not be read: {kind} is forbidden: User "ann" cannot list resource' in each.found
        assert each.next == (f"kubectl auth can-i list {kind}",)


async def test_what_the_controller_has_said_is_told_where_its_reasons_cannot_be_read(world: World) -> None:
    await routed_at_rest(world)
    world.patch_rollout({"strategy": {"progressDeadlineSeconds": 60}})
    apply(world, faults={"fail": "NeverReady"})
    await world.until_state("Stalled")
    found = await links(world, lambda asked: asked == PODS)
    broken = first(found, State.BROKEN)
    assert broken is not None, told(found)
    assert broken.name is Name.RELEASE
    assert "no further group became ready within 60 s: pod llama-canary-0 (leader) is not ready" in broken.found


async def test_pods_are_asked_for_by_label_and_nothing_is_asked_for_twice(world: World) -> None:
    await routed_at_rest(world)
    asked: list[tuple[str, ...]] = []

    class Counting(StoreSource):
        def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
            asked.append((str(resource), resource.version, name))
            return super().get(resource, namespace, name)

        def list(
            self, resource: Resource, namespace: str, labels: str = "", fields: str = ""
        ) -> Iterable[dict[str, Any]]:
            asked.append((str(resource), resource.version, labels, fields))
            return super().list(resource, namespace, labels, fields)

    gather(Cluster(Counting(world), NAMESPACE, KEYS), KEYS, NAME, world.now)
    assert [each for each in asked if each[0] in ("pods", "statefulsets.apps") and not each[2]] == []
    assert [each for each in asked if each[0] == "events" and not each[3]] == []
    assert len(asked) == len(set(asked))
    assert len(asked) <= 30
