"""Stories run in virtual time: ten minutes of model loading cost milliseconds."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.scenarios.world import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    made.close()
