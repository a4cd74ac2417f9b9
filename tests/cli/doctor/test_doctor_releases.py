"""Doctor of another release than the controller: it calls the same versions by other hashes, and breaks nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rollout_lws.cli.doctor.links import State, first
from rollout_lws.targets import version
from rollout_lws.workload import revisions
from tests.cli.doctor.looking import links, told
from tests.cli.doctor.styles import EVERY_STYLE, STYLES
from tests.scenarios.stories import PROMOTED_STEPS, at_rest, waiting_for_approval
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime


@pytest.fixture
def other_release(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch
    monkeypatch.undo()
    forget()


def forget() -> None:
    version.version.cache_clear()
    revisions._recorded.cache_clear()


async def of_another_release(world: World, patches: pytest.MonkeyPatch) -> None:
    """The controller has done all that it had to, and stands still while somebody else looks."""
    await world.rest()
    world.stop_controller()
    known = version.plain
    patches.setattr(version, "plain", lambda members: {**known(members), "release": "next"})
    forget()
    found = await links(world)
    assert first(found, State.BROKEN) is None, told(found)
    assert {each.name for each in found if each.state is State.WAITING} <= {"release"}, told(found)


async def test_at_rest(world: World, other_release: pytest.MonkeyPatch) -> None:
    await at_rest(world)
    await of_another_release(world, other_release)


@pytest.mark.parametrize("style", EVERY_STYLE)
async def test_while_it_waits_for_approval(world: World, other_release: pytest.MonkeyPatch, style: str) -> None:
    await at_rest(world, *PROMOTED_STEPS, **STYLES[style])
    await waiting_for_approval(world)
    await of_another_release(world, other_release)


async def test_after_an_abort(world: World, other_release: pytest.MonkeyPatch) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    world.stop_controller()
    known = version.plain
    other_release.setattr(version, "plain", lambda members: {**known(members), "release": "next"})
    forget()
    found = await links(world)
    assert [each.name for each in found if each.state is State.BROKEN] == ["release"], told(found)
