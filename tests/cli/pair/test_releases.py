"""The picture of a pair, and the end of a gate, from what a controller says of whole releases."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.doctor.links import Name, State, first
from rollout_lws.cli.get.picture import release
from rollout_lws.cli.releases import assemble
from rollout_lws.cli.status.gate import Goal, has_ended, judge, pin
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from tests.cli.doctor.looking import links, told
from tests.scenarios.failures import cordon
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    apply,
    approve_to_the_end,
    create_sides,
    pair_at_rest,
    rollout,
    set_weights,
)
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime


def picture(world: World) -> list[str]:
    server = world.server
    kinds = (LEADER_WORKER_SETS, STATEFUL_SETS, PODS)
    listed = [list(server.list(kind, NAMESPACE)) for kind in kinds]
    return release(assemble(server.get(ROLLOUTS, NAMESPACE, NAME), *listed), world.now)


def line(world: World, beginning: str) -> list[str]:
    """The words of the only line that begins so."""
    (found,) = [each for each in picture(world) if each.startswith(f"{beginning} ")]
    return found.split()


async def test_at_rest_both_sides_have_their_roles_and_shares(world: World) -> None:
    await pair_at_rest(world, beside=2)
    await world.sleep(60)
    assert picture(world)[0] == (
        "llama  LeaderWorkerSet/llama (active) and LeaderWorkerSet/llama-green (inactive)  ns default"
        f"   release {world.status['observedRolloutID']}"
    )
    assert "Groups   llama 4/4 ready   llama-green 2/2 ready" in picture(world)
    assert "Users    all requests go to llama" in picture(world)
    rows = [each.split() for each in picture(world) if each.startswith(("llama  ", "llama-green"))][1:]
    assert [(row[0], row[1], row[3], row[4]) for row in rows] == [
        (BLUE, "active", "4/4", "100%"),
        (GREEN, "inactive", "2/2", "0%"),
    ]
    assert line(world, GREEN)[-3:] == ["may", "be", "retired"]
    assert not any(each.startswith("Next") for each in picture(world)), "both sides have the same version"


async def test_in_a_release_the_inactive_side_is_the_new_one(world: World) -> None:
    await pair_at_rest(world)
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    await world.rest()
    told = picture(world)
    assert f"   release {world.status['observedRolloutID']}" in told[0]
    assert line(world, GREEN)[1:5] == ["inactive", world.status["observedRolloutID"], "4/4", "20%"]
    roles = [each.split()[2] for each in told if each.startswith("  group")]
    assert roles == ["old", "new"]
    assert "After approval: 4 ready groups of llama-green, 50% traffic" in told
    assert any(each.endswith("# all requests go back to llama") for each in told)
    assert not any("holding" in each or "frees" in each for each in told), "both sides are the user's"
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    assert "After approval: all requests go to llama-green, which becomes the active side" in picture(world)


async def test_after_a_release_the_roles_have_changed_and_start_is_the_way_back(world: World) -> None:
    await pair_at_rest(world)
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    await approve_to_the_end(world)
    told = picture(world)
    assert told[0].startswith("llama  LeaderWorkerSet/llama-green (active) and LeaderWorkerSet/llama (inactive)")
    assert told[0].endswith(f"   release {world.status['stable']['revision']}"), "that of what serves"
    assert told[-1] == "Next     rollout-lws start llama   # releases the version of llama"


async def test_an_aborted_version_has_no_requests(world: World) -> None:
    await pair_at_rest(world)
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert line(world, GREEN)[3:5] == ["4/4", "0%"]
    assert picture(world)[-1] == "Next     rollout-lws retry llama   # the same version again"


async def test_sides_that_cannot_be_told_apart_have_no_roles(world: World) -> None:
    create_sides(world)
    set_weights(world, {BLUE: 50, GREEN: 50})
    world.server.create(ROLLOUTS, rollout())
    world.start_controller()
    await world.until(lambda: world.condition("Stalled").get("reason") == "ActiveSideUnknown")
    assert picture(world)[0] == "llama  LeaderWorkerSet/llama and LeaderWorkerSet/llama-green  ns default"
    assert not any("%" in each for each in picture(world) if each.startswith("llama"))


async def test_a_side_that_is_missing_is_told(world: World) -> None:
    await pair_at_rest(world)
    world.delete(LEADER_WORKER_SETS, GREEN)
    await world.until(lambda: world.condition("Stalled").get("reason") == "CounterpartMissing")
    assert line(world, "Groups") == ["Groups", "llama", "4/4", "ready"]
    assert any(each.startswith("Message  LeaderWorkerSet llama-green does not exist") for each in picture(world))


@pytest.mark.parametrize("back", [False, True], ids=["there", "and back by start"])
async def test_a_gate_ends_with_its_release_and_not_before(world: World, back: bool) -> None:
    """Judged by each status that a controller writes."""
    await pair_at_rest(world)
    apply(world, GREEN, "v2")
    if back:
        await world.until_state("AwaitingApproval")
        await approve_to_the_end(world)
    seen: list[dict[str, Any]] = []
    if back:
        world.request("Start")
        await world.until(lambda: (world.status.get("lastAction") or {}).get("type") == "Start")
        assert world.status["phase"] == "Progressing", "a gate that begins now has to wait"
    name = BLUE if back else GREEN
    pinned = pin(world.server.get(ROLLOUTS, NAMESPACE, NAME), world.server.get(LEADER_WORKER_SETS, NAMESPACE, name))

    def look(event: Any) -> None:
        if event.resource == ROLLOUTS:
            seen.append(event.object)

    forget = world.server.store.subscribe(look)
    await world.until_state("AwaitingApproval")
    await approve_to_the_end(world)
    forget()
    ends = [(judge(each, Goal("healthy"), pinned), has_ended(each, pinned)) for each in seen]
    verdicts = [(verdict.code if verdict is not None else None, ended) for verdict, ended in ends]
    assert verdicts[-1] == (0, True)
    assert {code for code, _ in verdicts[: verdicts.index((0, True))]} <= {None, 5}
    assert all(each == (0, True) for each in verdicts[verdicts.index((0, True)) :])
    assert not any(ended for code, ended in verdicts if code != 0)


async def test_while_only_the_inactive_side_serves_no_share_is_claimed(world: World) -> None:
    await pair_at_rest(world)
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    await approve_to_the_end(world)
    await world.sleep(60)
    cordon(world)
    for group in range(4):
        world.delete(PODS, f"{GREEN}-{group}")
    await world.sleep(60)
    assert world.status["message"] == "no group of llama-green is ready, so llama has all requests until one is"
    assert not any("%" in each for each in picture(world) if each.startswith(("llama", "Users")))
    found = await links(world)
    assert first(found, State.BROKEN) is None, told(found)
    (route,) = [each for each in found if each.name is Name.ROUTE]
    assert route.state is State.WAITING
    assert route.found == "HTTPRoute llama sends all of its requests to llama, while llama-green does not serve"
    readiness = next(each for each in found if each.name is Name.READINESS and each.state is State.WAITING)
    assert readiness.affected == "no user yet: 4 of 4 groups of llama are ready"
