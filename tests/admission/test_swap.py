"""Edits of two workloads that serve in turn: the one that serves is guarded, whichever it is."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import msgspec
import pytest

from rollout_lws.admission.judge import judge
from rollout_lws.admission.review import ALLOWED, Outcome, Request, Response, Rule, User
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.scenarios.conftest import pace, world
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import plain_swap, released
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime
__all__ = ["pace", "world"]


def edit(seen: World, name: str, rule: Rule, **spec: Any) -> Response:
    """What a person is told who merges this into the spec."""
    before = seen.server.get(LEADER_WORKER_SETS, NAMESPACE, name)
    after = copy.deepcopy(before)
    _merge(after["spec"], spec)
    request = Request(
        uid="1",
        operation="UPDATE",
        namespace=NAMESPACE,
        name=name,
        user_info=User(username="ann"),
        object=msgspec.Raw(msgspec.json.encode(after)),
        old_object=msgspec.Raw(msgspec.json.encode(before)),
    )
    return partial(judge, lambda _: seen.view, lambda: seen.now, lambda: "controller")(rule, request)()()


def _merge(into: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


OPEN: dict[str, Any] = {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}}


@pytest.mark.parametrize("away", [False, True], ids=["at home", "away"])
async def test_the_one_that_serves_stays_held_and_gets_no_version_that_damages_groups(world: World, away: bool) -> None:
    await plain_swap(world)
    if away:
        await released(world, "v2")
    serves = CANARY if away else NAME
    repaired = edit(world, serves, Rule.HOLD, **OPEN)
    assert repaired.outcome is Outcome.REPAIRED
    assert repaired.warnings[0].startswith(
        f"Rollout {NAME} holds LeaderWorkerSet {serves}: partition 0 is what it gets"
    )
    refused = edit(world, serves, Rule.PENDING, leaderWorkerTemplate={"size": 3})
    assert refused.outcome is Outcome.DENIED and f"version of LeaderWorkerSet {serves} changes" in refused.message


async def test_a_version_for_the_parked_one_may_be_anything(world: World) -> None:
    """It starts nothing there, and none of its groups runs another one."""
    await plain_swap(world)
    await released(world, "v2")
    assert edit(world, NAME, Rule.PENDING, leaderWorkerTemplate={"size": 3}) == ALLOWED
