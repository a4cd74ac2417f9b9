"""The page of a release, held against what there is: its cells are the groups, a share that it tells is what the new
version gets, accelerators are those that pods have taken, and its steps end as the release has.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rollout_lws.cli.dashboard.release_view import view
from rollout_lws.cli.dashboard.rows import row
from rollout_lws.cli.get.caller import Caller
from rollout_lws.cli.releases import assemble
from rollout_lws.cli.rollouts import releasing
from rollout_lws.objects.resources import PODS, STATEFUL_SETS
from rollout_lws.sandbox.behaviours.cluster import Options
from tests.scenarios import paired_companions, paired_shift, swapped
from tests.scenarios.kinds import STATEFUL_SET
from tests.scenarios.metered import PODS_TAKE
from tests.scenarios.paired import GREEN, apply, approve_to_the_end, scaled_pair
from tests.scenarios.routed import routed_at_rest, routes_of
from tests.scenarios.test_accelerators_held import GPU, Accelerated
from tests.scenarios.world import NAMESPACE, World

pytestmark = pytest.mark.looptime

#: Seconds that the page may be behind: statuses wait for each other, and routers for statuses.
LAG = 12
STEPS = (
    {"replicas": 1, "traffic": "20%", "pause": {}},
    {"replicas": "50%", "traffic": "50%", "pause": {}},
    {"replicas": "100%"},
)
BLUE_GREEN = (
    {"replicas": "50%", "traffic": "0%", "pause": {}},
    {"replicas": "100%", "traffic": "100%", "pause": {}},
)
Begin = Callable[[World], Awaitable[Any]]


def _routed(*steps: dict[str, Any], style: str = "canary", **words: Any) -> Begin:
    return lambda world: routed_at_rest(world, *steps, replicas=4, style=style, words=words)


async def _sets(world: World) -> None:
    await paired_companions.at_rest(world)


def _of_stateful_sets(begin: Begin) -> Begin:
    def of_kind(world: World) -> Awaitable[Any]:
        world.kind = STATEFUL_SET
        return begin(world)

    return of_kind


PLANS: dict[str, Begin] = {
    "canary": _routed(*STEPS),
    "in place": _routed(*STEPS, capacity="InPlace"),
    "surge": _routed(*STEPS, capacity="Surge"),
    "blue-green": _routed(*BLUE_GREEN, style="blueGreen"),
    "swap": _routed(*swapped.STEPS, style="blueGreen", **swapped.SWAP),
    "shift": _routed(*paired_shift.STEPS, capacity="Shift"),
    "StatefulSet: canary": _of_stateful_sets(_routed(*STEPS)),
    "StatefulSet: in place": _of_stateful_sets(_routed(*STEPS, capacity="InPlace")),
    "pair": scaled_pair,
    "companions": _sets,
    "pair, shift": lambda world: scaled_pair(world, *paired_shift.STEPS, more={"shift": {}}),
}


class PageJudge:
    """Looks each second; what is wrong for longer than LAG is told as an error of the world."""

    def __init__(self, world: World) -> None:
        self._world, self._since = world, dict[str, float]()
        self.page: dict[str, Any] = {}
        self._task = asyncio.get_running_loop().create_task(self._keep())

    def stop(self) -> None:
        self._task.cancel()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(1)
            wrong = dict(self._wrong())
            now = self._world.server.clock()
            self._since = {about: self._since.get(about, now) for about in wrong}
            for about, since in self._since.items():
                if now - since > LAG:
                    self._world.errors.append(AssertionError(f"{about}: {wrong[about]}"))
                    return

    def _wrong(self) -> Iterator[tuple[str, str]]:
        world = self._world
        rollout, pods = world.rollout, world.server.list(PODS, NAMESPACE)
        leaders = [pod for pod in pods if world.kind.leads(pod)]
        workloads = world.server.list(world.kind.resource, NAMESPACE)
        shown = assemble(rollout, workloads, world.server.list(STATEFUL_SETS, NAMESPACE), leaders)
        self.page = page = view(shown, world.now, Caller())
        there = {pod["metadata"]["name"] for pod in leaders if "deletionTimestamp" not in pod["metadata"]}
        cells = Counter(cell["leader"] for each in page["versions"] for cell in each["groups"])
        if there - set(cells) or any(count > 1 for count in cells.values()):
            yield "cells", f"{sorted(there)} are there, and told are {dict(cells)}"
        share = self._share(pods)
        for about, told in (("share", page["accepted"]), ("share in the list", row(rollout)["weight"])):
            if told is not None and releasing(rollout) and abs(told - share) > 2:
                yield about, f"{told} % are told in {page['state']} {page['ending']}, and {share:.0f} % are"
        held = sum(_takes(pod) for pod in pods)
        if releasing(rollout) and page["accelerators"]["now"] != held:
            yield "accelerators", f"{page['accelerators']['now']} are told in {page['state']}, and {held} are"

    def _share(self, pods: list[dict[str, Any]]) -> float:
        """Percentage of requests that get to pods of the new version."""
        world, total = self._world, 0.0
        new = {pod["metadata"]["name"] for pod in pods if world.containers.version(pod) == "v2"}
        weights = routes_of(world)[0]
        for service, weight in weights.items():
            ready = world.ready_endpoints(service)
            if weight and ready:
                total += weight / sum(weights.values()) * sum(name in new for name in ready) / len(ready)
        return 100 * total


def _takes(pod: dict[str, Any]) -> int:
    limits = pod["spec"]["containers"][0].get("resources", {}).get("limits", {})
    return int(limits.get(GPU, 0)) if pod["spec"].get("nodeName") else 0


@asynccontextmanager
async def _in_step_2(begin: Begin) -> AsyncIterator[tuple[World, PageJudge]]:
    world = World(Options(nodes=16, timing=PODS_TAKE))
    world.containers = Accelerated()
    try:
        await begin(world)
        # What becomes of groups is not judged here.
        world.checks.clear()
        judge = PageJudge(world)
        if begin is _sets:
            paired_companions.apply_set(world, "v2")
        elif world.rollout["spec"].get("counterpartRef"):
            apply(world, GREEN, "v2")
        else:
            world.set_image("v2")
        await world.until_state("AwaitingApproval", 1200)
        world.approve()
        await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval", "step 2")
        yield world, judge
        judge.stop()
    finally:
        world.close()


@pytest.mark.parametrize("begin", PLANS.values(), ids=PLANS)
async def test_a_release_that_is_promoted_is_told_as_it_is(begin: Begin) -> None:
    async with _in_step_2(begin) as (world, judge):
        await approve_to_the_end(world)
        await world.sleep(60)
        assert {each["state"] for each in judge.page["steps"]} == {"done"}
        assert judge.page["loads"] == {"done": 0, "toCome": 0}


@pytest.mark.parametrize("begin", PLANS.values(), ids=PLANS)
async def test_a_release_that_is_aborted_is_told_as_it_is(begin: Begin) -> None:
    async with _in_step_2(begin) as (world, judge):
        world.request("Abort")
        await world.until_state("Aborted", 1200)
        await world.sleep(60)
        assert [each["state"] for each in judge.page["steps"]][:2] == ["done", "stopped"]
        assert world.status["summary"]["accelerators"] == sum(map(_takes, world.server.list(PODS, NAMESPACE)))


@pytest.mark.parametrize("plan", [plan for plan in PLANS if plan.endswith(("canary", "in place", "surge"))])
async def test_a_promotion_that_is_aborted_is_told_as_it_is(plan: str) -> None:
    async with _in_step_2(PLANS[plan]) as (world, judge):
        world.approve()
        await world.until(lambda: world.status.get("finalising") is not None, "the promotion", 1200)
        await world.sleep(20)
        world.request("Abort")
        await world.until_state("Aborted", 1200)
        await world.sleep(60)
        assert [each["state"] for each in judge.page["steps"]] == ["done", "done", "stopped"]
