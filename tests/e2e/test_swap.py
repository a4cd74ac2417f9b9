"""Swaps on a real control plane, to each of their ends; the controller of each story is killed once in the middle."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, LWS_WORKER_INDEX, PODS
from tests.e2e.killed_once import Story, all_told
from tests.e2e.place import Place
from tests.e2e.world import RemoteWorld
from tests.scenarios.paired import approve_to_the_end
from tests.scenarios.routed import BY_ROUTE, SERVICE, create_provider, routing
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import SWAP, replicas
from tests.scenarios.world import KEYS, NAME, ROLLOUTS

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

STEPS = (
    {"replicas": 1, "traffic": "20%", "pause": {}},
    {"replicas": "100%", "traffic": "50%", "pause": {"duration": 1}},
)
#: One group by an approval, and the other after it.
SHIFT_STEPS = ({"replicas": 1, "traffic": "auto", "pause": {}},)
HOME, AWAY = {NAME: 2}, {NAME: 0, CANARY: 2}


async def begin(world: RemoteWorld, *, shifts: bool = False, keeps: bool = False) -> None:
    create_provider(world, BY_ROUTE)  # type: ignore[arg-type]
    world.create_workload(replicas=2, size=1)
    asked = {"trafficRoutings": routing(gracePeriodSeconds=1, drainSeconds=2)}
    if shifts:
        world.create_rollout(*SHIFT_STEPS, canary={"capacity": "Shift", **asked})
    else:
        stays = {"scaleDownDelaySeconds": 600} if keeps else {}
        world.create_rollout(*STEPS, blueGreen={**SWAP, **stays, **asked})
    world.start_controller()
    await world.until(lambda: world.state == "Healthy", "at rest", 60)
    await settled(world, HOME)


async def released(world: RemoteWorld, tag: str) -> None:
    world.set_image(tag)
    await world.until(lambda: world.state == "AwaitingApproval", f"{tag} waits for approval", 90)
    await approve_to_the_end(world)  # type: ignore[arg-type]


async def settled(world: RemoteWorld, wanted: dict[str, int]) -> None:
    """Both workloads have their groups, as asked and as there, and nothing of a release is left."""

    def there() -> bool:
        leaders = {name: _leaders(world, name) for name in (NAME, CANARY)}
        left = f"{SERVICE}-canary" in world.names()["services"] or world.names()["batchreleases"]
        return replicas(world) == wanted and leaders == {NAME: 0, CANARY: 0, **wanted} and not left  # type: ignore[arg-type]

    await world.until(there, f"groups {wanted}", 90)


def _leaders(world: RemoteWorld, name: str) -> int:
    return len(world.server.list(PODS, label_selector=f"{LWS_NAME}={name},{LWS_WORKER_INDEX}=0"))


async def there_and_back(world: RemoteWorld) -> None:
    world.kill_after(14)
    await released(world, "v2")
    await settled(world, AWAY)
    assert world.status["active"] == CANARY
    await released(world, "v3")
    await settled(world, HOME)
    assert {*world.groups().values()} == {"v3"}


async def aborted_both_ways(world: RemoteWorld) -> None:
    world.kill_after(12)
    for wanted in (HOME, AWAY):
        world.set_image(f"bad-{len(wanted)}")
        await world.until(lambda: world.state == "Loading", "in a step", 90)
        world.request("Abort")
        await world.until(lambda: world.state == "Aborted", "aborted", 90)
        await settled(world, wanted)
        if wanted == HOME:
            await released(world, "v2")
            await settled(world, AWAY)


async def deleted_when_the_requests_are_home(world: RemoteWorld) -> None:
    world.kill_after(14)
    await released(world, "v2")
    await settled(world, AWAY)
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.condition("Stalled").get("reason") == "StandInServes", "told", 60)
    world.request("Start")
    await world.until(lambda: world.state == "AwaitingApproval", "the release home", 90)
    world.approve()
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 90)
    await settled(world, HOME)
    meta = world.lws["metadata"]
    assert KEYS.side not in (meta.get("labels") or {}) and KEYS.original not in (meta.get("annotations") or {})


async def deleted_by_hand(world: RemoteWorld) -> None:
    """What serves is deleted: it serves on until its requests are home."""
    world.kill_after(14)
    await released(world, "v2")
    await settled(world, AWAY)
    world.delete(LEADER_WORKER_SETS, CANARY)
    await world.until(lambda: world.state == "AwaitingApproval", "the release home", 90)
    assert _leaders(world, CANARY) == 2
    await approve_to_the_end(world)  # type: ignore[arg-type]
    await settled(world, HOME)


async def exchanged_there_and_back(world: RemoteWorld) -> None:
    """Groups of one go as those of the other come: three at most."""
    world.kill_after(16)
    most = 0

    def see() -> bool:
        nonlocal most
        most = max(most, sum(_leaders(world, name) for name in (NAME, CANARY)))
        return world.state == "Healthy" and world.status.get("active") == CANARY

    world.set_image("v2")
    await world.until(lambda: world.state == "AwaitingApproval", "v2 waits for approval", 90)
    await world.until(lambda: replicas(world) == {NAME: 1, CANARY: 1}, "one has gone", 60)  # type: ignore[arg-type]
    world.approve()
    await world.until(see, "the roles change", 90)
    assert most <= 3
    await settled(world, AWAY)
    await released(world, "v3")
    await settled(world, HOME)
    assert {*world.groups().values()} == {"v3"} and KEYS.replicas not in (
        world.lws["metadata"].get("annotations") or {}
    )


async def exchanged_and_aborted(world: RemoteWorld) -> None:
    world.kill_after(14)
    for wanted in (HOME, AWAY):
        world.set_image(f"again-{len(wanted)}")
        await world.until(lambda: world.state == "AwaitingApproval", "in a step", 90)
        await world.until(lambda: {*replicas(world).values()} == {1}, "one has gone", 60)  # type: ignore[arg-type]
        world.request("Abort")
        await world.until(lambda: world.state == "Aborted", "aborted", 90)
        await settled(world, wanted)
        if wanted == HOME:
            await released(world, "v2")
            await settled(world, AWAY)


async def kept_and_undone(world: RemoteWorld) -> None:
    """Old groups stay, from home and on the way home: the version before comes back without a group that is made."""
    both = {NAME: 2, CANARY: 2}
    await released(world, "v2")
    await world.until(lambda: replicas(world) == both, "old groups stay", 60)  # type: ignore[arg-type]
    leaders = _uids(world)
    world.kill_after(8)
    for tag, active in (("v1", None), ("v2", CANARY)):
        world.set_image(tag)
        await world.until(
            lambda active=active: world.state == "Healthy" and world.status.get("active") == active,  # type: ignore[misc]
            f"{tag} is back",
            90,
        )
        assert replicas(world) == both and _uids(world) == leaders  # type: ignore[arg-type]
    world.patch_rollout({"strategy": {"blueGreen": {"scaleDownDelaySeconds": 0}}})
    await settled(world, AWAY)


def _uids(world: RemoteWorld) -> set[str]:
    return {each["metadata"]["uid"] for each in world.server.list(PODS, label_selector=f"{LWS_WORKER_INDEX}=0")}


STORIES: tuple[Story, ...] = (there_and_back, aborted_both_ways, deleted_when_the_requests_are_home, deleted_by_hand)


KEPT: tuple[Story, ...] = (kept_and_undone,)
SHIFTED: tuple[Story, ...] = (exchanged_there_and_back, exchanged_and_aborted)


async def test_a_swap_comes_to_each_of_its_ends(place: Place) -> None:
    await all_told(place, (*STORIES, *KEPT, *SHIFTED), "swap", _tell)


async def _tell(world: RemoteWorld, story: Story) -> None:
    await begin(world, shifts=story in SHIFTED, keeps=story in KEPT)
    await story(world)
