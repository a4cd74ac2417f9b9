"""One browser for all tests of a process, a visitor for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.browser import releases, rollouts
from tests.browser.stage import Dashboard, Stage, stage
from tests.browser.tabs import Visitors, chromium

if TYPE_CHECKING:
    from playwright.async_api import Browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def visitors(browser: Browser) -> AsyncIterator[Visitors]:
    coming = Visitors(browser)
    yield coming
    await coming.close()


@pytest_asyncio.fixture(loop_scope="session")
async def released(tmp_path: Path) -> AsyncIterator[Stage]:
    """A cluster of this test's own, with a controller."""
    async with stage(tmp_path) as made:
        await made.start_controller()
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def standing(tmp_path: Path) -> AsyncIterator[Stage]:
    """A cluster of this test's own in which a release waits for its approval, without a controller from then on."""
    async with stage(tmp_path) as made:
        await releases.stand(made)
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def still(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """One cluster for all tests that change nothing: a release that waits for its approval, and Rollouts of a team."""
    async with stage(tmp_path_factory.mktemp("still")) as made:
        await releases.stand(made)
        rollouts.team(made)
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shown(still: Stage) -> Dashboard:
    """That cluster's dashboard."""
    return await still.dashboard()
