"""Swaps: what clients, people and lost evidence may do to a release and between two, and what is left standing."""

from __future__ import annotations

import pytest

from rollout_lws.api import batch_releases
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, PERSISTENT_VOLUME_CLAIMS, SERVICES
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.metered import Metered, metered
from tests.scenarios.paired import set_ready, wipe
from tests.scenarios.paired_scaled import stalled
from tests.scenarios.routed import SERVICE, make
from tests.scenarios.scaled import create_autoscaler, wants
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import (
    STEPS,
    SWAP,
    come_to,
    leave_as_is,
    left_as_is,
    make_anew,
    moved,
    released,
    replicas,
    roles,
    swapped,
    to_the_end,
)
from tests.scenarios.test_refused_versions import template
from tests.scenarios.test_volume_claims import CLAIM
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime

WAYS = pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])
BATCH_RELEASES = batch_releases("rollouts.kruise.io")


async def _all_moved(m: Metered) -> None:
    world = m.world

    def moved_all() -> bool:
        wanted = (world.status.get("traffic") or {}).get("desired") or {}
        return bool(wanted.get("weight") == 100)

    await world.until(moved_all, "all requests", 600)


def _forced_out(world: World) -> None:
    """The Rollout goes without its controller, whose finalizer is taken, and is made anew."""
    made = world.rollout
    world.stop_controller()
    world.delete(ROLLOUTS, NAME)
    world.patch(ROLLOUTS, NAME, {"metadata": {"finalizers": None}})
    make_anew(world, made)
    world.start_controller()


# Requests


async def test_old_groups_that_still_stand_get_the_requests_of_a_new_side_that_fails() -> None:
    async with swapped() as m:
        world = m.world
        await come_to(m, "clean-up", "v2")
        set_ready(world, CANARY, False)
        await world.sleep(60)
        assert world.groups() == dict.fromkeys(range(4), "v1")
        assert await m.shares() == {NAME: 1.0}


@pytest.mark.parametrize("promotion", ["Swap", "InPlace"])
async def test_a_copy_of_the_service_that_is_deleted_as_it_has_all_requests_is_made_again(promotion: str) -> None:
    async with metered(*STEPS, replicas=4, style="blueGreen", words={"promotion": promotion}) as m:
        world = m.world
        await world.rest()
        await come_to(m, "hand-over", "v2")
        await _all_moved(m)
        await world.sleep(1)
        world.delete(SERVICES, f"{SERVICE}-canary")
        await world.sleep(120)
        assert "" not in await m.shares(), m.meter.failures


@pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])
async def test_a_release_ends_without_the_copy_of_the_service(away: bool) -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=away)
        await come_to(m, "clean-up", "v3")
        await world.sleep(2)
        world.delete(SERVICES, f"{SERVICE}-canary")
        await to_the_end(world)


@pytest.mark.parametrize("late", [False, True], ids=["as it grows", "with all requests"])
async def test_a_second_set_that_is_deleted_in_the_hand_over_is_made_again(late: bool) -> None:
    async with swapped() as m:
        world = m.world
        await come_to(m, "hand-over", "v2")
        if late:
            await _all_moved(m)
            await world.sleep(5)
        world.delete(LEADER_WORKER_SETS, CANARY)
        await to_the_end(world)
        assert replicas(world) == {NAME: 0, CANARY: 4}


async def test_a_second_set_that_is_deleted_with_all_requests_goes_when_it_has_none() -> None:
    async with swapped() as m:
        world = m.world
        await come_to(m, "hand-over", "v2")
        await _all_moved(m)
        await world.sleep(5)
        world.delete(LEADER_WORKER_SETS, CANARY)
        await world.sleep(300)
        m.assert_unharmed()


async def test_a_rollout_that_is_made_again_gives_no_request_to_a_version_that_has_none() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        await come_to(m, "step 1", "v3")
        begun = world.server.clock()
        _forced_out(world)
        await world.sleep(20)
        told = {client: m.meter.shares(client, begun) for client in ("users", "direct")}
        assert all(set(shares) == {CANARY} for shares in told.values()), (told, m.meter.failures)


async def test_a_rollout_that_is_made_again_as_the_roles_have_changed_loses_no_request() -> None:
    async with swapped() as m:
        world = m.world
        await come_to(m, "clean-up", "v2")
        await world.sleep(2)
        _forced_out(world)
        await world.sleep(300)
        m.assert_unharmed()


# Labels


@pytest.mark.parametrize("moment", ["step 1", "step 2"])
async def test_a_role_that_another_client_gives_a_second_set_in_a_release_takes_nothing(moment: str) -> None:
    async with swapped() as m:
        world = m.world
        await come_to(m, moment, "v2")
        world.patch(LEADER_WORKER_SETS, CANARY, {"metadata": {"labels": {KEYS.stands_for: NAME}}})
        await world.sleep(300)
        assert world.groups() == dict.fromkeys(range(4), "v1")
        assert (await m.shares()).get(NAME)


async def test_a_version_that_waits_gets_no_request_if_the_role_is_lost() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        world.patch_rollout({"strategy": {"paused": True}})
        world.set_image("v3")
        await world.sleep(30)
        world.patch(LEADER_WORKER_SETS, CANARY, {"metadata": {"labels": {KEYS.stands_for: None}}})
        await world.sleep(300)
        assert await m.shares() == {CANARY: 1.0}, (replicas(world), world.status.get("message"))


async def test_a_role_that_is_lost_at_rest_is_told_and_loads_nothing() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        world.patch(LEADER_WORKER_SETS, CANARY, {"metadata": {"labels": {KEYS.stands_for: None}}})
        await world.sleep(300)
        assert sum(replicas(world).values()) == 4


async def test_the_side_of_what_serves_is_labelled_again() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        for name in (NAME, CANARY):
            world.patch(LEADER_WORKER_SETS, name, {"metadata": {"labels": {KEYS.side: None}}})
        await world.sleep(60)
        assert roles(world) == {NAME: "parked", CANARY: "active"}


@WAYS
async def test_labels_that_an_export_has_brought_to_the_users_workload_are_told_truly(away: bool) -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=away)
        world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {KEYS.stands_for: NAME, KEYS.side: "active"}}})
        await world.sleep(60)
        told = world.status.get("message", "")
        assert "llama serves in place of llama" not in told, told
        assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == 1_000_000


async def test_a_refusal_while_another_workload_serves_is_told_once() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        before = len(world.events)
        world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {KEYS.stands_for: "other"}}})
        for count in range(6):
            await world.sleep(60)
            world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {"example.com/seen": str(count)}}})
        told = [each.note for each in world.events[before:] if each.reason == EventReason.STALLED.value]
        assert len(told) <= 2, told


# Leaving, and going home


async def test_a_workload_may_be_left_as_it_is_where_the_way_home_is_refused() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        create_autoscaler(world)
        world.delete(ROLLOUTS, NAME)
        await world.until(lambda: stalled(world, Reason.STANDS_IN), "told")
        world.request("Start")
        await world.sleep(60)
        leave_as_is(world)
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "it has left", 1200)
        assert replicas(world) == {NAME: 0, CANARY: 4}


async def test_a_workload_may_be_left_as_it_is_on_the_way_home() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        world.delete(ROLLOUTS, NAME)
        await world.until(lambda: stalled(world, Reason.STANDS_IN), "told")
        world.request("Start")
        await m.step(1)
        leave_as_is(world)
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "it has left", 1200)
        assert replicas(world) == {NAME: 0, CANARY: 4}


async def test_nothing_keeps_a_workload_that_is_left_without_its_hold() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        world.patch(LEADER_WORKER_SETS, CANARY, {"metadata": {"annotations": {KEYS.release_hold: "true"}}})
        await world.sleep(60)
        await left_as_is(world)
        world.delete(LEADER_WORKER_SETS, CANARY)
        await world.sleep(600)
        assert world.get(LEADER_WORKER_SETS, CANARY) is None


async def test_workloads_that_a_person_has_turned_meanwhile_are_taken_into_care() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        made = await left_as_is(world)
        world.patch_lws({"replicas": 4})
        await world.until(lambda: world.groups() == dict.fromkeys(range(4), "v2"), "home", 600)
        world.patch_lws({"replicas": 0}, CANARY)
        await world.sleep(60)
        make_anew(world, made)
        await world.until_state("Healthy", 1200)


async def test_an_abort_stays_while_the_one_that_serves_is_being_deleted() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        world.delete(LEADER_WORKER_SETS, CANARY)
        await m.step(1)
        world.request("Abort")
        await world.sleep(300)
        assert world.state == "Healthy" and "kubectl rollout-lws home llama" in world.status["message"]
        assert replicas(world) == {NAME: 0, CANARY: 4}


async def test_a_version_that_was_aborted_is_not_tried_for_ever_while_the_one_that_serves_is_being_deleted() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        world.patch_rollout({"strategy": {"onFailure": "Abort", "progressDeadlineSeconds": 60}})
        world.set_image("bad")
        await world.until_state("Aborted", 1200)
        world.delete(LEADER_WORKER_SETS, CANARY)
        await world.sleep(3600)
        started = [each for each in world.events if each.reason == EventReason.RELEASE_STARTED.value]
        assert len(started) < 8, len(started)


# Numbers


async def test_an_autoscaler_of_the_one_that_serves_is_refused_too() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        create_autoscaler(world, target=CANARY)
        wants(world, 2)
        await world.sleep(60)
        assert "have it scale the Rollout" in world.status.get("message", "")


async def test_a_disabled_rollout_says_so_where_groups_of_an_unreleased_version_start() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        world.patch_rollout({"disabled": True})
        await world.until(lambda: stalled(world, Reason.STANDS_IN), "told")
        world.set_image("v3")
        world.patch_lws({"replicas": 4})
        await world.sleep(600)
        told = world.status.get("message", "")
        assert "has no groups" not in told, (told, replicas(world), await m.shares())


# Volume claims


def _with_claims(world: World) -> None:
    world.create_workload(
        leaderWorkerTemplate={
            "size": 2,
            "workerTemplate": template("v1", world.containers),
            "volumeClaimTemplates": [CLAIM],
        }
    )
    world.create_rollout({"replicas": "100%", "pause": {}}, blueGreen=SWAP)
    world.start_controller()


async def test_claims_of_groups_that_are_scaled_away_for_good_are_told(world: World) -> None:
    _with_claims(world)
    await world.until_state("Healthy")
    await world.until(lambda: world.rollout["spec"].get("replicas") == 4, "its number")
    await released(world, "v2")
    await world.sleep(60)
    claims = {each["metadata"]["name"] for each in world.server.list(PERSISTENT_VOLUME_CLAIMS, NAMESPACE)}
    assert f"cache-{NAME}-0" in claims
    told = [each.note for each in world.events if each.reason == EventReason.VOLUME_CLAIMS_KEPT.value]
    assert any(f"cache-{NAME}-0" in note for note in told), told


async def test_claims_that_are_changed_while_the_workload_is_parked_are_refused_by_name(world: World) -> None:
    _with_claims(world)
    await world.until_state("Healthy")
    await world.until(lambda: world.rollout["spec"].get("replicas") == 4, "its number")
    await released(world, "v2")
    other = {**CLAIM, "spec": {**CLAIM["spec"], "resources": {"requests": {"storage": "2Gi"}}}}
    world.patch_lws({"leaderWorkerTemplate": {"volumeClaimTemplates": [other]}})
    world.set_image("v3")
    await world.sleep(900)
    assert "volumeClaimTemplates" in world.status.get("message", ""), world.status.get("message")


# Further


async def test_a_service_that_selects_the_one_that_serves_by_its_name_would_be_left_behind_as_well() -> None:
    async with swapped(allowUnmanagedBackends=True) as m:
        world = m.world
        await moved(m, away=True)
        make(world, SERVICES, "by-name", spec={"selector": {LWS_NAME: CANARY}, "ports": [{"port": 80}]})
        world.set_image("v3")
        await world.until(lambda: stalled(world, Reason.LEFT_BEHIND), "refused")


async def test_a_status_that_is_lost_as_the_rollout_is_disabled_leaves_no_groups_behind() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        await come_to(m, "step 2", "v3")
        world.stop_controller()
        wipe(world)
        world.patch_rollout({"disabled": True})
        world.start_controller()
        await world.sleep(900)
        assert replicas(world) == {NAME: 0, CANARY: 4}, world.status.get("message")
        m.assert_unharmed()


async def test_a_service_that_is_applied_again_as_the_roles_have_changed_cuts_nothing() -> None:
    async with swapped() as m:
        world = m.world
        await come_to(m, "clean-up", "v2")
        world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_NAME: None}}})
        await to_the_end(world)
        m.assert_unharmed()


async def test_a_rollout_that_is_deleted_may_leave_with_its_status_lost_in_a_release_home() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        await come_to(m, "step 2", "v3")
        world.stop_controller()
        wipe(world)
        world.delete(ROLLOUTS, NAME)
        world.start_controller()
        await world.sleep(900)
        leave_as_is(world)
        await world.sleep(900)
        assert world.get(ROLLOUTS, NAME) is None, world.status.get("message")


async def test_an_abort_on_the_way_home_of_a_rollout_that_is_deleted_is_told() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        world.delete(ROLLOUTS, NAME)
        await world.until(lambda: stalled(world, Reason.STANDS_IN), "told")
        world.request("Start")
        await m.step(1)
        world.request("Abort")
        await world.sleep(300)
        assert stalled(world, Reason.STANDS_IN)
        world.request("Start")
        await world.until(lambda: world.state == "AwaitingApproval", "again", 600)


# What no other story tells


async def test_what_is_left_as_it_is_gets_its_finalizer_again() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        made = await left_as_is(world)
        make_anew(world, made)
        await world.until_state("Healthy", 600)
        await world.rest()
        assert (world.get(LEADER_WORKER_SETS, CANARY) or {})["metadata"]["finalizers"] == [KEYS.canary_finalizer]


@pytest.mark.each_change
async def test_a_version_with_a_partition_restarts_no_group_that_drains() -> None:
    async with swapped() as m:
        world = m.world
        await come_to(m, "clean-up", "v2")
        template = {"workerTemplate": {"spec": {"containers": world.containers.of("v3")}}}
        open_to_all = {"rollingUpdateConfiguration": {"partition": 0}}
        world.patch_lws({"leaderWorkerTemplate": template, "rolloutStrategy": open_to_all})
        await world.sleep(2)
        assert world.groups() == dict.fromkeys(range(4), "v1")
        await world.until(lambda: {*world.groups().values()} == {"v3"}, "the next release", 600)
        await to_the_end(world)
        assert world.groups() == dict.fromkeys(range(4), "v3")


async def test_the_way_home_drains_once_whatever_the_plan() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        world.patch_rollout({"strategy": {"blueGreen": {"promotion": None}}})
        await come_to(m, "clean-up", "v3")
        turned = world.server.clock()
        await world.until_state("Healthy", 600)
        # Grace for routers, and the end of pods; what ran has had its time before.
        assert world.server.clock() - turned < 25
