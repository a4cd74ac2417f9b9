"""Worlds of doctor's stories run in virtual time, as those of releases do."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.scenarios.world import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    made.close()
