"""Pairs on a real control plane, to each of their ends; the controller of each story is killed once in the middle."""

from __future__ import annotations

import pytest

from rollout_lws.objects.owners import OURS
from rollout_lws.objects.resources import (
    HTTP_ROUTES,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
)
from tests.e2e.killed_once import Story, all_told
from tests.e2e.place import Place
from tests.e2e.world import RemoteWorld
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    all_ready,
    apply,
    approve_to_the_end,
    create_sides,
    rollout,
    set_weights,
    weights,
)
from tests.scenarios.paired_companions import COMPANIONS, PREFILL, SETS, apply_one, apply_set, create_sets, sets
from tests.scenarios.routed import ROUTE
from tests.scenarios.world import KEYS, NAME, ROLLOUTS

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

ROUTING = {"gracePeriodSeconds": 1, "drainSeconds": 2}


#: One group by an approval, and the others after it.
SHIFT_STEPS = ({"replicas": 1, "traffic": "auto", "pause": {}},)


async def begin(world: RemoteWorld, *, scaled: bool = False, shifts: bool = False, accompanied: bool = False) -> None:
    if accompanied:
        create_sets(world, replicas=2, own=1, size=1)  # type: ignore[arg-type]
        world.server.create(ROLLOUTS, rollout(routing=ROUTING, spec={"companions": [*COMPANIONS]}))
        await all_ready(world, *SETS[BLUE])  # type: ignore[arg-type]
        world.start_controller()
        await world.until(lambda: world.state == "Healthy", "at rest", 60)
        return
    create_sides(world, replicas=2, beside=0 if scaled else 2, size=1)  # type: ignore[arg-type]
    steps = SHIFT_STEPS if shifts else ()
    made = rollout(*steps, routing=ROUTING, spec={} if scaled else None, shift={} if shifts else None)
    world.server.create(ROLLOUTS, made)
    await all_ready(world, BLUE, GREEN)  # type: ignore[arg-type]
    world.start_controller()
    await world.until(lambda: world.state == "Healthy", "at rest", 60)


async def released(world: RemoteWorld, side: str, tag: str) -> None:
    apply(world, side, tag)  # type: ignore[arg-type]
    await world.until(lambda: world.state == "AwaitingApproval", f"{tag} waits for approval", 90)
    await approve_to_the_end(world)  # type: ignore[arg-type]
    assert world.status["active"] == side


async def there_and_back(world: RemoteWorld) -> None:
    world.kill_after(8)
    await released(world, GREEN, "v2")
    assert weights(world) == {BLUE: 0, GREEN: 100}  # type: ignore[arg-type]
    await released(world, BLUE, "v3")
    assert weights(world) == {BLUE: 100, GREEN: 0}  # type: ignore[arg-type]


async def aborted(world: RemoteWorld) -> None:
    world.kill_after(6)
    apply(world, GREEN, "v2")  # type: ignore[arg-type]
    await world.until(lambda: world.state == "AwaitingApproval", "in a step", 90)
    world.request("Abort")
    await world.until(lambda: world.state == "Aborted", "aborted", 90)
    assert weights(world) == {BLUE: 100, GREEN: 0}  # type: ignore[arg-type]


async def deleted(world: RemoteWorld) -> None:
    world.kill_after(6)
    apply(world, GREEN, "v2")  # type: ignore[arg-type]
    await world.until(lambda: world.state == "AwaitingApproval", "in a step", 90)
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 90)
    assert weights(world) == {BLUE: 100, GREEN: 0}  # type: ignore[arg-type]
    route = world.get(HTTP_ROUTES, ROUTE)
    assert route is not None and not route["metadata"].get("annotations")


async def corrected(world: RemoteWorld) -> None:
    """A tool applies the route of its manifest again, whose side has no groups any more."""
    world.kill_after(8)
    await released(world, GREEN, "v2")
    world.patch_lws({"replicas": 0}, BLUE)
    await world.until(lambda: not world.server.list(PODS, label_selector=f"leaderworkerset.sigs.k8s.io/name={BLUE}"))
    set_weights(world, {BLUE: 100, GREEN: 0})  # type: ignore[arg-type]
    await world.until(lambda: weights(world) == {BLUE: 0, GREEN: 100}, "corrected", 30)  # type: ignore[arg-type]


STORIES: tuple[Story, ...] = (there_and_back, aborted, deleted, corrected)


async def scaled_there_and_back(world: RemoteWorld) -> None:
    world.kill_after(12)
    await released(world, GREEN, "v2")
    await settled(world, {BLUE: 0, GREEN: 2})
    await released(world, BLUE, "v3")
    await settled(world, {BLUE: 2, GREEN: 0})


async def scaled_and_aborted(world: RemoteWorld) -> None:
    world.kill_after(10)
    apply(world, GREEN, "v2")  # type: ignore[arg-type]
    await world.until(lambda: world.state == "AwaitingApproval", "in a step", 90)
    world.request("Abort")
    await world.until(lambda: world.state == "Aborted", "aborted", 90)
    await settled(world, {BLUE: 2, GREEN: 0})


async def scaled_and_deleted(world: RemoteWorld) -> None:
    world.kill_after(10)
    apply(world, GREEN, "v2")  # type: ignore[arg-type]
    await world.until(lambda: world.state == "AwaitingApproval", "in a step", 90)
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 90)
    await settled(world, {BLUE: 2, GREEN: 0})
    for name in (BLUE, GREEN):
        meta = (world.get(LEADER_WORKER_SETS, name) or {})["metadata"]
        assert KEYS.side not in (meta.get("labels") or {}) and KEYS.original not in (meta.get("annotations") or {})


async def scaled_by_kubectl(world: RemoteWorld) -> None:
    """The Rollout is scaled, in a release, to zero and back; a number that a person gives a side is put back."""
    world.kill_after(14)
    apply(world, GREEN, "v2")  # type: ignore[arg-type]
    await world.until(lambda: world.state == "AwaitingApproval", "in a step", 90)
    world.patch(ROLLOUTS, NAME, {"spec": {"replicas": 3}}, "scale")
    await world.until(lambda: counts(world)[BLUE] == 3, "scaled", 60)
    await approve_to_the_end(world)  # type: ignore[arg-type]
    await settled(world, {BLUE: 0, GREEN: 3})
    world.patch_lws({"replicas": 1}, BLUE)
    await settled(world, {BLUE: 0, GREEN: 3})
    for count in (0, 2):
        world.patch(ROLLOUTS, NAME, {"spec": {"replicas": count}}, "scale")
        await settled(world, {BLUE: 0, GREEN: count})


def counts(world: RemoteWorld) -> dict[str, int]:
    return {name: (world.get(LEADER_WORKER_SETS, name) or {})["spec"]["replicas"] for name in (BLUE, GREEN)}


async def settled(world: RemoteWorld, wanted: dict[str, int]) -> None:
    """Both sides have their number of groups, as asked and as there."""

    def there() -> bool:
        leaders = {
            name: len(world.server.list(PODS, label_selector=f"{LWS_NAME}={name},{LWS_WORKER_INDEX}=0"))
            for name in (BLUE, GREEN)
        }
        return counts(world) == wanted == leaders

    await world.until(there, f"groups {wanted}", 90)


async def shifted_there_and_back(world: RemoteWorld) -> None:
    """Groups of one side go as those of the other one come: there are never more than three."""
    most = 0

    def comes_to(state: str) -> bool:
        nonlocal most
        most = max(most, len(world.server.list(PODS, label_selector=f"{LWS_WORKER_INDEX}=0")))
        return world.state == state

    world.kill_after(12)
    for side, other, tag in ((GREEN, BLUE, "v2"), (BLUE, GREEN, "v3")):
        apply(world, side, tag)  # type: ignore[arg-type]
        await world.until(lambda: comes_to("AwaitingApproval"), f"{tag} waits for approval", 90)
        await settled(world, {side: 1, other: 1})
        world.approve()
        await world.until(lambda: comes_to("Healthy"), "at rest", 90)
        await settled(world, {side: 2, other: 0})
    assert most == 3


async def shifted_and_aborted(world: RemoteWorld) -> None:
    world.kill_after(12)
    apply(world, GREEN, "v2")  # type: ignore[arg-type]
    await world.until(lambda: world.state == "AwaitingApproval", "in a step", 90)
    await settled(world, {BLUE: 1, GREEN: 1})
    world.request("Abort")
    await world.until(lambda: world.state == "Aborted", "aborted", 90)
    await settled(world, {BLUE: 2, GREEN: 0})
    notes = (world.get(LEADER_WORKER_SETS, BLUE) or {})["metadata"].get("annotations") or {}
    assert KEYS.replicas not in notes
    assert not any(KEYS.draining in (pod["metadata"].get("annotations") or {}) for pod in world.server.list(PODS))


async def accompanied_there_and_back(world: RemoteWorld) -> None:
    """The first time manifests are applied one after the other; the second time they carry the same release id."""
    world.kill_after(14)
    for side, other, tag, release_id in ((GREEN, BLUE, "v2", ""), (BLUE, GREEN, "v3", "r3")):
        apply_set(world, tag, side, release_id=release_id)  # type: ignore[arg-type]
        await world.until(lambda: world.state == "AwaitingApproval", f"{tag} waits for approval", 90)
        await approve_to_the_end(world)  # type: ignore[arg-type]
        await settled_sets(world, {side: (2, 1), other: (0, 0)})


async def accompanied_and_aborted(world: RemoteWorld) -> None:
    world.kill_after(14)
    apply_set(world, "v2")  # type: ignore[arg-type]
    await world.until(lambda: world.state == "AwaitingApproval", "in a step", 90)
    world.request("Abort")
    await world.until(lambda: world.state == "Aborted", "aborted", 90)
    await settled_sets(world, {BLUE: (2, 1), GREEN: (0, 0)})


async def accompanied_and_deleted(world: RemoteWorld) -> None:
    """A third version of the companion alone, and then the Rollout goes."""
    world.kill_after(14)
    apply_set(world, "v2")  # type: ignore[arg-type]
    await world.until(lambda: world.state == "AwaitingApproval", "in a step", 90)
    apply_one(world, PREFILL[GREEN], "v3")  # type: ignore[arg-type]
    await settled_sets(world, {BLUE: (2, 1), GREEN: (0, 0)})
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 90)
    for name in (*SETS[BLUE], *SETS[GREEN]):
        meta = (world.get(LEADER_WORKER_SETS, name) or {})["metadata"]
        assert KEYS.side not in (meta.get("labels") or {})


async def settled_sets(world: RemoteWorld, wanted: dict[str, tuple[int, int]]) -> None:
    """Every workload of both sides has its number of groups, as asked and as there."""

    def there() -> bool:
        leaders = {
            side: tuple(
                len(world.server.list(PODS, label_selector=f"{LWS_NAME}={name},{LWS_WORKER_INDEX}=0"))
                for name in SETS[side]
            )
            for side in SETS
        }
        return sets(world) == wanted == leaders  # type: ignore[arg-type]

    await world.until(there, f"groups {wanted}", 90)


ACCOMPANIED: tuple[Story, ...] = (accompanied_there_and_back, accompanied_and_aborted, accompanied_and_deleted)
SHIFTED: tuple[Story, ...] = (shifted_there_and_back, shifted_and_aborted)
SCALED: tuple[Story, ...] = (scaled_there_and_back, scaled_and_aborted, scaled_and_deleted, scaled_by_kubectl)


async def test_a_pair_comes_to_each_of_its_ends(place: Place) -> None:
    await all_told(place, STORIES, "pair", _tell)


async def test_a_pair_that_releases_scale_comes_to_each_of_its_ends(place: Place) -> None:
    await all_told(place, SCALED, "pair", _tell)


async def test_a_pair_that_shifts_comes_to_each_of_its_ends(place: Place) -> None:
    await all_told(place, SHIFTED, "pair", _tell)


async def test_a_pair_with_companions_comes_to_each_of_its_ends(place: Place) -> None:
    await all_told(place, ACCOMPANIED, "pair", _tell)


async def _tell(world: RemoteWorld, story: Story) -> None:
    await begin(world, scaled=story not in STORIES, shifts=story in SHIFTED, accompanied=story in ACCOMPANIED)
    await story(world)
    # Of workloads that releases scale, no Service is written either, and pods only where single groups go.
    ours = {LEADER_WORKER_SETS.kind} if story not in STORIES else set()
    ours |= {PODS.kind} if story in SHIFTED else set()
    assert [each for each in _written(world) if each.split()[0] not in ours] == []


def _written(world: RemoteWorld) -> list[str]:
    """Workloads, Services and pods that the controller has written."""
    return [
        f"{kind.kind} {each['metadata']['name']}"
        for kind in (LEADER_WORKER_SETS, SERVICES, PODS)
        for each in world.server.list(kind)
        for field in each["metadata"].get("managedFields") or ()
        if str(field.get("manager", "")).startswith(OURS)
    ]
