"""Doctor of a pair whose sides have hardly more groups together than one of them at rest."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.doctor.links import Name, State, first
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.workload.draining import Draining, taken_out
from tests.cli.doctor.looking import assert_whole, links, told
from tests.cli.doctor.test_doctor_scaled import of, of_workload
from tests.scenarios.paired import BLUE, GREEN, approve_to_the_end
from tests.scenarios.paired_shift import assert_none_left, come_to, draining, shifting
from tests.scenarios.world import KEYS, World

pytestmark = pytest.mark.looptime


def take_out(world: World, pod: str, labels: dict[str, str]) -> None:
    """As a controller does that is about to scale the group away."""
    body = taken_out(Draining(labels, world.now), KEYS)
    world.patch(PODS, pod, body)


def annotate(world: World, pod: str, text: str) -> None:
    world.patch(PODS, pod, {"metadata": {"annotations": {KEYS.draining: text}}})


async def test_in_a_release_nothing_is_broken_and_both_sides_carry_the_load() -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "draining")
        while world.state != "AwaitingApproval":
            await assert_whole(world)
        await come_to(world, "step 2")
        await world.sleep(60)
        found = await links(world)
        assert first(found, State.BROKEN) is None, told(found)
        assert of_workload(found, BLUE).found == "generation 5, 1 of 4 groups, the active side"
        assert of_workload(found, GREEN).found.endswith("3 groups, the inactive side")
        (waits,) = of(found, Name.RELEASE).values()
        assert waits.affected == (
            "no user yet: 4 of 4 groups of both sides are ready; 75% of requests go to the new version"
        )
        await approve_to_the_end(world)
        await world.sleep(60)
        found = await links(world)
        assert {each.state for each in found} == {State.OK}, told(found)


async def test_groups_that_get_no_more_requests_carry_no_load() -> None:
    async with shifting({"maxExtraGroups": 0, "maxUnavailableGroups": 1}) as pair:
        world = pair.world
        await come_to(world, "draining")
        (waits,) = of(await links(world), Name.RELEASE).values()
        assert waits.affected.startswith("users, as far as the other groups cannot carry the load: 3 of 4 groups")


@pytest.mark.parametrize("watched", [True, False], ids=["a controller", "no controller"])
async def test_pods_without_a_label_outside_of_a_release(watched: bool) -> None:
    async with shifting() as pair:
        world = pair.world
        if not watched:
            world.stop_controller()
        since = f"{world.now:%H:%M:%S}"
        for pod in (f"{BLUE}-2", f"{BLUE}-3"):
            take_out(world, pod, {"app": "llama"})
        found = await links(world)
        if watched:
            assert {each.state for each in found} == {State.OK}, told(found)
            assert_none_left(world)
            return
        one = of(found, Name.READINESS)[f"Pod/{BLUE}-2"]
        assert one is first(found, State.BROKEN), told(found)
        assert one.found == (
            f"pod {BLUE}-2 gets no requests since {since} UTC: a release has removed its label app, and none takes"
            " groups now (and 1 more)"
        )
        assert one.affected.endswith("2 of 4 groups of llama are ready")
        assert one.next == (
            "kubectl label pod llama-2 --overwrite app=llama",
            "kubectl annotate pod llama-2 rollouts.kruise.io/draining-",
            "kubectl label pod llama-3 --overwrite app=llama",
            "kubectl annotate pod llama-3 rollouts.kruise.io/draining-",
        )
        for pod in (f"{BLUE}-2", f"{BLUE}-3"):
            world.patch(PODS, pod, {"metadata": {"labels": {"app": "llama"}, "annotations": {KEYS.draining: None}}})
        assert not draining(world)
        await assert_whole(world)


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"labels": {"--all": "x"}, "since": "2026-01-01T00:00:00Z"}', '{"labels": {"app": "$(id)"}}'],
)
async def test_of_a_record_that_says_no_labels_no_command_is_made(text: str) -> None:
    async with shifting() as pair:
        world = pair.world
        world.stop_controller()
        annotate(world, f"{BLUE}-1", text)
        one = first(await links(world), State.BROKEN)
        assert one is not None and (one.name, one.about) == (Name.READINESS, f"Pod/{BLUE}-1")
        assert "cannot be read" in one.found
        assert [each.split("   ")[0] for each in one.next] == [
            "kubectl get pod llama-1 --show-labels",
            "kubectl annotate pod llama-1 rollouts.kruise.io/draining-",
        ]


async def test_an_active_side_that_lacks_groups_at_rest() -> None:
    async with shifting() as pair:
        world = pair.world
        world.stop_controller()
        body: dict[str, Any] = {"metadata": {"annotations": {KEYS.replicas: "4"}}, "spec": {"replicas": 1}}
        world.patch(LEADER_WORKER_SETS, BLUE, body)
        await world.sleep(60)
        found = of_workload(await links(world), BLUE)
        assert (found.state, found.found) == (
            State.BROKEN,
            "has 1 of its 4 groups, though it is the active side and no release is on",
        )
        assert found.by_itself == "the controller gives it the others back as soon as it acts, and they load"
