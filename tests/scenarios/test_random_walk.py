"""Everybody does anything at any time, and every promise holds at every write; in the end the world is at rest.

A failure prints the plan and the acts, shortened to what is needed, and how to repeat it.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from rollout_lws.objects.writes import Delete
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.workload import revisions
from tests import virtual_time
from tests.scenarios.judge import CANARY, Judge
from tests.scenarios.kinds import ON_DELETE, ORDERED, STATEFUL_SET
from tests.scenarios.measured import MeasuredWorld
from tests.scenarios.shell import ShellWalk, ShellWorld
from tests.scenarios.styles import STYLES, Style
from tests.scenarios.walk import Walk, walk
from tests.scenarios.walk_others import ROUTERS, SHARED_BY
from tests.scenarios.walk_plans import PLANS, Act, Plan
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.each_change

#: Seconds that pass after an act.
MOMENTS = (0, 0.3, 0, 0.05, 1, 0.3, 2.5, 7, 11, 700)


@dataclass(frozen=True)
class Kind:
    """Acts of one kind, with any of ``values`` and any of so many seconds passing afterwards."""

    name: str
    values: st.SearchStrategy[Any] = field(default_factory=st.none)
    moments: tuple[float, ...] = MOMENTS

    def acts(self) -> st.SearchStrategy[Act]:
        return st.builds(Act, st.just(self.name), self.values, st.sampled_from(self.moments))


versions = st.sampled_from(("v2", "v2", "v3", "v1", "bad", "crash"))
groups = st.tuples(st.sampled_from((NAME, CANARY)), st.integers(0, 4))
propagations = st.sampled_from(("Background", "Foreground"))
pushes = st.sampled_from(("Promote", "Promote", "CleanUp"))

#: What drives releases comes up more often than what disturbs them, so that walks get somewhere.
DRIVING = (
    Kind("apply", versions),
    # What comes next shall come while the release is where it was pushed to.
    Kind("push", pushes, (0, 0.3, 1, 2.5)),
    Kind("approve"),
)
BACK = (Kind("ask", st.just("Abort")), Kind("apply", st.sampled_from(("v1", "v3"))))
DISTURBING = (
    Kind("replicas", st.integers(0, 5)),
    Kind("label", st.sampled_from(("a", "b"))),
    Kind("partition", st.sampled_from((0, 1, 1_000_000))),
    Kind("forget_original"),
    Kind("break_glass", st.booleans()),
    Kind("jump", st.integers(0, 4)),
    Kind("ask", st.sampled_from(("Abort", "Abort", "Retry", "PromoteFull", "Pause", "Resume", "Approve"))),
    Kind("ask_jump", st.integers(1, 3)),
    Kind("steps", st.sampled_from(sorted(PLANS))),
    Kind("paused", st.booleans()),
    Kind("disabled", st.booleans()),
    Kind("delete_rollout", propagations),
    Kind("create_rollout"),
    Kind("delete_record"),
    Kind("delete_canary", propagations),
    Kind("delete_lws", propagations),
    Kind("create_lws", versions),
    Kind("fail_leader", groups),
    Kind("fail_worker", groups),
    Kind("lose_node", st.integers(0, 2)),
    Kind("refuse", st.tuples(st.sampled_from((409, 429, 500)), st.integers(1, 3))),
    Kind("lose_answer", st.integers(1, 2)),
    Kind("kill", st.tuples(st.integers(0, 12), st.sampled_from((0.0, 0.7, 30.0)))),
)
#: What others do to what a release shares with them.
shared = st.integers(0, 5)
SHARED = (
    Kind("edit_shared", shared),
    Kind("reapply_shared", shared),
    Kind("delete_shared", shared),
    Kind("delete_slices"),
    Kind("router", st.sampled_from(sorted(ROUTERS))),
    Kind("route_by", st.sampled_from((None, 1, 1, 5))),
)
SCALED = (
    Kind("autoscale", st.sampled_from(((1, 10), (2, 4), (3, 5)))),
    Kind("wants", st.integers(1, 6)),
    Kind("delete_autoscaler"),
)
SCALING = (
    *(Kind("scale_rollout", st.integers(0, 5)), Kind("scale_rollout", st.integers(1, 5))),
    Kind("autoscale_rollout", st.sampled_from(((1, 10), (2, 4), (3, 5)))),
    *(Kind("wants", st.integers(1, 6)), Kind("replicas", st.integers(0, 5))),
    Kind("delete_autoscaler"),
)
EDITED = (
    Kind("strategy", st.sampled_from(((0, 1), (1, 1), (1, 2), (1, "50%")))),
    Kind("scale_canary", st.integers(0, 3)),
    Kind("edit_canary", st.sampled_from(("v1", "v3", "bad"))),
    Kind("unmark_canary"),
    Kind("set_clock", st.sampled_from((5.0, 90.0, 4000.0))),
    Kind("wipe_status"),
    Kind("take_finalizers"),
)
BETWEEN = (
    Kind("cut"),
    Kind("silence", st.integers(1, 3)),
    Kind("late", st.sampled_from((0.02, 0.3, 2.0))),
    Kind("twice"),
    Kind("forget"),
    Kind("slow", st.sampled_from((0.02, 0.5, 5.0))),
)
plans = st.builds(
    Plan,
    replicas=st.integers(1, 5),
    size=st.sampled_from((1, 1, 2, 2, 3)),
    unavailable=st.sampled_from((1, 2, "50%", "100%")),
    surge=st.sampled_from((0, 1, "25%")),
    steps=st.sampled_from(sorted(PLANS)),
    deadline=st.sampled_from((60, 600)),
    on_failure=st.sampled_from(("Pause", "Abort")),
    min_ready=st.sampled_from((0, 0, 5)),
    threshold=st.sampled_from((None, None, 1)),
    style=st.sampled_from(STYLES),
    ending=st.sampled_from(("finish", "abort", "leave")),
    # LWS refuses a strategy that allows neither a group less nor a group more.
).filter(
    lambda plan: (
        plan.replicas >= plan.style.least and (plan.surge != 0 or plan.replicas > 1 or plan.unavailable != "50%")
    )
)


def in_virtual_time(work: Coroutine[Any, Any, None]) -> None:
    # The library that evaluates CEL raises the limit as it goes, and hypothesis wants back what it gave.
    limit = sys.getrecursionlimit()
    try:
        virtual_time.run(work)
    finally:
        sys.setrecursionlimit(limit)


async def core(plan: Plan, done: list[Act], seen: Counter[str]) -> None:
    world = (MeasuredWorld if plan.gated else World)(Options(nodes=3))
    world.kind = plan.kind
    # So that not one of LWS's records is left that only luck would keep.
    with mock.patch.object(revisions, "SPARE_RECORDS", 0):
        await walk(Walk(world, plan, seen, Judge(world, plan.unavailable, plan.style)), done)
    seen.update(f"deleted:{write.resource.plural}" for write in world.writes if isinstance(write, Delete))


async def shell(plan: Plan, done: list[Act], seen: Counter[str]) -> None:
    world = ShellWorld(Options(nodes=3))
    try:
        # Two hours see every watch renewed many times, which is what a day of silence costs.
        await walk(
            ShellWalk(world, plan, seen, Judge(world, plan.unavailable, plan.style, exact=False), quiet=2 * 3600), done
        )
    finally:
        await world.gone()
        seen.update(f"told:{event.reason}" for event in world.events)


Tell: TypeAlias = Callable[[Plan, list[Act], Counter[str]], Coroutine[Any, Any, None]]
Lane: TypeAlias = tuple[Tell, tuple[Kind, ...], st.SearchStrategy[Plan]]
CORE: Lane = core, (*DRIVING * 6, *DISTURBING, *BACK * 2), plans
ROUTED: Lane = *CORE[:2], plans.map(lambda plan: replace(plan, routed=True))
#: A way to share requests, and everybody who has to do with it.
OTHERS: Lane = (
    core,
    (*DRIVING * 5, *SHARED * 2, *SCALED, *EDITED, *DISTURBING, *BACK * 2),
    st.builds(replace, plans, routed=st.just(True), provider=st.sampled_from(SHARED_BY)),
)
#: Versions that model servers judge; a slow one is v3.
GATED: Lane = (
    core,
    (*DRIVING * 6, *DISTURBING, *BACK * 2, Kind("skip", st.sampled_from(("first-token", "all-through")))),
    plans.map(lambda plan: replace(plan, gated=True)),
)
#: The Rollout is scaled, by people and autoscalers, and the LWS past it.
SCALED_ROLLOUT: Lane = core, (*DRIVING * 5, *SCALING * 3, *DISTURBING, *BACK * 2), plans
#: StatefulSets: of one pod a group, without surge groups, and with as many down as their API server stores.
STATEFUL_PLANS = st.builds(
    replace,
    plans.filter(lambda plan: not plan.style.spared),
    kind=st.sampled_from((STATEFUL_SET, ORDERED, ON_DELETE)),
    size=st.just(1),
    surge=st.just(0),
    unavailable=st.just(1),
    routed=st.booleans(),
)
STATEFUL: Lane = *CORE[:2], STATEFUL_PLANS
STATEFUL_OTHERS: Lane = (
    *OTHERS[:2],
    st.builds(replace, STATEFUL_PLANS, routed=st.just(True), provider=st.sampled_from(SHARED_BY)),
)
SHELL: Lane = shell, (*DRIVING * 6, *DISTURBING, *BACK * 2, *BETWEEN * 2), plans


def wander(lane: Lane, walks: int, acts: int, number: int | None = None) -> Counter[str]:
    """So many walks of at most so many ``acts``, drawn from ``number``, or always the same without one. Counts what is
    seen.
    """
    tell, kinds, begun = lane
    seen: Counter[str] = Counter()

    @settings(
        max_examples=walks,
        deadline=None,
        derandomize=number is None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(plan=begun, acts=st.lists(st.sampled_from(kinds).flatmap(Kind.acts), min_size=4, max_size=acts))
    def anything(plan: Plan, acts: list[Act]) -> None:
        in_virtual_time(tell(plan, acts, seen))

    if number is not None:
        anything = seed(number)(anything)
    anything()
    return seen


@pytest.mark.timeout(300)
def test_a_walk_breaks_no_promise_and_comes_to_a_legal_end() -> None:
    seen = wander(CORE, 10, 10)
    assert seen["told:Completed"] and seen["state:Promoting"] and seen["deleted:controllerrevisions"]


@pytest.mark.timeout(300)
def test_a_walk_of_the_whole_controller_comes_to_a_legal_end_whatever_happens_between_it_and_the_server() -> None:
    seen = wander(SHELL, 5, 10)
    assert seen["told:Completed"] and seen["state:Promoting"]


@pytest.mark.timeout(300)
def test_a_walk_whose_versions_are_judged_by_their_model_servers_comes_to_a_legal_end() -> None:
    seen = wander(GATED, 4, 10)
    assert seen["told:Completed"] and seen["told:GatePassed"] and seen["state:Analyzing"], seen


@pytest.mark.timeout(300)
def test_a_walk_whose_rollout_is_scaled_comes_to_a_legal_end() -> None:
    seen = wander(SCALED_ROLLOUT, 4, 10)
    assert seen["told:Completed"] and seen["told:Scaled"], seen


@pytest.mark.timeout(300)
def test_a_walk_of_a_stateful_set_comes_to_a_legal_end() -> None:
    seen = wander(STATEFUL, 6, 10)
    assert seen["told:Completed"] and seen["state:Promoting"], seen


@pytest.fixture
def number() -> int:
    """What the longer walks are drawn from. Always the same, so that a red run is somebody's doing and not bad luck;
    WALK_SEED=$RANDOM sees other things.
    """
    drawn = int(os.environ.get("WALK_SEED", "1"))
    print(f"repeat with WALK_SEED={drawn}")
    return drawn


def ramble(lane: Lane, rounds: int, number: int, styles: tuple[Style, ...] = STYLES) -> Counter[str]:
    """Walk in ``rounds`` of twenty: hypothesis varies what it has drawn before, and a fresh start sees other things."""
    seen: Counter[str] = Counter()
    for each in range(rounds):
        seen += wander(lane, 20, 16, number + each)
    assert {style.name for style in styles if not seen[f"style:{style}"]} == set(), seen
    return seen


#: More than two thousand walks in all.
PARTS = 5


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_many_walks_come_to_legal_ends_on_all_ways_there_are(part: int, number: int) -> None:
    seen = ramble(CORE, 10, number + 1000 * part)
    assert {kind for kind in kinds_of(CORE) if not seen[f"act:{kind}"]} == set(), seen
    assert {end for end in ("Completed", "Aborted", "Superseded") if not seen[f"told:{end}"]} == set(), seen
    tasks = {key.partition("/")[2] for key in seen if key.startswith("task:")}
    assert {"Promote", "RollBackPromotion", "CleanUp"} <= tasks, seen


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(2))
def test_many_walks_of_the_whole_controller_come_to_legal_ends(part: int, number: int) -> None:
    seen = ramble(SHELL, 2, number + 1000 * part)
    happened = [kind for kind in kinds_of(SHELL) if seen[f"act:{kind}"]]
    assert len(happened) > 0.7 * len(kinds_of(SHELL)), seen
    assert {end for end in ("Completed", "Aborted", "Superseded") if not seen[f"told:{end}"]} == set(), seen


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_many_walks_give_the_route_back_that_they_shared_requests_by(part: int, number: int) -> None:
    seen = ramble(ROUTED, 10, number + 2 + 1000 * part)
    assert {end for end in ("Completed", "Aborted", "Superseded") if not seen[f"told:{end}"]} == set(), seen


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(2))
def test_many_walks_beside_others_who_write_what_a_release_shares_come_to_legal_ends(part: int, number: int) -> None:
    seen = ramble(OTHERS, 5, number + 4 + 1000 * part)
    assert {kind for kind in kinds_of(OTHERS) if not seen[f"act:{kind}"]} == set(), seen
    assert {end for end in ("Completed", "Aborted", "Superseded") if not seen[f"told:{end}"]} == set(), seen


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(2))
def test_many_walks_of_versions_that_model_servers_judge_come_to_legal_ends(part: int, number: int) -> None:
    seen = ramble(GATED, 4, number + 6 + 1000 * part)
    told = ("Completed", "Aborted", "Superseded", "GatePassed", "GateFailed")
    assert {end for end in told if not seen[f"told:{end}"]} == set(), seen


@pytest.mark.long
@pytest.mark.timeout(900)
def test_many_walks_of_rollouts_that_are_scaled_come_to_legal_ends(number: int) -> None:
    seen = ramble(SCALED_ROLLOUT, 4, number + 8)
    told = ("Completed", "Aborted", "Superseded", "Scaled", "ReplicasReset")
    assert {end for end in told if not seen[f"told:{end}"]} == set(), seen


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("lane", [STATEFUL, STATEFUL_OTHERS], ids=["alone", "beside others"])
def test_many_walks_of_stateful_sets_come_to_legal_ends(lane: Lane, number: int) -> None:
    seen = ramble(lane, 4, number + 10, tuple(each for each in STYLES if not each.spared))
    assert {end for end in ("Completed", "Aborted", "Superseded") if not seen[f"told:{end}"]} == set(), seen


def kinds_of(lane: Lane) -> set[str]:
    return {kind.name for kind in lane[1]}
