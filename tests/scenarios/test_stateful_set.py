"""What is a StatefulSet's own in a release: strategies by hand, ordinals that begin elsewhere, claims, names, waits."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import PODS, SERVICES, STATEFUL_SETS
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios import paired
from tests.scenarios.count import HOLD, partition
from tests.scenarios.invariants import always_serving, at_most_down, nothing_unapproved_starts
from tests.scenarios.kinds import LWS, MADE, ON_DELETE, ORDERED, STATEFUL_SET, LeaderWorkerSets, StatefulSets
from tests.scenarios.metered import LAG, metered
from tests.scenarios.routed import BY_ROUTE, FIVE, SERVICE, create_provider, routing, share
from tests.scenarios.stories import CANARY, assert_clean, at_rest, waiting_for_approval
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime
GREEN: tuple[dict[str, Any], ...] = (
    {"replicas": "100%", "traffic": "50%", "pause": {}},
    {"replicas": "100%", "traffic": "100%"},
)


def using(world: World, kind: LeaderWorkerSets) -> World:
    world.kind = kind
    return world


def strategy(world: World) -> dict[str, Any]:
    return dict(world.lws["spec"]["updateStrategy"])


async def by_hand(world: World, *names: str, tag: str = "v2") -> None:
    """The user renews pods of a StatefulSet OnDelete."""
    world.set_image(tag)
    for name in names:
        world.delete(PODS, name)
    await world.sleep(30)


def running(world: World) -> bool:
    told = world.groups()
    return len(told) == 3 and not any("!" in each for each in told.values())


async def test_one_that_was_renewed_by_hand_is_adopted_at_what_runs(world: World) -> None:
    """Its controller calls the first version of all the current one, for as long as the strategy is OnDelete."""
    using(world, StatefulSets(type="OnDelete")).create_workload(replicas=3, size=1)
    await world.until(lambda: running(world))
    await by_hand(world, "llama-0", "llama-1", "llama-2")
    status = world.lws["status"]
    assert status["currentRevision"] != status["updateRevision"]
    uids = world.leader_uids()
    world.create_rollout({"replicas": 1, "pause": {}})
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    assert (world.groups(), world.leader_uids()) == (world.all_at("v2"), uids)
    status = world.lws["status"]
    assert world.status["stable"]["revision"] == status["currentRevision"] == status["updateRevision"]
    assert (partition(world.lws), strategy(world)["type"]) == (HOLD, "RollingUpdate")
    world.checks.append(nothing_unapproved_starts())
    world.set_image("v3")
    await world.until_state("AwaitingApproval")
    world.delete(PODS, "llama-0")
    await world.until(lambda: world.groups().get(0) == "v2", "it comes back as it was")


async def test_one_that_is_half_renewed_by_hand_waits_for_the_other_half(world: World) -> None:
    using(world, StatefulSets(type="OnDelete")).create_workload(replicas=3, size=1)
    await world.until(lambda: running(world))
    await by_hand(world, "llama-1")
    world.create_rollout({"replicas": 1, "pause": {}})
    world.start_controller()
    await world.rest()
    told = world.condition("Reconciling")
    assert told["reason"] == Reason.NATIVE_ROLLOUT
    assert "delete pod llama-0 and others of an old one" in told["message"]
    assert strategy(world) == {"type": "OnDelete"}, "nothing is borrowed before"
    for name in ("llama-0", "llama-2"):
        world.delete(PODS, name)
    await world.until_state("Healthy")
    assert world.groups() == world.all_at("v2")


async def test_a_template_that_waits_for_deletions_is_released_in_steps_instead(world: World) -> None:
    using(world, StatefulSets(type="OnDelete")).create_workload(replicas=3, size=1)
    await world.until(lambda: running(world))
    await by_hand(world)
    uids = world.leader_uids()
    world.create_rollout({"replicas": 1, "pause": {}})
    world.start_controller()
    await world.until_state("AwaitingApproval")
    assert world.groups(CANARY) == {0: "v2"}
    assert world.leader_uids() == uids


@pytest.mark.parametrize("leaving", ["delete", "disable"])
async def test_on_delete_is_restored_when_the_rollout_leaves(world: World, leaving: str) -> None:
    await at_rest(using(world, ON_DELETE), size=1)
    assert strategy(world) == {"type": "RollingUpdate", "rollingUpdate": {"partition": HOLD}}
    uids = world.leader_uids()
    if leaving == "delete":
        world.delete(world.ROLLOUT, NAME)
        await world.until(lambda: world.get(world.ROLLOUT, NAME) is None)
    else:
        world.patch_rollout({"disabled": True})
        await world.until_state("Disabled")
    await world.rest()
    assert strategy(world) == {"type": "OnDelete"}
    assert not {key for key in world.lws["metadata"].get("annotations", {}) if KEYS.owns(key)}
    assert world.leader_uids() == uids


async def test_a_tool_that_applies_on_delete_again_is_told_what_to_leave_out(world: World) -> None:
    await at_rest(using(world, ON_DELETE), size=1)
    world.checks.append(nothing_unapproved_starts())
    world.patch_lws({"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}})
    await world.rest()
    assert strategy(world)["rollingUpdate"] == {"partition": HOLD}
    (told,) = [each.note for each in world.events if each.reason == EventReason.HOLD_RESET]
    assert told.endswith("it was put back: remove updateStrategy.type from its manifest")


async def test_groups_are_called_as_their_pods_are(world: World) -> None:
    await at_rest(using(world, StatefulSets(start=5)), size=1, canary={"capacity": "InPlace"})
    assert set(world.groups()) == {5, 6, 7, 8}
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    new = {index for index, told in world.groups().items() if told == "v2"}
    assert new == {7, 8}, "from the highest"
    world.approve()
    await world.until_state("Healthy")
    assert_clean(world, "v2")


async def test_a_number_of_groups_that_may_be_down_is_used_where_the_server_stores_it() -> None:
    opened: dict[str, float] = {}
    for variant in ("legacy", "max_unavailable"):
        world = World(Options(stateful_sets=variant))  # type: ignore[arg-type]
        using(world, STATEFUL_SET)
        if variant == "legacy":
            await at_rest(world, {"replicas": "50%", "pause": {}}, size=1, canary={"capacity": "InPlace"})
        else:
            rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
            world.create_workload(replicas=4, size=1, updateStrategy=rolling)
            world.create_rollout({"replicas": "50%", "pause": {}}, canary={"capacity": "InPlace"})
            await world.until(lambda: len(world.groups()) == 4, "made")  # noqa: B023
            world.start_controller()
            await world.until_state("Healthy")
        began = world.now
        world.set_image("v2")
        await world.until_state("AwaitingApproval")
        opened[variant] = (world.now - began).total_seconds()
        world.close()
    assert opened["max_unavailable"] < opened["legacy"]


async def test_min_ready_seconds_of_the_workload_counts(world: World) -> None:
    using(world, STATEFUL_SET).create_workload(replicas=3, size=1, minReadySeconds=40)
    world.create_rollout({"replicas": 1, "pause": {}})
    world.start_controller()
    await world.until_state("Healthy")
    world.set_image("v2")
    await world.until(lambda: world.groups(CANARY) == {0: "v2"}, "ready")
    ready = world.now
    await world.until_state("AwaitingApproval")
    assert (world.now - ready).total_seconds() >= 39


async def test_a_broken_pod_that_blocks_all_others_does_not_block_the_way_back(world: World) -> None:
    """With OrderedReady the controller waits for it for ever, even when its template is restored."""
    await at_rest(using(world, ORDERED), size=1, progressDeadlineSeconds=60, canary={"capacity": "InPlace"})
    world.checks.append(always_serving)
    world.set_image("bad")
    await world.until_state("Stalled")
    world.request("Abort")
    await world.until_state("Aborted")
    assert world.groups() == world.all_at("v1")
    world.set_image("v2")
    await world.until(lambda: world.state == "AwaitingApproval")
    world.approve()
    await world.until_state("Healthy")


async def test_a_canary_of_which_several_pods_are_broken_goes_all_the_same(world: World) -> None:
    """Scaled to 0, a StatefulSet OrderedReady waits for a broken pod before it deletes the next."""
    await at_rest(using(world, ORDERED), {"replicas": 3, "pause": {}}, size=1, progressDeadlineSeconds=300)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    for ordinal in (1, 2):
        world.patch(PODS, f"{CANARY}-{ordinal}", {"metadata": {"annotations": {PREFIX + "fail": "OOMKilled"}}})
    await world.until(lambda: [*world.groups(CANARY).values()].count("v2!") == 2, "two are broken")
    world.request("Abort")
    await world.until_state("Aborted", 20)
    await world.rest()
    assert_clean(world, "v1")


async def test_claims_of_the_canary_that_stay_are_told(world: World) -> None:
    claim = {"metadata": {"name": "cache"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    using(world, STATEFUL_SET).create_workload(replicas=3, size=1, volumeClaimTemplates=[claim])
    world.create_rollout({"replicas": 1, "pause": {}})
    world.start_controller()
    await world.until_state("Healthy")
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    (told,) = [each.note for each in world.events if each.reason == EventReason.VOLUME_CLAIMS_KEPT]
    assert "cache-llama-canary-0" in told
    assert f"kubectl delete pvc -n {NAMESPACE} -l {MADE}={CANARY},set=llama" in told


async def test_services_are_pinned_by_revision_and_by_the_label_of_what_was_made(world: World) -> None:
    create_provider(using(world, STATEFUL_SET), BY_ROUTE)
    await at_rest(world, *FIVE, replicas=5, size=1, canary={"trafficRoutings": routing()})
    stable = world.status["stable"]["revision"]
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    selectors = {each["metadata"]["name"]: each["spec"]["selector"] for each in world.server.list(SERVICES, NAMESPACE)}
    assert selectors == {
        SERVICE: {"app": "llama", "controller-revision-hash": stable},
        f"{SERVICE}-canary": {"app": "llama", MADE: CANARY},
        # By the headless one pods of both find each other.
        NAME: {"set": "llama"},
    }
    assert share(world) == pytest.approx(0.1)


async def test_surge_is_refused_with_what_to_use(world: World) -> None:
    using(world, STATEFUL_SET).create_workload(replicas=3, size=1)
    world.create_rollout({"replicas": 1, "pause": {}}, canary={"capacity": "Surge"})
    world.start_controller()
    await world.rest()
    told = "a StatefulSet has no surge groups: use capacity InPlace or ExtraWorkload"
    assert told in world.condition("Ready")["message"], "before a version is applied"
    world.set_image("v2")
    await world.until_state("Stalled")
    assert told in world.condition("Stalled")["message"]
    assert world.groups() == world.all_at("v1")
    assert world.get(STATEFUL_SETS, CANARY) is None


@pytest.mark.parametrize("style", ["canary", "blueGreen"])
@pytest.mark.parametrize("kind", [STATEFUL_SET, ORDERED], ids=str)
async def test_no_request_is_lost_while_a_promotion_has_both_versions_behind_one_service(
    kind: StatefulSets, style: str
) -> None:
    """Then the Service is not pinned, and the canary gets nothing besides: each pod has the same part."""
    steps = ({"replicas": 2, "traffic": "40%", "pause": {}}, {"replicas": "100%"}) if style == "canary" else GREEN
    async with metered(*steps, kind=kind, style=style) as m:
        await m.release()
        assert (await m.shares())[CANARY] == pytest.approx(0.5 if style == "blueGreen" else 0.4, abs=0.01)
        m.world.approve()
        if style == "blueGreen":
            # It always asks once more.
            await m.step(2)
            m.world.approve()
        renewed = lambda: 0 < [*m.world.groups().values()].count("v2") < 5  # noqa: E731
        await m.world.until(lambda: renewed() or m.world.state == "Healthy", "the promotion", 1200)
        if style == "canary":
            await m.world.sleep(LAG)
            assert share(m.world) == 0
            selector = (m.world.get(SERVICES, SERVICE) or {})["spec"]["selector"]
            assert selector == {"app": "llama"}
        await m.finish()
        m.assert_unharmed()


async def test_an_abort_in_such_a_promotion_loses_none_either() -> None:
    async with metered({"replicas": 2, "traffic": "40%", "pause": {}}, kind=STATEFUL_SET) as m:
        await m.release()
        m.world.approve()
        await m.world.until(lambda: "v2" in m.world.groups().values(), "a renewed group", 1200)
        await m.abort()
        # Streams on groups that were renewed end with them, as those of a LeaderWorkerSet do.
        assert not m.meter.failures
        assert m.world.groups() == m.world.all_at("v1")


async def test_in_order_one_group_is_renewed_at_a_time_however_many_may_be_down() -> None:
    """Two would come back one after the other, and be down for as long together."""
    world = World(Options(stateful_sets="max_unavailable"))
    using(world, ORDERED)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    world.create_workload(replicas=4, size=1, updateStrategy=rolling)
    world.create_rollout({"replicas": "50%", "pause": {}}, canary={"capacity": "InPlace"})
    await world.until(lambda: world.groups() == dict.fromkeys(range(4), "v1"), "made")
    world.start_controller()
    await world.until_state("Healthy")
    world.checks.append(at_most_down(1))
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Healthy")
    assert_clean(world, "v2")
    world.close()


@pytest.mark.parametrize("named", [NAME, f"{NAME}-0"], ids=["of the leaders", "of a group's workers"])
async def test_one_that_an_lws_has_made_is_told_with_the_lws_to_name_instead(world: World, named: str) -> None:
    world.create_workload(replicas=2, size=2)
    await world.rest()
    world.create_rollout({"replicas": 1, "pause": {}}, workload=named)
    ref = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": named}
    world.patch_rollout({"workloadRef": ref})
    before = world.server.list(STATEFUL_SETS, NAMESPACE)
    world.start_controller()
    await world.rest()
    told = world.condition("Stalled")
    assert (told["reason"], told["message"]) == (
        Reason.WORKLOAD_NOT_FOUND,
        f"StatefulSet {named} was made by LeaderWorkerSet llama for its groups, and is no workload of its own: name the"
        " LeaderWorkerSet instead (apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: llama)",
    )
    assert world.server.list(STATEFUL_SETS, NAMESPACE) == before
    world.delete(world.ROLLOUT, NAME)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None, "it leaves")
    assert world.server.list(STATEFUL_SETS, NAMESPACE) == before


async def test_one_that_does_not_exist_is_to_be_created(world: World) -> None:
    using(world, STATEFUL_SET).create_rollout({"replicas": 1, "pause": {}})
    world.start_controller()
    await world.rest()
    told = "StatefulSet llama does not exist in namespace default: create it, or delete this Rollout"
    assert world.condition("Stalled")["message"] == told


@pytest.mark.parametrize("side", ["workloadRef", "counterpartRef"])
async def test_one_that_an_lws_has_made_is_no_side_of_a_pair(world: World, side: str) -> None:
    paired.create_sides(using(world, STATEFUL_SET))
    await paired.all_ready(world, paired.BLUE, paired.GREEN)
    world.kind = LWS
    world.create_workload(name="of-lws", replicas=2, size=2, tag="v1")
    await world.sleep(30)
    body = paired.rollout(kind=STATEFUL_SET)
    body["spec"][side]["name"] = "of-lws"
    world.server.create(world.ROLLOUT, body)
    world.start_controller()
    await world.rest()
    assert (
        "StatefulSet of-lws was made by LeaderWorkerSet of-lws for its groups" in world.condition("Stalled")["message"]
    )


async def test_a_rolling_update_that_stands_still_behind_a_pod_is_told_with_the_pod_to_delete(world: World) -> None:
    """Of one that makes its pods in order no newer template replaces a broken pod: its controller waits for it."""
    using(world, ORDERED).create_workload(replicas=2, size=1)
    await world.until(lambda: world.groups() == {0: "v1", 1: "v1"})
    world.set_image("bad")
    await world.until(lambda: world.groups().get(1) == "bad!")
    world.set_image("v2")
    await world.sleep(60)
    world.create_rollout({"replicas": 1, "pause": {}})
    world.start_controller()
    await world.rest()
    assert world.groups() == {0: "v1", 1: "bad!"}
    told = world.condition("Reconciling")
    assert (told["reason"], told["message"]) == (
        Reason.NATIVE_ROLLOUT,
        "waiting until StatefulSet llama has finished its own rolling update; its controller waits for pod llama-1,"
        " of an earlier version, to be ready: if it never will be, delete pod llama-1, and it comes back at the new"
        " one",
    )
    world.delete(PODS, "llama-1")
    await world.until_state("Healthy")
    assert world.groups() == {0: "v2", 1: "v2"}


async def test_a_rolling_update_whose_new_pod_is_not_ready_asks_for_no_deletion(world: World) -> None:
    """A pod of the version that it rolls to would only come back as it is."""
    using(world, ORDERED).create_workload(replicas=2, size=1)
    await world.until(lambda: world.groups() == {0: "v1", 1: "v1"})
    world.set_image("bad")
    await world.until(lambda: world.groups().get(1) == "bad!")
    world.create_rollout({"replicas": 1, "pause": {}})
    world.start_controller()
    await world.rest()
    told = world.condition("Reconciling")
    assert (told["reason"], "delete pod" in told["message"]) == (Reason.NATIVE_ROLLOUT, False)


async def test_a_hold_that_is_released_of_one_on_delete_is_told_with_the_pods_to_delete(world: World) -> None:
    """Its own strategy replaces nothing by itself, in an emergency as well."""
    await at_rest(using(world, ON_DELETE), {"replicas": 1, "pause": {}}, replicas=2, size=1)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    world.patch(STATEFUL_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: "true"}}})
    await world.until_state("HoldReleased")
    world.patch(STATEFUL_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: None}}})
    await world.sleep(600)
    assert world.groups() == {2: "v1", 3: "v1"} and strategy(world) == {"type": "OnDelete"}
    told = world.condition("Reconciling")["message"]
    assert "updateStrategy is OnDelete: delete pod llama-2 and others of an old one" in told
    world.checks.clear()
    for name in ("llama-2", "llama-3"):
        world.delete(PODS, name)
    await world.until_state("Healthy")
    await world.rest()
    assert world.groups() == {2: "v2", 3: "v2"} and partition(world.lws) == HOLD
