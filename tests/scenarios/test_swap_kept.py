"""Swaps whose old groups stay for a while: the version before comes back at once, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, PODS, SERVICES
from rollout_lws.objects.workloads import StatefulSet
from rollout_lws.rollout.reasons import EventReason
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.gauge import Gauge
from tests.scenarios.metered import Metered
from tests.scenarios.paired import forge, set_ready, wipe
from tests.scenarios.routed import SERVICE
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import SWAP, kept, left_as_is, moved, plain_swap, released, replicas, roles, stands_in
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime

#: Seconds that old groups stay.
KEPT = 1800
WAYS = pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])


class Kept:
    """A release of v3 is over, and the groups that it has taken the requests off are still there."""

    def __init__(self, m: Metered, *, away: bool) -> None:
        self.m, self.away = m, away
        self.world = m.world
        self.serves, self.old = (NAME, CANARY) if away else (CANARY, NAME)
        self.before = "v2" if away else "v1"

    async def begin(self) -> Kept:
        await moved(self.m, away=self.away)
        await released(self.world, "v3")
        assert replicas(self.world) == {NAME: 4, CANARY: 4}
        return self

    def undo(self) -> None:
        self.world.set_image(self.before)

    async def all_moves_back(self) -> None:
        """The requests go back, to the groups that have stayed."""
        gauge = Gauge(self.world, 4)
        await self.world.until(lambda: self.world.state != "Healthy", "the way back", 60)
        await self.world.until_state("Healthy", 120)
        await self.world.rest()
        gauge.stop()
        assert gauge.loads == 0
        assert await self.m.shares() == {self.old: 1.0}

    def assert_at_rest(self, serves: str, count: int = 4) -> None:
        """Only what serves has groups."""
        assert replicas(self.world) == ({NAME: count} if serves == NAME else {NAME: 0, CANARY: count})
        assert roles(self.world).get(NAME) == ("parked" if serves == CANARY else None)
        assert "kept" not in self.world.status
        assert self.world.names()["batchreleases"] == []
        assert f"{SERVICE}-canary" not in self.world.names()["services"]
        assert LWS_NAME not in (self.world.get(SERVICES, SERVICE) or {})["spec"]["selector"]


@WAYS
async def test_old_groups_stay_without_requests_and_then_go(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        world = m.world
        assert world.state == "Healthy" and world.status["phase"] == "Healthy"
        assert world.condition("Ready")["status"] == "True"
        assert f"groups of {it.old} stay until" in world.status["message"]
        writes = len(world.writes)
        await world.sleep(KEPT - 300)
        assert len(world.writes) == writes
        assert world.groups(it.old) == dict.fromkeys(range(4), it.before)
        assert await m.all_shares() == {client: {it.serves: 1.0} for client in ("users", "tagged", "direct")}
        told = len([each for each in world.events if each.reason == EventReason.COMPLETED.value])
        await world.sleep(600)
        it.assert_at_rest(it.serves)
        assert world.state == "Healthy" and world.condition("Ready")["status"] == "True"
        assert len([each for each in world.events if each.reason == EventReason.COMPLETED.value]) == told
        m.assert_unharmed()


@WAYS
async def test_the_version_before_comes_back_without_a_load(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        await m.world.sleep(300)
        it.undo()
        await it.all_moves_back()
        await m.world.sleep(KEPT + 300)
        it.assert_at_rest(it.old)
        m.assert_unharmed()


async def test_a_statefulset_that_is_seen_late_costs_no_group() -> None:
    """LWS says that it has acted on the version before, and the watch of StatefulSets does not show it yet."""
    async with kept(KEPT) as m:
        it = await Kept(m, away=False).begin()
        own, since = m.world.view.stateful_sets, m.world.server.clock()
        before = [*own(it.old)]

        def late(name: str) -> Iterable[StatefulSet]:
            return before if name == it.old and m.world.server.clock() < since + 5 else own(name)

        m.world.view.stateful_sets = late  # type: ignore[method-assign]
        it.undo()
        await it.all_moves_back()
        m.assert_unharmed()


async def test_it_goes_back_and_forth_as_long_as_groups_stay() -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=False).begin()
        it.undo()
        await it.all_moves_back()
        back = Kept(m, away=True)
        back.before = "v3"
        back.undo()
        await back.all_moves_back()
        await m.world.sleep(KEPT + 300)
        it.assert_at_rest(CANARY)
        m.assert_unharmed()


@WAYS
async def test_another_version_takes_their_place_and_loads_once(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        gauge = Gauge(m.world, 4)
        await released(m.world, "v4")
        gauge.stop()
        assert (gauge.loads, gauge.extra) == (4, 4)
        await m.world.sleep(KEPT + 300)
        it.assert_at_rest(it.old)
        m.assert_unharmed()


@WAYS
async def test_groups_that_are_not_ready_are_waited_for_before_they_get_requests(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        m.world.checks.clear()
        for ordinal in range(3):
            m.world.delete(PODS, f"{it.old}-{ordinal}")
        await m.world.sleep(2)
        it.undo()
        await m.world.until(lambda: m.world.state == "Promoting", "the way back", 60)
        await m.world.until_state("Healthy", 600)
        assert await m.shares() == {it.old: 1.0}
        m.assert_unharmed()


@WAYS
async def test_an_abort_of_the_way_back_leaves_the_requests_where_they_were(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        it.undo()
        await m.world.until(lambda: m.world.state == "Promoting", "the way back", 60)
        m.world.request("Abort")
        await m.world.until_state("Aborted", 600)
        await m.world.rest()
        it.assert_at_rest(it.serves)
        assert await m.shares() == {it.serves: 1.0}
        m.assert_unharmed()


@WAYS
async def test_they_get_the_requests_if_what_serves_fails(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        set_ready(m.world, it.serves, False)
        await m.world.sleep(60)
        assert replicas(m.world)[it.old] == 4
        assert await m.shares() == {it.old: 1.0}
        await m.world.sleep(KEPT)
        assert replicas(m.world)[it.old] == 4, "the last that serves has gone"
        set_ready(m.world, it.serves, True)
        await m.world.sleep(900)
        assert await m.shares() == {it.serves: 1.0}
        it.assert_at_rest(it.serves)


@WAYS
@pytest.mark.parametrize("count", [2, 6])
async def test_a_number_of_groups_is_that_of_the_side_that_serves(away: bool, count: int) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        m.world.patch_rollout({"replicas": count})
        await m.world.until(lambda: replicas(m.world)[it.serves] == count, "scaled", 60)
        await m.world.sleep(60)
        it.undo()
        await m.world.until(lambda: m.world.state != "Healthy", "the way back", 60)
        await m.world.until_state("Healthy", 600)
        assert await m.shares() == {it.old: 1.0}
        await m.world.sleep(KEPT + 300)
        it.assert_at_rest(it.old, count)


@WAYS
async def test_none_stay_where_the_rollout_has_none(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        m.world.patch_rollout({"replicas": 0})
        await m.world.sleep(300)
        it.assert_at_rest(it.serves, 0)


@WAYS
@pytest.mark.parametrize(
    "plan",
    [
        {"blueGreen": {"scaleDownDelaySeconds": None}},
        {"blueGreen": {"promotion": "InPlace", "scaleDownDelaySeconds": None}},
        {"blueGreen": None, "canary": {"steps": [{"replicas": 1}]}},
    ],
    ids=["no delay", "no swap", "a canary"],
)
async def test_they_go_when_the_plan_keeps_them_no_more(away: bool, plan: dict[str, object]) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        if "canary" in plan:
            routings = m.world.rollout["spec"]["strategy"]["blueGreen"]["trafficRoutings"]
            plan = {**plan, "canary": {"steps": [{"replicas": 1}], "trafficRoutings": routings}}
        m.world.patch_rollout({"strategy": plan})
        await m.world.sleep(300)
        it.assert_at_rest(it.serves)
        m.assert_unharmed()


@WAYS
async def test_a_delay_that_is_edited_counts_from_the_end_of_the_release(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        await m.world.sleep(600)
        m.world.patch_rollout({"strategy": {"blueGreen": {"scaleDownDelaySeconds": 900}}})
        await m.world.sleep(120)
        assert replicas(m.world)[it.old] == 4
        await m.world.sleep(300)
        it.assert_at_rest(it.serves)


@WAYS
async def test_a_status_that_is_lost_keeps_nothing_and_takes_nothing(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        wipe(m.world)
        await m.world.sleep(600)
        it.assert_at_rest(it.serves)
        m.assert_unharmed()


@WAYS
@pytest.mark.parametrize("phase", ["Progressing", "Aborted", "Initial"])
async def test_a_forged_phase_takes_no_side_that_serves(away: bool, phase: str) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        forge(m.world, phase=phase)
        await m.world.sleep(KEPT + 300)
        assert await m.shares() == {it.serves: 1.0}
        it.assert_at_rest(it.serves)
        m.assert_unharmed()


@WAYS
async def test_a_forged_record_of_another_version_brings_nothing_back(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        forge(m.world, kept={"templateHash": "0000000000", "since": "2026-01-01T00:00:00Z"})
        await m.world.sleep(10)
        it.undo()
        await m.world.until_state("AwaitingApproval", 600)
        assert await m.shares() == {it.serves: 1.0}
        m.assert_unharmed()


@WAYS
async def test_a_service_that_is_applied_again_sends_them_nothing_for_long(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        for _ in range(2):
            m.world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_NAME: None}}})
            await m.world.sleep(60)
        assert await m.shares() == {it.serves: 1.0}
        await m.world.sleep(KEPT)
        it.assert_at_rest(it.serves)
        assert not m.meter.failures


@WAYS
async def test_requests_that_still_run_are_answered_before_they_go(away: bool) -> None:
    """The version before got requests by mistake of another client just before its time is over."""
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        since = datetime.fromisoformat(m.world.status["kept"]["since"])
        await m.world.sleep((since - m.world.now).total_seconds() + KEPT - 5)
        assert replicas(m.world)[it.old] == 4
        m.world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_NAME: None}}})
        await m.world.sleep(300)
        it.assert_at_rest(it.serves)
        m.assert_unharmed()


async def test_the_way_home_ends_their_time() -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=False).begin()
        m.world.request("Start")
        await m.world.until_state("AwaitingApproval", 600)
        assert m.world.groups() == dict.fromkeys(range(2), "v3")
        assert await m.shares() == {it.serves: 1.0}
        m.assert_unharmed()


async def test_what_serves_is_deleted_and_the_requests_go_home() -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=False).begin()
        m.world.delete(LEADER_WORKER_SETS, it.serves)
        await m.world.until_state("AwaitingApproval", 600)
        assert m.world.groups(it.serves) == dict.fromkeys(range(4), "v3")
        m.assert_unharmed()


async def test_a_rollout_that_leaves_takes_their_groups() -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=True).begin()
        await left_as_is(m.world)
        assert replicas(m.world).get(CANARY, 0) == 0 and replicas(m.world)[NAME] == 4
        assert await m.shares() == {it.serves: 1.0}
        assert f"{SERVICE}-canary" not in m.world.names()["services"]
        m.assert_unharmed()


async def _begin(world: World) -> None:
    await plain_swap(world, words={**SWAP, "scaleDownDelaySeconds": KEPT})


async def _there_and_back(world: World, _: None) -> None:
    await released(world, "v2")
    assert replicas(world) == {NAME: 4, CANARY: 4} and stands_in(world)
    world.set_image("v1")
    await world.until(lambda: world.state != "Healthy", "the way back")
    await world.until_state("Healthy", 600)
    await world.rest()
    assert not stands_in(world) and world.groups() == dict.fromkeys(range(4), "v1")
    world.set_image("v2")
    await world.until(lambda: world.state != "Healthy", "and forth")
    await world.until_state("Healthy", 600)
    await world.rest()
    assert stands_in(world) and world.groups(CANARY) == dict.fromkeys(range(4), "v2")
    await world.sleep(KEPT + 300)
    assert replicas(world) == {NAME: 0, CANARY: 4}
    assert world.names()["batchreleases"] == []


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_controller_killed_after_any_write_comes_to_the_same_end(part: int) -> None:
    kill_after_every_write(_begin, _there_and_back, part)


# What an unkind reader has found


@WAYS
async def test_no_warning_says_that_others_wrote_what_is_ours(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        begun = len(m.world.events)
        it.undo()
        await it.all_moves_back()
        assert [each.note for each in m.world.events[begun:] if each.type == "Warning"] == []


@WAYS
async def test_a_group_that_the_plan_tolerates_lets_the_requests_come_back(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        set_ready(m.world, it.old, False, 2)
        m.world.patch_rollout({"strategy": {"blueGreen": {"failureThreshold": "25%"}}})
        it.undo()
        await m.world.until(lambda: m.world.state != "Healthy", "the way back", 60)
        await m.world.until_state("Healthy", 300)
        assert await m.shares() == {it.old: 1.0}
        assert not m.meter.failures


async def test_the_users_workload_is_deleted_and_those_that_stay_answer() -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=True).begin()
        before = m.world.lws
        m.world.delete(LEADER_WORKER_SETS, NAME)
        await m.world.sleep(60)
        assert await m.shares() == {CANARY: 1.0}
        meta = {"name": NAME, "namespace": NAMESPACE}
        m.world.server.create(LEADER_WORKER_SETS, {**before, "metadata": meta})
        await m.world.until(lambda: replicas(m.world) == {NAME: 4}, "taken into care", 1200)
        await m.world.rest()
        assert await m.shares() == {NAME: 1.0}
        it.assert_at_rest(NAME)


@WAYS
async def test_that_they_answer_is_told(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        set_ready(m.world, it.serves, False)
        await m.world.sleep(60)
        told = f"no group of {it.serves} is ready: 4 of {it.old}, of the version before, answer until one is"
        assert told in m.world.status["message"]


@WAYS
async def test_groups_beyond_the_number_go_and_missing_ones_load_when_they_are_wanted(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        m.world.patch_lws({"replicas": 6}, it.old)
        await m.world.until(lambda: replicas(m.world)[it.old] == 4, "put back", 60)
        m.world.patch_lws({"replicas": 3}, it.old)
        await m.world.sleep(60)
        assert "gets the requests back when 4 groups are ready, of which 3 are" in m.world.status["message"]
        it.undo()
        await m.world.until(lambda: m.world.state != "Healthy", "the way back", 60)
        await m.world.until_state("Healthy", 300)
        assert await m.shares() == {it.old: 1.0} and replicas(m.world)[it.old] == 4
        m.assert_unharmed()


@WAYS
async def test_why_they_have_not_gone_yet_is_told(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        m.world.delete(SERVICES, SERVICE)
        await m.world.sleep(KEPT + 60)
        assert f"the groups of {it.old} go: " in m.world.status["message"], m.world.status["message"]


@WAYS
async def test_a_record_that_is_forged_away_leaves_nothing_for_ever(away: bool) -> None:
    async with kept(KEPT) as m:
        it = await Kept(m, away=away).begin()
        forge(m.world, finalising=None)
        await m.world.sleep(600)
        it.assert_at_rest(it.serves)
        m.assert_unharmed()
