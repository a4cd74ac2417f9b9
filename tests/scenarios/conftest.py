"""Stories run in virtual time: ten minutes of model loading cost milliseconds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.sampling import sees_each_change
from tests.scenarios import providers_table
from tests.scenarios.routed import ROUTES
from tests.scenarios.world import World


@pytest.fixture(autouse=True)
def pace(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In how much detail the controller of this story's worlds sees what happens."""
    monkeypatch.setattr(World, "each_change", sees_each_change(request.node))


@pytest.fixture
def router(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what this story shares requests."""
    monkeypatch.setattr(ROUTES, "provider", request.param)


@pytest.fixture(autouse=True)
def shared_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Holds a traffic story to the providers that it declares, and notes with which it was told."""
    made = set[str]()
    monkeypatch.setattr(ROUTES, "made", made)
    yield
    said = providers_table.declared(request.node)
    if said is None:
        return
    assert made <= said, f"told with {sorted(made)}, and declared are {sorted(said)}"
    module = request.node.nodeid.partition("::")[0].rpartition("/")[2].removesuffix(".py")
    for name in sorted(made):
        request.node.user_properties.append(providers_table.Told(module, name).note())


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    made.close()
