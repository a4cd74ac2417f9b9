"""One cluster with real nodes for all tests of the lane, and one line where there is none."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.kubectl.programs import ROLLOUT_LWS, Programs
from tests.nodes import images, page
from tests.nodes.__main__ import OUTSIDE
from tests.nodes.cluster import Cluster, cluster
from tests.nodes.enclosure import DIRECTORY
from tests.nodes.losses import Row
from tests.nodes.stories import SAMPLE, everything, keys

_LANE = "tests with real nodes: they are run by make e2e-nodes, as root on Linux"


_LEFT = pytest.StashKey[int]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not {DIRECTORY, OUTSIDE} & os.environ.keys():
        for item in items:
            if item.get_closest_marker("nodes"):
                item.add_marker(pytest.mark.skip(reason=_LANE))
    elif not everything():
        left = [item for item in items if _is_for_all(item)]
        config.hook.pytest_deselected(items=left)
        config.stash[_LEFT] = len(left)
        items[:] = [item for item in items if item not in left]


def _is_for_all(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("nodes")
    return mark is not None and bool(mark.kwargs.get("everything"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = terminalreporter.stats.get("skipped", ())
    reasons = Counter(str(each.longrepr[2]) for each in skipped if "nodes" in each.keywords)
    for reason, count in reasons.items():
        terminalreporter.write_line(f"skipped {count}: {reason.removeprefix('Skipped: ')}", yellow=True)
    if left := config.stash.get(_LEFT, 0):
        terminalreporter.write_line(f"left to make e2e-nodes ALL=1: {left} tests, and all but {len(SAMPLE)} releases")


@pytest.fixture(scope="session")
def run() -> Path:
    """The directory of this run, which goes with it."""
    return Path(os.environ[DIRECTORY])


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def nodes(run: Path, pytestconfig: pytest.Config) -> AsyncIterator[Cluster]:
    """The cluster, with the controller installed from its image."""
    terminal, capture = map(pytestconfig.pluginmanager.get_plugin, ("terminalreporter", "capturemanager"))

    def progress(line: str) -> None:
        with capture.global_and_fixture_disabled():
            terminal.ensure_newline()
            terminal.write_line(line)
            terminal.flush()

    async with cluster(run, Path(os.environ[images.STORE]), progress) as running:
        programs = Programs()
        try:
            program = await programs.start(
                *(ROLLOUT_LWS, "--kubeconfig", str(running.plane.admin)), *("install", "--image", images.PRODUCT)
            )
            assert await program.end(120) == 0, program.output
            progress(program.lines[-1])
            yield running
        finally:
            await programs.close()


@pytest_asyncio.fixture(loop_scope="session")
async def programs() -> AsyncIterator[Programs]:
    started = Programs()
    yield started
    await started.close()


@pytest.fixture(scope="session")
def rows() -> Iterator[list[Row]]:
    """What releases that passed have cost their users; ALL=1 writes it into the page."""
    measured: list[Row] = []
    yield measured
    if measured and everything():
        page.write(measured, keys())
