"""Where one LeaderWorkerSet holds both versions its size is pinned: scaling would move groups between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS
from rollout_lws.sandbox.patching.patches import APPLY_PATCH
from tests.scenarios.one_workload import STYLES, Style
from tests.scenarios.scaled import AUTOSCALER, autoscaler
from tests.scenarios.stories import STEPS, at_rest, waiting_for_approval
from tests.scenarios.test_autoscalers import (
    aborted,
    bounds,
    create_autoscaler,
    deleted,
    disabled,
    finish,
    finished,
    kept,
    replicas,
    rolled_back,
    wants,
)
from tests.scenarios.world import NAMESPACE, World

pytestmark = pytest.mark.looptime


async def scaled_at_rest(world: World, style: Style) -> Any:
    """An LWS with an autoscaler; gives what that was before any release."""
    create_autoscaler(world)
    await at_rest(world, *STEPS, canary=dict(style.words))
    world.checks.clear()
    return kept(world)


async def overtaken(world: World) -> None:
    await waiting_for_approval(world)
    world.set_image("v3")
    await world.until(lambda: "v3" in world.groups().values())
    assert bounds(world) == (4, 4)
    await finish(world, "v3")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("style", STYLES, ids=str)
@pytest.mark.parametrize(
    "way", [finished, aborted, rolled_back, deleted, disabled, overtaken], ids=lambda way: way.__name__
)
async def test_an_autoscaler_comes_back_as_it_was(
    world: World, way: Callable[[World], Awaitable[None]], style: Style
) -> None:
    own = await scaled_at_rest(world, style)
    await way(world)
    await world.rest()
    assert kept(world) == own


@pytest.mark.one_in(2)
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_only_a_person_changes_the_size_meanwhile(world: World, style: Style) -> None:
    own = await scaled_at_rest(world, style)
    await waiting_for_approval(world)
    assert bounds(world) == (4, 4)
    wants(world, 6)
    await world.sleep(60)
    assert replicas(world) == 4
    world.patch_lws({"replicas": 5})
    await world.sleep(60)
    assert (replicas(world), bounds(world)) == (5, (5, 5))
    await finish(world)
    assert kept(world) == own


async def test_bounds_that_a_tool_states_just_as_they_are_held_are_its_own(world: World) -> None:
    await scaled_at_rest(world, STYLES[0])
    await waiting_for_approval(world)
    assert bounds(world) == (4, 4)
    stated = autoscaler(world)["spec"] | {"minReplicas": 4, "maxReplicas": 6}
    body = {"metadata": {"name": AUTOSCALER, "namespace": NAMESPACE}, "spec": stated}
    body |= {"apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version, "kind": HORIZONTAL_POD_AUTOSCALERS.kind}
    world.server.patch(
        HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, AUTOSCALER, body, APPLY_PATCH, field_manager="argocd", force=True
    )
    await world.rest()
    assert bounds(world) == (4, 4)
    await aborted(world)
    await world.rest()
    assert bounds(world) == (4, 6)
