"""What may not be read is told as that, and ends nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from rollout_lws.api.resources import batch_releases
from rollout_lws.cli.doctor.facts import gather
from rollout_lws.cli.doctor.links import Name, State, first
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    CUSTOM_RESOURCE_DEFINITIONS,
    ENDPOINT_SLICES,
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    KUEUE_CHECKS,
    KUEUE_WORKLOADS,
    LEADER_WORKER_SETS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from tests.cli.doctor.looking import StoreCluster, links, look, told
from tests.scenarios.failures import apply
from tests.scenarios.kueue import GATED, condition, install, queue
from tests.scenarios.routed import routed_at_rest
from tests.scenarios.scaled import create_autoscaler
from tests.scenarios.stories import CANARY, at_rest, waiting_for_approval
from tests.scenarios.test_multikueue import dispatched, dispatched_to_west
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

#: What is open besides the controller, of which nobody can tell then whether it has something left to do.
_LINKS: dict[Resource, set[Name]] = {
    LEADER_WORKER_SETS: {Name.WORKLOAD},
    batch_releases(): set(),
    CONTROLLER_REVISIONS: {Name.HISTORY},
    STATEFUL_SETS: {Name.LEADER_SET, Name.GROUPS},
    PODS: {Name.GROUPS, Name.SERVICE},
    SERVICES: {Name.SERVICE},
    ENDPOINT_SLICES: {Name.ENDPOINTS},
    HTTP_ROUTES: {Name.ROUTE},
    INFERENCE_POOLS: set(),
    POD_DISRUPTION_BUDGETS: set(),
    HORIZONTAL_POD_AUTOSCALERS: {Name.AUTOSCALER},
    CORE_EVENTS: set(),
}
#: Nothing hangs on them here: there is no queue, and what LWS can do is seen by other means.
_BESIDES = (CUSTOM_RESOURCE_DEFINITIONS, KUEUE_WORKLOADS, KUEUE_CHECKS)
#: What is asked for on the way, and cannot be read where the kind may not.
_STEP = {"replicas": 1, "traffic": "20%", "pause": {}}


async def resting(world: World) -> None:
    await routed_at_rest(world)


async def approving(world: World) -> None:
    await routed_at_rest(world, _STEP)
    await waiting_for_approval(world)


async def loading(world: World) -> None:
    await routed_at_rest(world, _STEP)
    world.set_image("v2")
    await world.until(lambda: world.state == "Loading" and world.get(PODS, f"{CANARY}-0") is not None)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("stage", [resting, pytest.param(approving, marks=pytest.mark.long), loading])
@pytest.mark.parametrize("kind", [*_LINKS, *_BESIDES], ids=str)
async def test_a_kind_that_may_not_be_read_leaves_its_links_open_and_breaks_none(
    world: World, kind: Resource, stage: Callable[[World], Awaitable[None]]
) -> None:
    create_autoscaler(world)
    await stage(world)
    found = await links(world, lambda asked: asked == kind)
    unknown = [each for each in found if each.state is State.UNKNOWN]
    least = set() if kind in _BESIDES else _LINKS[kind] | {Name.CONTROLLER}
    assert {each.name for each in unknown} >= least, told(found)
    assert stage is not resting or {each.name for each in unknown} == least, told(found)
    assert first(found, State.BROKEN) is None, told(found)
    assert found[-1].name is Name.RELEASE
    for each in unknown:
        assert f'{kind} may not be read: {kind} is forbidden: User "ann" cannot list resource' in each.found
        assert each.next == (f"kubectl auth can-i list {kind}",)


async def test_no_command_is_told_for_a_promotion_that_is_late_but_goes_on(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {}}, replicas=2, size=1, progressDeadlineSeconds=120)
    apply(world, faults={"fail": "NeverReady", "fail-on": f"{NAME}-0*"})
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Stalled")
    for refused in ((), (HORIZONTAL_POD_AUTOSCALERS,)):
        release = next(each for each in await links(world, refused.__contains__) if each.name is Name.RELEASE)
        assert (release.state, release.next) == (State.BROKEN, ()), release
        assert release.by_itself == "it goes on, as the cause says"


async def test_what_a_queue_says_that_may_not_be_read_is_left_open(world: World) -> None:
    install(world)
    await at_rest(world)
    apply(world, **GATED)
    await world.until(lambda: world.get(PODS, f"{CANARY}-0") is not None)
    queue(world, conditions=[condition("QuotaReserved", "False", "ExceedsMaxQuota", "too large")])
    await world.sleep(5)
    found = await links(world, lambda asked: asked == KUEUE_WORKLOADS)
    assert first(found, State.BROKEN) is None, told(found)
    assert {each.name for each in found if each.state is State.UNKNOWN} == {Name.CONTROLLER, Name.SCHEDULING}


@pytest.mark.parametrize("unread", [(), (KUEUE_WORKLOADS,)])
async def test_no_group_that_multikueue_has_sent_elsewhere_is_awaited_here(
    world: World, unread: Sequence[Resource]
) -> None:
    await dispatched_to_west(world)
    await world.sleep(10)
    found = await links(world, unread.__contains__)
    refused = first(found, State.BROKEN)
    assert refused is not None
    assert (refused.name, refused.found) == (Name.WORKLOAD, dispatched("cluster west"))
    assert not {Name.SCHEDULING, Name.READINESS} & {each.name for each in found}, told(found)
    assert {each.name for each in found if each.state is State.UNKNOWN} == ({Name.CONTROLLER} if unread else set())


async def test_what_lws_can_do_is_seen_where_its_definition_may_not_be_read(world: World) -> None:
    """Up to 0.10 a version of another size could not wait; 1.0 fills in a field by which it is known."""

    class Newer(StoreCluster):
        def get_object(self, resource: Resource, name: str) -> dict[str, Any]:
            found = super().get_object(resource, name)
            filled = {**found["spec"], "groupIdentity": "Ordinal"} if resource == LEADER_WORKER_SETS else None
            return {**found, "spec": filled} if filled else found

    await at_rest(world)
    for cluster, known in ((Newer, True), (StoreCluster, False)):
        found = gather(cluster.of(world, lambda asked: asked == CUSTOM_RESOURCE_DEFINITIONS), NAME, world.now)
        assert found is not None
        assert found.observation.capabilities.group_identity is known


async def test_a_kind_that_the_cluster_does_not_serve_is_not_one_that_may_not_be_read(world: World) -> None:
    """A server refuses before it looks whether it has what is asked for."""
    await at_rest(world)
    assert look(world, lambda asked: asked in (KUEUE_WORKLOADS, KUEUE_CHECKS)).refused == {}
    install(world)
    assert set(look(world, lambda asked: asked == KUEUE_CHECKS).refused) == {KUEUE_CHECKS}


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

    class Counting(StoreCluster):
        def get_object(self, resource: Resource, name: str) -> dict[str, Any]:
            asked.append((str(resource), resource.version, name))
            return super().get_object(resource, name)

        def list_objects(self, resource: Resource, labels: str, fields: str) -> Sequence[dict[str, Any]]:
            asked.append((str(resource), resource.version, labels, fields))
            return super().list_objects(resource, labels, fields)

    gather(Counting.of(world), NAME, world.now)
    assert [each for each in asked if each[0] in ("pods", "statefulsets.apps") and not each[2]] == []
    assert [each for each in asked if each[0] == "events" and not each[3]] == []
    assert len(asked) == len(set(asked))
    assert len(asked) <= 30
