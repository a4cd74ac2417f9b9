"""Counters of failures begin at 0: of a series that begins with its first failure no query sees an increase."""

from __future__ import annotations

import pytest

from rollout_lws.controller.apply import Next
from rollout_lws.errors import ApiError
from rollout_lws.metrics import Metrics
from rollout_lws.metrics.registry import NOT_CARRIED_OUT
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.sandbox.faults import Effect
from tests.metrics.tour import parsed, scrape, shell, value
from tests.scenarios.failures import apply
from tests.scenarios.stories import at_rest

KINDS = {"at_once", "back_off", "refused", "unreadable", "bug"}


def test_failures_are_counted_from_the_start() -> None:
    told = parsed(Metrics().text().decode())
    assert told["rollout_lws_reconcile_errors_total"] == {(("kind", kind),): 0 for kind in KINDS}
    assert {*told["rollout_lws_reconciles_total"]} == {(("result", each),) for each in ("ok", "failed")}


def test_a_write_that_is_not_carried_out_has_one_of_these_results() -> None:
    assert {each.name.lower() for each in Next} == {*NOT_CARRIED_OUT}


@pytest.mark.looptime
async def test_a_kind_of_write_that_has_succeeded_fails_for_the_first_time_as_an_increase() -> None:
    refused = {"verb": "patch", "resource": str(LEADER_WORKER_SETS), "result": "refused"}
    async with shell() as world:
        await at_rest(world)
        assert value(await scrape(world), "rollout_lws_write_failures_total", **refused) == 0
        why = ApiError(403, "Forbidden", 'User "x" cannot patch resource "leaderworkersets"')
        world.faults.add(Effect(refusal=why), "patch", LEADER_WORKER_SETS.plural)
        apply(world, "v2")
        await world.until_state("AwaitingApproval")
        world.approve()
        await world.until_state("Healthy")
        assert value(await scrape(world), "rollout_lws_write_failures_total", **refused) == 1
