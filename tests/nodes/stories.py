"""The releases whose cost to their users is measured on real nodes: a sample by default, all of them for the table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.nodes.release import CANARY, DRAINING, DYING, MATCHES, STYLES, UNROUTED, Pods, Style

#: The environment variable that has everything told when it is "1".
ALL = "ROLLOUT_LWS_E2E_ALL"
#: The fewest requests and streams that a row of the table rests on, and requests that a share does.
REQUESTS, STREAMS, OF_A_SHARE = 10_000, 50, 5_000
#: Percentage points that a share may be off.
OFF = 2.0
ROUTE, DIRECT, TAGGED = "HTTPRoute", "Service", "HTTPRoute, x-canary"


@dataclass(frozen=True, slots=True)
class Announced:
    """What is lost at most: ``load`` times the requests that run at one moment, and as much of those that are asked
    until routers know; and a request on each connection that is kept past the route, so many times as it is cut.
    """

    load: float
    cuts: int


NO_LOSS = Announced(0.0, 0)


@dataclass(frozen=True, slots=True)
class Story:
    style: Style
    pods: Pods
    end: str

    def __str__(self) -> str:
        return f"{self.style.name}-{self.end}-{self.pods.name}".replace(" ", "-")

    @property
    def row(self) -> str:
        """What the table calls it."""
        return f"{self.style.name}, {self.end}"

    @property
    def steps(self) -> range:
        """Those that wait for approval on its way."""
        return range(1, len(self.style.shares) + 1) if self.end == "finish" else range(1, 2)

    @property
    def shares(self) -> list[tuple[int, int]]:
        """Step and percentage of each share that is measured: once for each style and sort of pods, by default of the
        first step only.
        """
        found = list(enumerate(self.style.shares, 1)) if self.end == "finish" else []
        return found if everything() else found[:1]

    def announced(self, plan: Mapping[str, Any]) -> Announced:
        """What `plan` says before. Pods that drain lose nothing."""
        if self.pods is DRAINING:
            return NO_LOSS
        if self.end == "finish":
            return Announced(plan["totals"]["disruptedLoad"], plan["totals"]["connectionCuts"])
        parts = plan["steps"][: len(self.steps)]
        back = parts[-1]["wayBack"]
        groups = sum(part["disruptedGroups"] for part in parts) + back["disruptedGroups"]
        load = groups * max(part["load"]["peak"] for part in parts) / plan["replicas"]
        return Announced(
            load, sum(part["windows"] for part in parts if part["disruptedGroups"]) + bool(back["modelLoads"])
        )


SAMPLE = (Story(CANARY, DRAINING, "finish"), Story(CANARY, DRAINING, "abort"))


def all_stories() -> list[Story]:
    return [Story(style, pods, end) for pods in (DRAINING, DYING) for style in STYLES for end in ("finish", "abort")]


def everything() -> bool:
    """Whether this run tells everything."""
    return os.environ.get(ALL) == "1"


def told() -> list[Story]:
    """Those of this run."""
    return all_stories() if everything() else list(SAMPLE)


def keys() -> list[tuple[str, str, str]]:
    """Release, pods and way of each row that the table may have, in its order."""
    weighted = [(story.row, story.pods.name, way) for story in all_stories() for way in (ROUTE, DIRECT)]
    others = ((MATCHES, (ROUTE, TAGGED, DIRECT)), (UNROUTED, (ROUTE, DIRECT)))
    return [*weighted, *((f"{style.name}, finish", DRAINING.name, way) for style, ways in others for way in ways)]
