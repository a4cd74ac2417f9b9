"""A release of the matrix in a world that is somewhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.world import RemoteWorld
from tests.scenarios.kinds import LWS
from tests.scenarios.matrix import GROUPS, Release
from tests.scenarios.styles import Style
from tests.scenarios.walk_plans import Plan


class Bystander:
    """Who looks on where writes cannot be judged before they are made."""

    @contextmanager
    def user(self) -> Iterator[None]:
        yield


def release(world: RemoteWorld, style: Style, traffic: str, deadline: int = 600) -> Release:
    """What a story begins with; after ``deadline`` seconds without progress its release stalls."""
    plan = Plan(
        replicas=GROUPS,
        size=2 if world.kind is LWS else 1,
        steps=style.steps,
        routed=traffic != "none",
        style=style,
        deadline=deadline,
    )
    told: Any = world
    return Release(told, plan, Counter(), Bystander())  # type: ignore[arg-type]
