"""The controller is replaced by another release of itself, which hashes the same versions differently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CONTROLLER_REVISIONS
from rollout_lws.objects.writes import Patch
from rollout_lws.targets import version
from rollout_lws.workload import revisions
from tests.scenarios.stories import CANARY, STEPS, assert_clean, at_rest, mid_promotion, waiting_for_approval
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime

Upgrade = Callable[..., None]
_STYLES: dict[str, dict[str, Any]] = {
    "canary": {},
    "blue-green": {"blueGreen": {}},
    "in place": {"canary": {"capacity": "InPlace"}},
    "surge": {"canary": {"capacity": "Surge"}},
}
_LONG = ("blue-green", "surge")
styles = pytest.mark.parametrize(
    "style",
    [
        pytest.param(style, id=name, marks=[pytest.mark.long] if name in _LONG else [])
        for name, style in _STYLES.items()
    ],
)


@pytest.fixture
def upgrade(world: World, monkeypatch: pytest.MonkeyPatch) -> Upgrade:
    """Stops the controller and starts one that calls every version otherwise."""

    def replaced(budget: int | None = None) -> None:
        """``budget`` writes later it is killed."""
        world.stop_controller()
        before, known = hashes(world), version.plain
        monkeypatch.setattr(version, "plain", lambda members: {**known(members), "release": "next"})
        forget()
        world.start_controller(budget)
        assert before, "there is nothing that could be called otherwise"

    return replaced


@pytest.fixture(autouse=True)
def _forgets(monkeypatch: pytest.MonkeyPatch) -> Any:
    yield
    monkeypatch.undo()
    forget()


def forget() -> None:
    """As a process that has just begun."""
    version.version.cache_clear()
    revisions._recorded.cache_clear()


def steps_of(style: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """One approval before the promotion, whatever the style: only blue-green waits at its last step."""
    return (STEPS[0], {"replicas": "100%", "pause": {}}) if "blueGreen" in style else STEPS


def hashes(world: World) -> set[str]:
    """By which the status knows versions."""
    status = world.status
    told = {status.get("observedTemplateHash")}
    told |= {status[name]["templateHash"] for name in ("stable", "aborted") if name in status}
    return told - {None}


def remembered(world: World) -> dict[str, str]:
    """Hash by the image tag of each stored version."""
    return {
        each["data"]["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"].rpartition(
            ":"
        )[2]: each["metadata"]["annotations"][KEYS.template_hash]
        for each in world.server.list(CONTROLLER_REVISIONS, NAMESPACE, label_selector=KEYS.history)
    }


def reasons(world: World) -> set[str]:
    return {notice.reason for notice in world.notices}


@styles
async def test_a_release_in_its_steps_goes_on(world: World, upgrade: Upgrade, style: dict[str, Any]) -> None:
    await at_rest(world, *steps_of(style), **style)
    await waiting_for_approval(world)
    before, uids, writes = hashes(world), world.leader_uids(), len(world.writes)
    canary = world.leader_uids(CANARY)
    upgrade()
    await world.rest()
    assert world.state == "AwaitingApproval"
    assert (world.leader_uids(), world.leader_uids(CANARY)) == (uids, canary)
    assert not before & hashes(world)
    assert hashes(world) == set(remembered(world).values()), "stored versions are found by their hashes of today"
    assert len(world.writes) - writes <= 3, "two stored versions and the status"
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")
    assert not reasons(world) & {"Superseded", "RollingBack"}
    assert world.status["stable"]["templateHash"] == remembered(world)["v2"]


@styles
async def test_a_promotion_goes_on(world: World, upgrade: Upgrade, style: dict[str, Any]) -> None:
    await at_rest(world, *steps_of(style), **style)
    await mid_promotion(world)
    upgrade()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")
    assert not reasons(world) & {"Superseded", "RollingBack"}


@styles
async def test_an_abort_goes_on_and_what_was_aborted_stays_so(
    world: World, upgrade: Upgrade, style: dict[str, Any]
) -> None:
    await at_rest(world, *steps_of(style), **style)
    await mid_promotion(world)
    world.request("Abort")
    await world.until_state("RollingBack")
    upgrade()
    await world.until_state("Aborted")
    await world.rest()
    assert_clean(world, "v1")
    releases = [notice for notice in world.notices if notice.reason == "ReleaseStarted"]
    upgrade()
    await world.rest()
    assert world.state == "Aborted"
    assert [notice for notice in world.notices if notice.reason == "ReleaseStarted"] == releases
    world.request("Retry")
    await world.until_state("AwaitingApproval")


async def test_stables_template_is_known_again_when_it_is_restored(world: World, upgrade: Upgrade) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    upgrade()
    world.set_image("v1")
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v1")
    assert world.condition("Succeeded")["reason"] == "Rollback"
    assert "Superseded" not in reasons(world)


async def test_nothing_is_released_at_rest_and_the_next_version_is(world: World, upgrade: Upgrade) -> None:
    await at_rest(world)
    upgrade()
    await world.rest()
    assert (world.state, reasons(world)) == ("Healthy", {"Adopted"})
    await waiting_for_approval(world)
    assert world.status["stable"]["templateHash"] == remembered(world)["v1"]
    assert len(remembered(world)) == len(
        world.server.list(CONTROLLER_REVISIONS, NAMESPACE, label_selector=KEYS.history)
    )


async def test_a_version_that_came_while_the_controller_was_replaced_is_released(
    world: World, upgrade: Upgrade
) -> None:
    await at_rest(world)
    world.stop_controller()
    world.set_image("v2")
    upgrade()
    await world.until_state("AwaitingApproval")
    assert world.groups(CANARY) == {0: "v2", 1: "v2"}
    assert world.status["stable"]["templateHash"] == remembered(world)["v1"]


async def test_an_aborted_version_that_only_lws_knows_stays_aborted(world: World, upgrade: Upgrade) -> None:
    """The Rollout that remembered it is gone, and its mark on the LWS has a hash that means nothing any more."""
    await at_rest(world)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")
    for each in world.server.list(CONTROLLER_REVISIONS, NAMESPACE, label_selector=KEYS.history):
        world.server.delete(CONTROLLER_REVISIONS, NAMESPACE, each["metadata"]["name"])
    upgrade()
    world.patch_rollout({"disabled": False})
    await world.until_state("Aborted")
    await world.rest()
    assert world.groups() == dict.fromkeys(range(4), "v1")
    assert NAME in world.names()["leaderworkersets"] and CANARY not in world.names()["leaderworkersets"]


@pytest.mark.parametrize(
    "style",
    [pytest.param(each, id=name, marks=[pytest.mark.long] if each else []) for name, each in _STYLES.items()],
)
@pytest.mark.parametrize("budget", range(4))
async def test_a_controller_that_is_killed_as_it_learns_the_new_names_loses_nothing(
    world: World, upgrade: Upgrade, style: dict[str, Any], budget: int
) -> None:
    await at_rest(world, *steps_of(style), **style)
    await waiting_for_approval(world)
    upgrade(budget)
    await world.rest()
    world.start_controller()
    await world.rest()
    assert (world.state, reasons(world) & {"Superseded", "RollingBack"}) == ("AwaitingApproval", set())
    assert hashes(world) == set(remembered(world).values())


@pytest.mark.parametrize("name", ["status", "controllerrevisions"])
async def test_a_write_that_is_refused_once_meanwhile_loses_nothing(world: World, upgrade: Upgrade, name: str) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    conflicts = [ApiError(409, "Conflict", "it has changed")]
    world.refuse = lambda write: (
        conflicts.pop()
        if conflicts and isinstance(write, Patch) and name in (write.subresource, write.resource.plural)
        else None
    )
    upgrade()
    await world.rest()
    assert not conflicts
    assert (world.state, reasons(world) & {"Superseded"}) == ("AwaitingApproval", set())
    assert hashes(world) == set(remembered(world).values())


@pytest.mark.parametrize("leave", ["disabled", pytest.param("deleted", marks=pytest.mark.long)])
@styles
async def test_who_leaves_in_mid_promotion_finishes_it_all_the_same(
    world: World, upgrade: Upgrade, style: dict[str, Any], leave: str
) -> None:
    await at_rest(world, *steps_of(style), **style)
    await mid_promotion(world)
    if "canary" in style:
        await world.until(lambda: world.state == "Promoting", "the promotion")
    world.stop_controller()
    if leave == "disabled":
        world.patch_rollout({"disabled": True})
    else:
        world.delete(world.ROLLOUT, NAME)
    upgrade()
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None or world.state == "Disabled", "left")
    await world.rest()
    assert world.groups() == dict.fromkeys(range(4), "v2")
    assert not reasons(world) & {"Superseded", "RollingBack"}
