"""Releases whose requests are measured: what users get at every moment, by the route and past it.

The LWS here is one that can be released without errors at all. Its pods take longer to end than data planes take to
hear of it, as pods with a preStop pause do; and its leaders become ready after their workers, as those of a model
server do. Otherwise each group that ends would fail requests, whatever the release does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from rollout_lws.capacity.partition_update import AT_ONCE
from rollout_lws.objects.resources import PODS
from rollout_lws.objects.writes import Delete
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import PREFIX, Timing
from rollout_lws.sandbox.meter import Client, Cut, TrafficMeter
from rollout_lws.sandbox.meter.meter import By
from tests.scenarios.kinds import LWS, LeaderWorkerSets
from tests.scenarios.routed import GATEWAY, ROUTES, SERVICE, Provider, assert_given_back, routed_at_rest
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.world import NAME, NAMESPACE, World

#: How late data planes hear of a change, and how long streams last, in seconds.
LAG, STREAM = 2.0, 30.0
#: The most seconds that our write to a route and its Gateway's answer take.
ACCEPTED = 0.5
#: Seconds over which shares are measured.
PERIOD = 10.0
PODS_TAKE = Timing(ready_after=5.0, leader_longer=7.0, terminate_after=5.0)
#: A step that sends the tagged client alone to one group of the new version.
HEADER: dict[str, Any] = {"replicas": 1, "matches": [{"headers": [{"name": "x-canary", "value": "yes"}]}], "pause": {}}
#: Who is measured, in whatever way they enter.
WHO = ("users", "tagged", "direct")


def clients(by: Provider) -> tuple[Client, ...]:
    return (
        Client("users", **by.entry),
        Client("tagged", headers={"x-canary": "yes"}, **by.entry),
        Client("direct", service=SERVICE),
    )


STABLE_ONLY, NEW_ONLY = {NAME: 1.0}, {CANARY: 1.0}


def shared(new: float) -> dict[str, float]:
    """Requests by LWS when the canary gets ``new`` of them."""
    return {NAME: round(1 - new, 6), CANARY: new}


@dataclass(slots=True)
class Metered:
    """A world with a meter in it, and what Service and route were before any release."""

    world: World
    meter: TrafficMeter
    before: Mapping[str, Any]
    by: Provider

    async def shares(self, client: str = "users") -> dict[str, float]:
        """Where requests go over ten seconds, once data planes have heard of the last change."""
        return (await self.all_shares())[client]

    async def share_of(self, revision: str, client: str = "users") -> float:
        """The share of one revision, where one LWS holds both versions."""
        return (await self.all_shares("revision"))[client].get(revision, 0.0)

    async def all_shares(self, by: By = "lws") -> dict[str, dict[str, float]]:
        await self.world.sleep(LAG + ACCEPTED)
        begun = self.world.server.clock()
        await self.world.sleep(PERIOD)
        found = {client: self.meter.shares(client, begun, by=by) for client in WHO}
        # Ten seconds are a sum of stretches; a share is rounded as whoever compares it would write it.
        return {name: {side: round(share, 6) for side, share in each.items()} for name, each in found.items()}

    async def finish(self) -> None:
        """Approve what asks for it until the release is over, and see that everything is as it was."""
        while self.world.state != "Healthy":
            if self.world.state == "AwaitingApproval":
                self.world.approve()
            at = self.world.status["currentStepIndex"]
            await self.world.until(
                lambda at=at: (
                    self.world.state == "Healthy"  # type: ignore[misc]
                    or (self.world.state == "AwaitingApproval" and self.world.status["currentStepIndex"] != at)
                ),
                "the next approval or the end",
                1200,
            )
        await self.settled()

    async def abort(self) -> None:
        """Abort, and see that everything is as it was."""
        self.world.request("Abort")
        await self.world.until_state("Aborted", 1200)
        await self.settled()

    async def settled(self) -> None:
        await self.world.rest()
        assert await self.all_shares() == dict.fromkeys(WHO, STABLE_ONLY)
        assert_given_back(self.world, dict(self.before), self.by)

    async def step(self, index: int) -> None:
        """Wait until step ``index`` asks for an approval."""
        world = self.world
        await world.until(
            lambda: world.status.get("currentStepIndex") == index and world.state == "AwaitingApproval",
            f"step {index} awaiting approval",
        )

    async def release(self, to_step: int = 1, tag: str = "v2") -> None:
        """Apply a version and approve until step ``to_step`` asks for an approval."""
        await waiting_for_approval(self.world, tag)
        for index in range(1, to_step):
            await self.step(index)
            self.world.approve()
        await self.step(to_step)

    def lose(self, pod: str) -> None:
        """A pod goes with its node: nobody lets it end."""
        self.world.server.delete(PODS, NAMESPACE, pod, grace_seconds=0)

    def refuse_routes(self, why: str | None) -> None:
        """Have the Gateway refuse its routes with this message; None ends it."""
        self.world.patch(GATEWAYS, GATEWAY, {"metadata": {"annotations": {PREFIX + "refuse-routes": why}}})

    @property
    def cuts(self) -> list[Cut]:
        """Streams cut by the release's own deeds. What no LWS does without is apart: that it renews a group, and drops
        surge groups in the end.
        """
        aborted = self.world.status_of(NAME).get("phase") == "Aborted"
        dropped: set[str] = set() if aborted else {"surge dropped"}
        return [cut for cut in self.meter.cuts if cut.cause not in {"renewed"} | dropped]

    def assert_unharmed(self) -> None:
        """No request has failed, and no stream was cut by what the release removed."""
        told = "\n".join(map(str, [*self.meter.failures, *self.cuts]))
        assert not told, told


@asynccontextmanager
async def metered(
    *steps: dict[str, Any],
    replicas: int = 5,
    min_ready: int = 3,
    by: Provider | None = None,
    words: Mapping[str, Any] | None = None,
    kind: LeaderWorkerSets = LWS,
    **routing: Any,
) -> AsyncIterator[Metered]:
    """A workload of this kind at rest whose requests are measured from now on; ``routing`` is added to the Rollout's
    trafficRoutings, ``words`` to its style.

    ``min_ready`` seconds after it became ready a group counts, and all data planes know it by then.
    """
    world, by = World(Options(timing=PODS_TAKE)), by or ROUTES.provider
    world.kind = kind
    try:
        before = await routed_at_rest(world, *steps, replicas=replicas, by=by, words=words, **routing)
        world.patch_rollout({"strategy": {"minReadySeconds": min_ready}})
        await world.rest()

        def deleted(uid: str) -> bool:
            """Whether it went by a deed of the release; a portion that is renewed goes by LWS's, sooner or later."""
            mine = (each for each in world.writes if isinstance(each, Delete) and each.reason != AT_ONCE)
            return any(each.uid == uid for each in mine)

        meter = TrafficMeter(world.server, clients(by), drain=STREAM, lag=LAG, ours=deleted)
        meter.start()
        yield Metered(world, meter, before, by)
        meter.stop()
    finally:
        world.close()
