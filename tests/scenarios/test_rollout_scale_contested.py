"""The number of groups that a Rollout asks for, against others: clients that write another one, servers that refuse it,
template changes in the same moment, statuses that were lost, and Rollouts that let go of the workload.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS, SERVICES, Resource
from rollout_lws.objects.writes import Create, Patch, Write
from rollout_lws.rollout.reasons import EventReason
from tests.scenarios.invariants import always_serving
from tests.scenarios.names import ROLLOUTS
from tests.scenarios.scaled import (
    AUTOSCALER,
    HALVES,
    asked_at_rest,
    autoscaled_at_rest,
    create_autoscaler,
    finish,
    has,
    replicas,
    scale,
    scale_lws,
    scalings,
    wants,
)
from tests.scenarios.stories import assert_clean, at_rest, waiting_for_approval
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime

A_WHILE = 60
#: Longer than until a refused number is tried again.
LONG = 700
RESET = (
    "helm set spec.replicas of LeaderWorkerSet llama to 2, for which this Rollout asks for 4; it was put back: scale"
    " the Rollout instead"
)
IN_PLACE = {"canary": {"capacity": "InPlace"}}
SURGE = {"canary": {"capacity": "Surge"}}


def resets(world: World) -> list[str]:
    return [each.note for each in world.events if each.reason == EventReason.REPLICAS_RESET]


def asks(write: Write) -> int | None:
    """The number of groups of the LWS in a write of ours."""
    if not isinstance(write, Patch) or (write.resource, write.name) != (LEADER_WORKER_SETS, NAME):
        return None
    number = write.body.get("spec", {}).get("replicas")
    return None if number is None else int(number)


def refuse(world: World, numbers: Callable[[int], bool]) -> None:
    def refused(write: Write) -> ApiError | None:
        number = asks(write)
        return ApiError(403, "Forbidden", "not so many") if number is not None and numbers(number) else None

    world.refuse = refused


def refuse_canary(world: World) -> None:
    def refused(write: Write) -> ApiError | None:
        made = isinstance(write, Create) and write.resource == LEADER_WORKER_SETS
        return ApiError(403, "Forbidden", "exceeded quota") if made else None

    world.refuse = refused


def accept(world: World) -> None:
    world.refuse = lambda _: None


# Other clients


@tells(events={EventReason.REPLICAS_RESET: RESET})
async def test_the_number_of_another_client_is_put_back_and_told(world: World) -> None:
    await asked_at_rest(world)
    world.checks.clear()
    scale_lws(world, 2, "helm")
    await world.until(lambda: replicas(world) == 4)
    await world.rest()
    assert resets(world) == [RESET]
    for _ in range(4):
        await world.sleep(LONG)
        scale_lws(world, 2, "helm")
        await world.sleep(0.5)
        assert replicas(world) == 4, "each time at once"
    scale_lws(world, 2, "helm")
    await world.sleep(1.5)
    assert replicas(world) == 4, "a client that has not insisted does not wait for long"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("moment", ["at rest", "in a release", "aborted"])
async def test_a_client_that_scales_again_and_again_is_answered_ever_more_rarely(world: World, moment: str) -> None:
    await asked_at_rest(world)
    if moment != "at rest":
        await waiting_for_approval(world)
    if moment == "aborted":
        world.request("Abort")
        await world.until_state("Aborted")
    await world.rest()
    world.checks.clear()

    def insist(seen: World) -> None:
        if replicas(seen) == 4:
            scale_lws(seen, 3, "argocd-controller")

    scale_lws(world, 3, "argocd-controller")
    world.checks.append(insist)
    await world.sleep(3600)
    assert 3 <= len(scalings(world)) <= 22
    assert "LeaderWorkerSet llama has 3 replicas, and 4 does not stay" in world.status["message"]
    assert "argocd-controller writes over it" in world.status["message"]
    world.checks.clear()
    await world.sleep(LONG)
    assert replicas(world) == 4
    assert "does not stay" not in world.status.get("message", "")


async def test_a_number_put_back_while_another_one_waits_is_the_one_that_stands(world: World) -> None:
    await autoscaled_at_rest(world)
    await waiting_for_approval(world)
    wants(world, 2)
    await world.sleep(A_WHILE)
    world.checks.clear()
    for other in (3, 2):
        scale_lws(world, other, "helm")
        await world.sleep(A_WHILE)
        assert replicas(world) == 4
    assert "this Rollout asks for 4" in resets(world)[-1]


@pytest.mark.parametrize("style", [{}, IN_PLACE], ids=["canary", "in place"])
async def test_groups_that_another_client_adds_in_a_release_are_not_defended(
    world: World, style: dict[str, object]
) -> None:
    await autoscaled_at_rest(world, **style)
    await waiting_for_approval(world)
    scale_lws(world, 6, "helm")
    await world.sleep(A_WHILE)
    assert replicas(world) == 6
    assert "spec.replicas 4 waits for the end of the release" in world.status["message"]
    scale_lws(world, 4, "helm")
    await world.sleep(A_WHILE)
    assert (replicas(world), scalings(world), resets(world)) == (4, [], [])


async def test_groups_that_another_client_took_away_come_back_where_an_autoscaler_waits(world: World) -> None:
    await autoscaled_at_rest(world, **IN_PLACE)
    await waiting_for_approval(world)
    world.checks.clear()
    world.stop_controller()
    scale_lws(world, 3, "helm")
    await world.until(lambda: len(world.groups()) == 3)
    world.start_controller()
    await world.until(lambda: len(world.groups()) == 4)


async def test_a_client_that_insists_on_no_groups_is_answered_ever_more_rarely(world: World) -> None:
    await asked_at_rest(world)
    world.checks.clear()

    def insist(seen: World) -> None:
        if replicas(seen):
            scale_lws(seen, 0, "helm")

    scale_lws(world, 0, "helm")
    world.checks.append(insist)
    before = len(world.writes)
    await world.sleep(3600)
    assert len(world.writes) - before < 120


async def test_a_version_that_took_effect_without_groups_is_not_started_by_us(world: World) -> None:
    await asked_at_rest(world)
    await waiting_for_approval(world)
    world.checks.clear()
    world.stop_controller()
    scale_lws(world, 0, "helm")
    await world.until(lambda: world.groups() == {})
    world.start_controller()
    await world.sleep(A_WHILE)
    assert (replicas(world), world.state) == (0, "Healthy")
    assert "stays at 0 replicas" in world.status["message"]
    scale(world, 5)
    await world.sleep(A_WHILE)
    assert replicas(world) == 0
    scale_lws(world, 5)
    await world.until(has(world, 5, "v2"))
    await world.rest()
    assert scalings(world) == []


# Refused, or too late


async def test_a_number_that_the_server_refuses_stops_no_release_and_is_told(world: World) -> None:
    await asked_at_rest(world)
    refuse(world, lambda number: number > 5)
    scale(world, 6)
    await world.sleep(A_WHILE)
    command = (
        'kubectl patch leaderworkersets.leaderworkerset.x-k8s.io llama --type=merge -p \'{"spec":{"replicas":6}}\''
        " --dry-run=server"
    )
    assert command in world.status["message"]
    await waiting_for_approval(world)
    await finish(world)
    await world.rest()
    assert_clean(world, "v2", 4)
    assert len(scalings(world)) == 0
    accept(world)
    await world.until(lambda: replicas(world) == 6)
    await world.rest()
    assert "does not stay" not in world.status.get("message", "")


async def test_tries_that_a_busy_server_has_cost_are_no_other_clients_fault(world: World) -> None:
    await asked_at_rest(world)
    world.checks.clear()
    busy = ApiError(503, "ServiceUnavailable", "busy")
    world.refuse = lambda write: busy if asks(write) == 5 else None
    scale(world, 5)
    await world.sleep(10)
    accept(world)
    await world.until(has(world, 5))
    scale_lws(world, 4, "helm")
    await world.sleep(1.5)
    assert replicas(world) == 5


async def test_a_smaller_number_is_written_where_a_larger_one_was_refused_in_a_release(world: World) -> None:
    await autoscaled_at_rest(world)
    await waiting_for_approval(world)
    refuse(world, lambda number: number > 5)
    wants(world, 6)
    await world.sleep(A_WHILE)
    wants(world, 5)
    await world.until(has(world, 5))


async def test_a_write_of_the_release_that_is_refused_does_not_hold_up_a_number(world: World) -> None:
    await asked_at_rest(world)
    refuse_canary(world)
    world.set_image("v2")
    await world.until_state("Stalled")
    scale(world, 6)
    await world.until(has(world, 6), seconds=A_WHILE)
    assert world.condition("Stalled")["reason"] == "WriteRefused"


async def test_what_is_asked_while_a_write_of_the_release_is_refused_is_recorded(world: World) -> None:
    await at_rest(world, *HALVES)
    refuse_canary(world)
    world.set_image("v2")
    await world.until_state("Stalled")
    scale(world, 4)
    await world.until(lambda: world.status.get("replicas") == 4, seconds=A_WHILE)
    create_autoscaler(world, of=ROLLOUTS)
    wants(world, 2)
    await world.sleep(A_WHILE)
    assert world.status["scaling"]["waiting"] == {"byAutoscaler": True, "replicas": 2, "waitsFor": "ReleaseEnd"}
    world.delete(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER)
    await world.sleep(LONG)
    assert replicas(world) == 4


@pytest.mark.one_in(2, of="how")
@pytest.mark.parametrize(
    ("number", "style"),
    [(0, {}), (2, {}), (6, IN_PLACE), (2, SURGE)],
    ids=["to none", "fewer", "more, in place", "fewer, surge"],
)
@pytest.mark.parametrize("how", ["refused", "raced"])
async def test_a_number_that_did_not_get_there_before_the_release_is_judged_anew(
    world: World, number: int, style: dict[str, object], how: str
) -> None:
    await autoscaled_at_rest(world, **style)
    if how == "refused":
        refuse(world, lambda asked: asked == number)
        scale(world, number)
        await world.sleep(A_WHILE)
        await waiting_for_approval(world)
        accept(world)
    else:
        # The template is applied between the observation and the write.
        def race(write: Write) -> None:
            if asks(write) == number:
                accept(world)
                world.set_image("v2")

        world.refuse = race
        scale(world, number)
        await world.until_state("AwaitingApproval")
    await world.sleep(LONG)
    assert (replicas(world), world.state) == (4, "AwaitingApproval")
    assert f"spec.replicas {number} waits" in world.status["message"]


# Lost statuses and lists


@pytest.mark.parametrize("moment", ["at rest", "in a release"])
async def test_a_status_that_was_wiped_changes_no_number(world: World, moment: str) -> None:
    await autoscaled_at_rest(world)
    if moment == "in a release":
        await waiting_for_approval(world)
        wants(world, 2)
        await world.sleep(A_WHILE)
    world.patch(ROLLOUTS, NAME, {"status": dict.fromkeys(world.status)}, "status")
    await world.sleep(A_WHILE)
    assert (replicas(world), scalings(world)) == (4, [])


@pytest.mark.parametrize("number", [0, 2, 3, 9, 2_147_483_647])
async def test_a_forged_record_adds_no_group_and_takes_none_away(world: World, number: int) -> None:
    await autoscaled_at_rest(world)
    await waiting_for_approval(world)
    wants(world, 2)
    await world.sleep(A_WHILE)
    forged = {"replicas": number, "seen": True, "tries": number}
    world.patch(ROLLOUTS, NAME, {"status": {"scaling": forged}}, "status")
    await world.sleep(A_WHILE)
    assert (replicas(world), scalings(world)) == (4, [])


async def test_a_forged_count_of_tries_stops_no_release(world: World) -> None:
    await asked_at_rest(world)
    refuse(world, lambda number: number > 4)
    scale(world, 6)
    await world.sleep(A_WHILE)
    forged = {"tries": 2_147_483_647, "triedAt": f"{world.now - timedelta(seconds=400):%Y-%m-%dT%H:%M:%S.000000Z}"}
    world.patch(ROLLOUTS, NAME, {"status": {"scaling": forged}}, "status")
    await world.sleep(A_WHILE)
    await waiting_for_approval(world)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("style", [{}, IN_PLACE, SURGE], ids=["canary", "in place", "surge"])
async def test_a_status_that_was_wiped_in_mid_promotion_takes_no_serving_group_away(
    world: World, style: dict[str, object]
) -> None:
    await autoscaled_at_rest(world, **style)
    await waiting_for_approval(world)
    wants(world, 2)
    await world.sleep(A_WHILE)
    world.approve()
    low = (0, 1) if style else range(4)
    await world.until(lambda: any(world.groups().get(each, "").startswith("v2") for each in low))
    world.judges_words = False
    world.checks[:] = [always_serving]
    world.patch(ROLLOUTS, NAME, {"status": dict.fromkeys(world.status)}, "status")
    await world.sleep(2 * A_WHILE)


def unlisted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Autoscalers cannot be listed after a restart."""
    known = world.view.unknown

    def unknown(kind: Resource) -> str | None:
        return "forbidden" if kind == HORIZONTAL_POD_AUTOSCALERS else known(kind)

    monkeypatch.setattr(world.view, "unknown", unknown)
    world.start_controller()


async def test_that_an_autoscaler_has_asked_is_known_after_a_restart_without_a_list(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await autoscaled_at_rest(world)
    await waiting_for_approval(world)
    wants(world, 2)
    await world.sleep(A_WHILE)
    world.stop_controller()
    unlisted(world, monkeypatch)
    await world.sleep(A_WHILE)
    world.delete(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER)
    monkeypatch.undo()
    world.request("Pause")
    await world.sleep(A_WHILE)
    assert replicas(world) == 4
    assert "an autoscaler may have asked for it" in world.status["message"]


async def test_fewer_groups_wait_until_it_is_known_that_no_autoscaler_has_asked_for_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asked_at_rest(world)
    await waiting_for_approval(world)
    world.stop_controller()
    scale(world, 2)
    unlisted(world, monkeypatch)
    await world.sleep(A_WHILE)
    assert replicas(world) == 4
    assert "HorizontalPodAutoscalers that may have asked for it are not known: forbidden" in world.status["message"]
    monkeypatch.undo()
    world.request("Pause")
    await world.until(lambda: replicas(world) == 2)


# The workload is another one, or no longer ours


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", ["disabled", "deleted"])
@pytest.mark.parametrize("moment", ["at rest", "in a release"])
async def test_a_rollout_that_lets_go_of_the_lws_leaves_it_its_number(world: World, how: str, moment: str) -> None:
    await asked_at_rest(world)
    if moment == "in a release":
        await waiting_for_approval(world)
    world.checks.clear()
    if how == "disabled":
        world.patch_rollout({"disabled": True})
    else:
        world.delete(ROLLOUTS, NAME)
    scale_lws(world, 3)
    left = (lambda: world.state == "Disabled") if how == "disabled" else lambda: world.get(ROLLOUTS, NAME) is None
    await world.until(left)
    await world.rest()
    assert (replicas(world), scalings(world)) == (3, [])
    if how == "disabled":
        assert not {"replicas", "selector", "scaling"} & set(world.status)
        if moment == "in a release":
            world.set_image("v1")
        world.patch_rollout({"disabled": False})
        await world.until(lambda: len(world.groups()) == 4)
        assert resets(world) == []


async def test_an_lws_that_another_controller_owns_is_not_scaled(world: World) -> None:
    await asked_at_rest(world)
    service = world.server.get(SERVICES, NAMESPACE, NAME)["metadata"]
    owner = {"apiVersion": "v1", "kind": "Service", "name": NAME, "uid": service["uid"], "controller": True}
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"ownerReferences": [owner]}})
    scale(world, 6)
    await world.sleep(A_WHILE)
    assert (replicas(world), scalings(world), world.state) == (4, [], "Stalled")
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"ownerReferences": None}})
    await world.until(has(world, 6))


async def test_an_lws_made_anew_is_asked_anew(world: World) -> None:
    await asked_at_rest(world)
    world.checks.clear()
    world.delete(LEADER_WORKER_SETS, NAME)
    await world.until_state("Stalled")
    await world.rest()
    world.create_workload(replicas=2)
    await world.until(has(world, 4))
    assert resets(world) == []


async def test_an_lws_that_is_being_deleted_is_not_scaled(world: World) -> None:
    await asked_at_rest(world)
    world.checks.clear()
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"finalizers": ["example.com/slow"]}})
    world.delete(LEADER_WORKER_SETS, NAME)
    scale(world, 6)
    await world.sleep(A_WHILE)
    assert scalings(world) == []
