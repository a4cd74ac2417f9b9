"""What everybody begins and ends with who is judged: an LWS at rest in care of a Rollout, and no trace of a release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.objects.writes import Write
from tests.scenarios.invariants import share_only_for_who_serves
from tests.scenarios.judge import HOLD
from tests.scenarios.routed import SERVICE, borrowed, create_route
from tests.scenarios.walk_acts import Acts
from tests.scenarios.world import KEYS, NAME


@dataclass
class Staged(Acts):
    """Acts in a world that goes by ``plan``; every write of the controller comes before the judge."""

    #: What a route and its Service were before.
    lent: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world.refuse = self.send

    def send(self, write: Write) -> ApiError | None:
        """Judge a write; refuse it when the walk said so."""
        self.judge.judge(write)
        return self.refusals.pop(0)(write) if self.refusals else None

    async def begin(self) -> None:
        if self.plan.routed:
            create_route(self.world)
            self.world.checks.append(share_only_for_who_serves())
            await self.world.sleep(1)
            self.lent = borrowed(self.world)
        self.create_lws()
        self.create_rollout()
        self.world.start_controller()
        await self.world.until(lambda: self.world.state == "Healthy" and self.ready("v1"), "adopted", 120)

    def ready(self, version: str) -> bool:
        return self.world.groups() == dict.fromkeys(range(self.world.lws["spec"]["replicas"]), version)

    def running_version(self) -> str:
        """The one version of which every group is ready, "" when there is none."""
        tags = set(self.world.groups().values())
        return tags.pop() if len(tags) == 1 and not any("!" in tag for tag in tags) else ""

    def assert_clean(self, version: str) -> None:
        world = self.world
        told = world.describe()
        assert self.ready(version), told
        names = world.names()
        assert (names["leaderworkersets"], names["batchreleases"]) == ([NAME], []), told
        assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == HOLD, told
        marks = {key for key in world.lws["metadata"].get("annotations", {}) if KEYS.owns(key)}
        assert marks <= {KEYS.original, KEYS.aborted}, told
        assert "finalising" not in world.status and "requestedAction" not in world.status, told
        if self.plan.routed:
            assert (borrowed(world), names["services"]) == (self.lent, sorted([NAME, SERVICE])), told
