"""Stories run in virtual time: ten minutes of model loading cost milliseconds."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.sampling import sees_each_change
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


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    made.close()
