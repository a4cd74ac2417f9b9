"""Each right of the leader-election Role taken away in turn: readiness names it, and the election goes on without a
restart when it is there again.
"""

from __future__ import annotations

import asyncio

import pytest

from rollout_lws.cli.install.rbac import leader_election_rules
from rollout_lws.errors import ApiError
from rollout_lws.objects.permissions import SOURCE
from rollout_lws.objects.resources import LEASES
from rollout_lws.sandbox.faults import Effect
from tests.kube.test_elector import TERMS, Candidate, api_server, electing, until

pytestmark = pytest.mark.looptime

VERBS = sorted({verb for rule in leader_election_rules() for verb in rule.verbs})
#: Asked for only by who has heard nothing of the Lease for long, though it is watched.
BY_LOOKING = "get"


def denied(verb: str) -> Effect:
    where = f'in API group "{LEASES.group}" in the namespace "default"'
    message = f'{LEASES} is forbidden: User "controller" cannot {verb} resource "leases" {where}'
    return Effect(refusal=ApiError(403, "Forbidden", message))


def names(told: str, verb: str) -> bool:
    return f'cannot {verb} resource "leases"' in told and SOURCE in told


def troubles(candidate: Candidate) -> str:
    """All that a process tells of it at /readyz."""
    return candidate.elector.missing + candidate.elector.untold


@pytest.mark.parametrize("verb", [each for each in VERBS if each != BY_LOOKING])
async def test_who_lacks_it_is_not_ready_and_says_which(verb: str) -> None:
    alone = Candidate(api_server(), "alone")
    rule = alone.faults.add(denied(verb), verb, "leases", count=None)
    alone.start()
    try:
        await asyncio.sleep(60)
        assert names(troubles(alone), verb)
        # One that sees the Lease by lists alone still renews it; one that cannot write it must not work.
        assert alone.works is (verb == "watch")
        assert rule.seen <= 60 / TERMS.retry + 10
        alone.faults.rules.clear()
        await until(alone, True, 60)
        await asyncio.sleep(60)
        assert alone.works
        assert troubles(alone) == ""
    finally:
        await alone.stop()


async def test_who_waits_and_may_not_look_says_so() -> None:
    async with electing() as two:
        waiting = two.second
        waiting.faults.add(denied(BY_LOOKING), BY_LOOKING, "leases", count=None)
        waiting.faults.add(Effect(silent=True), "watch", "leases", count=None)
        waiting.faults.cut_watches()
        await asyncio.sleep(60)
        assert names(troubles(waiting), BY_LOOKING)
        assert (two.first.works, waiting.works) == (True, False)
        waiting.faults.rules.clear()
        await asyncio.sleep(600)
        assert troubles(waiting) == ""
