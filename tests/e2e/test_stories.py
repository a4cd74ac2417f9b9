"""Whole releases on a real control plane: every capacity, with and without a route, each way to its end.

Each story has a namespace and a controller of its own, and that controller is killed once in the middle.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e import tools
from tests.e2e.cluster import Cluster, cluster
from tests.e2e.world import RemoteWorld, remote_world
from tests.kubectl.programs import Programs
from tests.scenarios import matrix_acts
from tests.scenarios.matrix import GROUPS, TRAFFIC, Moment, Release
from tests.scenarios.styles import STYLES, Style
from tests.scenarios.walk_plans import Plan

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with cluster(tools.directory(), tmp_path_factory.mktemp("cluster")) as running:
        yield running


class Bystander:
    """Who looks on where writes cannot be judged before they are made."""

    @contextmanager
    def user(self) -> Iterator[None]:
        yield


def release(world: RemoteWorld, style: Style, traffic: str) -> Release:
    plan = Plan(replicas=GROUPS, size=2, steps=style.steps, routed=traffic != "none", style=style)
    told: Any = world
    return Release(told, plan, Counter(), Bystander())  # type: ignore[arg-type]


STORIES = {
    "finish": (matrix_acts.finish, Moment.FIRST),
    "abort": (matrix_acts.abort, Moment.SECOND),
    "rollback": (matrix_acts.rollback_by_template, Moment.FIRST),
    "delete": (matrix_acts.delete_rollout, Moment.SECOND),
}


@pytest.mark.parametrize("traffic", TRAFFIC)
@pytest.mark.parametrize("style", STYLES, ids=str)
@pytest.mark.parametrize("story", STORIES)
async def test_a_release_comes_to_its_end(whole: Cluster, story: str, style: Style, traffic: str) -> None:
    happen, moment = STORIES[story]
    namespace = f"{story}-{style}-{traffic}".replace(" ", "-").lower()
    programs = Programs()
    try:
        async with remote_world(whole.plane.admin, whole.controller, namespace, programs) as world:
            it = release(world, style, traffic)
            await it.begin()
            world.kill_after(random.Random(namespace).randrange(5, 60))
            await it.come_to(moment)
            await happen(it)
            assert world.kills == 1
    finally:
        await programs.close()
        print(*programs.logs(), sep="\n")
