"""Somebody applies a whole manifest whenever the controller writes, and a guard stands in front of the API server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from rollout_lws.admission.judge import judge
from rollout_lws.admission.review import Outcome, Request, Rule, User
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.sandbox.patching.patches import json_patch, merge_patch
from rollout_lws.sandbox.store import Event
from rollout_lws.workload.hold import HOLD
from tests.scenarios.stories import CANARY, at_rest
from tests.scenarios.styles import STYLES, Style
from tests.scenarios.swapped import plain_swap, released, replicas
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime

Object = dict[str, Any]
STEPS = ({"replicas": 1, "pause": {}}, {"replicas": "100%"})


class Applier:
    """Has a manifest that states all of the strategy, and applies it again whenever somebody has changed that."""

    def __init__(self, world: World, **strategy: Any) -> None:
        self.world = world
        self.manifest: Object = {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": strategy}}}
        self.outcomes: list[Outcome] = []
        self._seen: Object = {}
        self._due = False
        world.server.store.subscribe(self._changed)

    def _changed(self, event: Event) -> None:
        found = event.object or {}
        if event.resource != LEADER_WORKER_SETS or found["metadata"]["name"] != NAME or event.type == "DELETED":
            return
        live = found["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
        if live != self._seen and not self._due:
            self._seen, self._due = live, True
            asyncio.get_running_loop().call_soon(self.apply)

    def apply(self) -> None:
        """As an API server does it that asks the guard: what is stored is what was judged."""
        self._due = False
        server = self.world.server
        before = server.get(LEADER_WORKER_SETS, NAMESPACE, NAME)
        after = merge_patch(before, self.manifest)
        asked = Request(
            uid="1",
            operation="UPDATE",
            namespace=NAMESPACE,
            name=NAME,
            user_info=User(username="applier"),
            object=msgspec.Raw(json.dumps(after).encode()),
            old_object=msgspec.Raw(json.dumps(before).encode()),
        )
        look = judge(lambda _: self.world.view, lambda: self.world.now, lambda: "me", Rule.HOLD, asked)
        verdict = look()()
        self.outcomes.append(verdict.outcome)
        server.replace(LEADER_WORKER_SETS, json_patch(after, list(verdict.patch)))


def partition(world: World) -> int:
    found: int = world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"]
    return found


@pytest.mark.one_in(4)
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_a_release_goes_its_way_whatever_is_applied_at_each_of_its_writes(world: World, style: Style) -> None:
    # Blue-green waits by itself once the other colour is there.
    await at_rest(world, *STEPS[style.whole_first :], **{style.key: dict(style.words)})
    users = {"partition": 0, "maxUnavailable": 1, "maxSurge": 1}
    applier = Applier(world, **users)
    applier.apply()
    await world.rest()
    leaders = world.leader_uids()
    world.set_image("v2")
    applier.apply()
    await world.until_state("AwaitingApproval")
    if style.apart:
        assert world.leader_uids() == leaders
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert world.groups() == dict.fromkeys(range(4), "v2")
    assert partition(world) == HOLD
    assert world.status.get("holdConflicts") in (None, [])
    assert not {each.reason for each in world.events} & {"HoldReset", "HoldConflict"}
    # Each window was met by a manifest, and none was opened or closed by it.
    assert applier.outcomes.count(Outcome.REPAIRED) >= 4
    assert set(applier.outcomes) == {Outcome.REPAIRED}
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")
    await world.rest()
    assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] == users
    assert world.groups() == dict.fromkeys(range(4), "v2")


async def test_a_manifest_that_states_replicas_starts_no_group_of_a_parked_workload(world: World) -> None:
    await plain_swap(world)
    applier = Applier(world, partition=0)
    # Such a manifest that is applied before is refused: the guard may be away.
    for number, there in ((2, {NAME: 0, CANARY: 4}), (3, {NAME: 4})):
        await released(world, f"v{number}")
        assert replicas(world) == there
        writes = len(world.writes)
        for count in (4, 0, 9):
            applier.manifest = {"spec": {"replicas": count}}
            applier.apply()
            await world.rest()
            assert replicas(world) == there
        # Nothing has to be put back.
        assert not [each for each in world.writes[writes:] if each.resource == LEADER_WORKER_SETS]
    assert Outcome.REPAIRED in applier.outcomes
