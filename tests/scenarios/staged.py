"""What everybody begins and ends with who is judged: an LWS at rest in care of a Rollout, and no trace of a release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import HTTP_ROUTES, INGRESSES, Resource
from rollout_lws.objects.writes import Write
from tests.scenarios.count import partition
from tests.scenarios.invariants import share_only_for_who_serves
from tests.scenarios.judge import HOLD
from tests.scenarios.routed import ROUTE, create_provider, hold_record
from tests.scenarios.walk_acts import Acts
from tests.scenarios.world import KEYS, NAME, NAMESPACE


@dataclass
class Staged(Acts):
    """Acts in a world that goes by ``plan``; every write of the controller comes before the judge."""

    #: What is borrowed, as it was before.
    lent: dict[str, Any] = field(default_factory=dict)
    #: What else there was from the beginning, in the same words.
    made: dict[tuple[Resource, str], tuple[Any, Any, Any]] = field(default_factory=dict)
    services: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world.refuse = self.send

    def send(self, write: Write) -> ApiError | None:
        """Judge a write; refuse it when the walk said so."""
        self.judge.judge(write)
        return self.refusals.pop(0)(write) if self.refusals else None

    async def begin(self) -> None:
        if self.plan.routed:
            create_provider(self.world, self.plan.provider)
            self.world.checks.append(share_only_for_who_serves())
            await self.world.sleep(1)
            self.lent = hold_record(self.world, self.plan.provider)
            route = self.world.get(HTTP_ROUTES, ROUTE)
            self.made[HTTP_ROUTES, ROUTE] = route["spec"] if route else {}, {}, {}
            self.services = self.world.names()["services"]
        self.create_lws()
        self.create_rollout()
        self.world.start_controller()
        await self.world.until(lambda: self.world.state == "Healthy" and self.ready("v1"), "adopted", 120)

    def ready(self, version: str) -> bool:
        return self.world.groups() == self.world.all_at(version)

    def running_version(self) -> str:
        """The one version of which every group is ready, "" when there is none."""
        tags = set(self.world.groups().values())
        return tags.pop() if len(tags) == 1 and not any("!" in tag for tag in tags) else ""

    def assert_clean(self, version: str) -> None:
        world = self.world
        told = world.describe()
        assert self.ready(version), told
        names = world.names()
        assert (world.workloads, names["batchreleases"]) == ([NAME], []), told
        assert partition(world.lws) == HOLD, told
        marks = {key for key in world.lws["metadata"].get("annotations", {}) if KEYS.owns(key)}
        assert marks <= {KEYS.original, KEYS.aborted}, told
        assert "finalising" not in world.status and "requestedAction" not in world.status, told
        if self.plan.routed:
            assert hold_record(world, self.plan.provider) == self.lent, told
            assert names["services"] == sorted([NAME, *self.services]), told
            ingresses = [name for resource, name in self.plan.provider.hold_record if resource == INGRESSES]
            assert [each["metadata"]["name"] for each in world.server.list(INGRESSES, NAMESPACE)] == ingresses, told
