"""What stories of capacity InPlace and Surge share: one LeaderWorkerSet that holds both versions, and its promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.workload.hold import HOLD
from tests.scenarios.invariants import always_serving, at_most_down
from tests.scenarios.routed import BY_ROUTE, Provider, routed_at_rest
from tests.scenarios.stories import PROMOTED_STEPS, at_rest
from tests.scenarios.world import NAME, World


@dataclass(frozen=True)
class Style:
    """A way to make groups in one LWS: ``down`` regular groups may be away at once, ``extra`` ones may be there."""

    name: str
    words: Mapping[str, Any]
    down: int
    extra: bool

    def __str__(self) -> str:
        return self.name

    def new(self, count: int, replicas: int = 4, old: str = "v1", tag: str = "v2") -> dict[int, str]:
        """Groups while a step of ``count`` groups stands."""
        if self.extra:
            return dict.fromkeys(range(replicas), old) | dict.fromkeys(range(replicas, replicas + count), tag)
        return {ordinal: old if ordinal < replicas - count else tag for ordinal in range(replicas)}


IN_PLACE = Style("in place", {"capacity": "InPlace"}, 1, False)
SURGE = Style("surge", {"capacity": "Surge"}, 0, True)
STYLES = (IN_PLACE, SURGE)

PLAIN = PROMOTED_STEPS
ROUTED: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "traffic": "20%", "pause": {}},
    {"replicas": "50%", "traffic": "50%", "pause": {}},
    {"replicas": "100%", "pause": {}},
)
#: Half of groups and requests, until it is approved.
HALF: dict[str, Any] = {"replicas": "50%", "traffic": "50%", "pause": {}}


@dataclass(slots=True)
class Windows:
    """Every moment in which the LWS was not held: ``lengths`` in seconds, in order."""

    world: World
    lengths: list[float] = field(default_factory=list)
    _since: float | None = None

    def __call__(self, seen: World) -> None:
        found = seen.get(LEADER_WORKER_SETS, NAME)
        if found is None:
            return
        held = found["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] >= HOLD
        if not held and self._since is None:
            self._since = seen.server.clock()
        elif held and self._since is not None:
            self.lengths.append(round(seen.server.clock() - self._since, 3))
            self._since = None

    @property
    def is_open(self) -> bool:
        return self._since is not None


def watch(world: World, style: Style) -> Windows:
    """Hold a world to what the style promises, from now on."""
    windows = Windows(world)
    down = at_most_down(style.down)

    def few_down(seen: World) -> None:
        ending, traffic = seen.status.get("finalising") or {}, seen.status.get("traffic") or {}
        if ending.get("task") != "RollBackSteps" or traffic.get("step") != 0:
            # Groups without requests go back all at once.
            down(seen)

    world.checks[:] = [always_serving, enough_serve if style.extra else few_down, windows]
    return windows


def enough_serve(seen: World) -> None:
    """A surge never has fewer ready groups than the LWS has replicas."""
    found = seen.get(LEADER_WORKER_SETS, NAME)
    if found is not None:
        standing = seen.groups()
        ready = sum("!" not in told for told in standing.values())
        assert ready >= found["spec"]["replicas"], f"{ready} ready of {standing}"


async def in_care(world: World, style: Style, *steps: dict[str, Any], replicas: int = 4, **more: Any) -> Windows:
    """An LWS at rest without routing, watched."""
    await at_rest(world, *(steps or PLAIN), replicas=replicas, canary=style.words | more)
    return watch(world, style)


async def routed_in_care(
    world: World, style: Style, *steps: dict[str, Any], replicas: int = 4, by: Provider = BY_ROUTE, **more: Any
) -> dict[str, Any]:
    """An LWS at rest with traffic, watched; gives what was there before any release."""
    before = await routed_at_rest(world, *(steps or ROUTED), replicas=replicas, by=by, words=style.words, **more)
    watch(world, style)
    return before


async def step(world: World, number: int) -> None:
    await world.until(
        lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == number, f"step {number}"
    )


async def over(world: World, tag: str, state: str = "Healthy") -> None:
    await world.until(lambda: world.state == state and set(world.groups().values()) == {tag}, f"{state} at {tag}", 1200)
    await world.rest()
