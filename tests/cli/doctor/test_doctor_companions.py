"""Doctor of a pair with companions: each of the checks goes over all workloads of both sides."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rollout_lws.cli.doctor.links import Link, Name, State, first
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.cli.doctor.looking import assert_whole, links, told
from tests.cli.doctor.test_doctor_scaled import of, of_workload, relabel, state_replicas
from tests.scenarios.failures import cordon
from tests.scenarios.paired import BLUE, GREEN, approve_to_the_end
from tests.scenarios.paired_companions import PREFILL, apply_one, apply_set, at_rest
from tests.scenarios.world import KEYS, NAME, World

pytestmark = pytest.mark.looptime


async def test_at_rest_and_in_a_release_nothing_is_broken(world: World) -> None:
    await at_rest(world)
    found = await links(world)
    assert {each.state for each in found} == {State.OK}, told(found)
    assert of_workload(found, PREFILL[BLUE]).found.endswith("2 groups, of the active side")
    assert of_workload(found, PREFILL[GREEN]).found.endswith("0 groups, of the inactive side, parked")
    assert list(of(found, Name.HOLD)) == [f"LeaderWorkerSet/{each}" for each in (BLUE, PREFILL[BLUE])]
    assert of(found, Name.READINESS)[f"LeaderWorkerSet/{PREFILL[BLUE]}"].found == "2 of 2 groups are ready"
    assert f"with companions {PREFILL[BLUE]} and {PREFILL[GREEN]}" in of(found, Name.ROLLOUT)[f"Rollout/{NAME}"].found
    apply_set(world, "v2")
    while world.state != "AwaitingApproval":
        await assert_whole(world)
    await assert_whole(world)
    await approve_to_the_end(world)
    found = await links(world)
    assert {each.state for each in found} == {State.OK}, told(found)


@pytest.mark.parametrize("side", [BLUE, GREEN])
async def test_a_companion_that_is_missing_is_broken(world: World, side: str) -> None:
    await at_rest(world)
    world.delete(LEADER_WORKER_SETS, PREFILL[side])
    await world.until(lambda: bool(world.condition("Stalled").get("status") == "True"))
    found = await links(world)
    one = first(found, State.BROKEN)
    assert one is not None and one is of_workload(found, PREFILL[side]), told(found)
    assert of_workload(found, side).state is State.OK


async def test_a_version_that_waits_for_the_rest_is_told_with_start(world: World) -> None:
    await at_rest(world)
    apply_one(world, PREFILL[GREEN], "v2")
    await world.sleep(30)
    found = await links(world)
    assert first(found, State.BROKEN) is None, told(found)
    release = of(found, Name.RELEASE)[f"Rollout/{NAME}"]
    assert release.state is State.WAITING and "when llama-green has another version as well" in release.found
    assert release.next == ("kubectl rollout-lws start llama",)
    apply_one(world, GREEN, "v2")
    await world.sleep(2)
    release = of(await links(world), Name.RELEASE)[f"Rollout/{NAME}"]
    assert "if no workload of llama-green's side changes until then" in release.found and not release.next


def opened(world: World) -> None:
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}}, PREFILL[BLUE])


def let_go(world: World) -> None:
    world.patch(LEADER_WORKER_SETS, PREFILL[BLUE], {"metadata": {"annotations": {KEYS.release_hold: "true"}}})


@pytest.mark.parametrize(
    ("act", "name", "state", "why"),
    [
        (opened, Name.HOLD, State.BROKEN, "the hold is not closed: partition is 0"),
        (let_go, Name.HOLD, State.WAITING, "the hold was released on purpose"),
        (
            lambda world: world.patch_lws({"replicas": 1}, PREFILL[BLUE]),
            Name.WORKLOAD,
            State.BROKEN,
            "has 1 of its 2 groups",
        ),
        (
            lambda world: world.patch_lws({"replicas": 3}, PREFILL[BLUE]),
            Name.WORKLOAD,
            State.BROKEN,
            "has 3 groups, and 2 go with 4 of llama",
        ),
        (lambda world: relabel(world, PREFILL[BLUE], "parked"), Name.WORKLOAD, State.BROKEN, "side says parked"),
        (lambda world: state_replicas(world, PREFILL[BLUE]), Name.WORKLOAD, State.BROKEN, "replicas"),
    ],
)
async def test_what_no_controller_puts_back(
    world: World, act: Callable[[World], None], name: Name, state: State, why: str
) -> None:
    await at_rest(world)
    world.stop_controller()
    act(world)
    found = of(await links(world), name)[f"LeaderWorkerSet/{PREFILL[BLUE]}"]
    assert found.state is state and why in found.found, str(found)
    assert all(BLUE in command for command in found.next)


async def test_groups_of_the_parked_companion_are_broken_where_nothing_scales_them_down(world: World) -> None:
    await at_rest(world)
    await world.sleep(60)
    world.stop_controller()
    world.patch_lws({"replicas": 2}, PREFILL[GREEN])
    found = of_workload(await links(world), PREFILL[GREEN])
    assert found.state is State.BROKEN and "though it is of the inactive side and no release is on" in found.found


async def test_pods_of_companions_are_looked_at(world: World) -> None:
    await at_rest(world)
    cordon(world)
    apply_set(world, "v2")
    await world.sleep(60)

    def waits(each: Link) -> bool:
        return each.name is Name.SCHEDULING and each.about == f"Pod/{PREFILL[GREEN]}-0"

    assert any(map(waits, await links(world)))
