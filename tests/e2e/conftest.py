"""Which cluster the tests run on, and one line for those that cannot be run there: what is missing, how to get it.

A cluster that the environment names (tests.e2e.elsewhere) is for the stories only; everything else needs a control
plane that it may kill, or whose logs it may read. A test that fails leaves its evidence and says where.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Generator

import pytest
import pytest_asyncio

from tests.e2e import contour, elsewhere, evidence, left_out, tools
from tests.e2e.cluster import beyond_the_role, cluster, invalid
from tests.e2e.needs import Found, Lacking
from tests.e2e.place import UNROUTED, Place
from tests.e2e.scenes import record

_LANE = "tests with a real control plane"
_OWN = f"they need a control plane of their own, and {elsewhere.KUBECONFIG} names another"
_CHOSEN = pytest.StashKey[tuple[elsewhere.Chosen, Found]]()
#: Lines for people, beside the tests' results.
_TOLD = pytest.StashKey[list[str]]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[_TOLD] = []
    wanting = [item for item in items if item.get_closest_marker("e2e")]
    if not wanting:
        return
    try:
        asked = elsewhere.chosen()
        if asked is not None:
            config.stash[_CHOSEN] = asked, asyncio.run(elsewhere.look(asked))
    except Lacking as error:
        raise pytest.UsageError(*str(error).splitlines()) from error
    why = _OWN if asked else tools.missing()
    for item in wanting if why else ():
        if not (asked and "place" in getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.skip(reason=f"{_LANE}: {why}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reasons = Counter(str(each.longrepr[2]) for each in terminalreporter.stats.get("skipped", ()))
    for reason, count in reasons.items():
        if any(told in reason for told in (_LANE, UNROUTED)):
            terminalreporter.write_line(f"skipped {count} {reason.removeprefix('Skipped: ')}", yellow=True)
    ran = [each for key in ("passed", "failed") for each in terminalreporter.stats.get(key, ())]
    if any("test_stories.py" in each.nodeid for each in ran):
        for line in left_out.lines():
            terminalreporter.write_line(line)
        if (why := contour.missing()) and _CHOSEN not in config.stash:
            terminalreporter.write_line(f"routes were accepted by the sandbox, not by Contour: {why}", yellow=True)
    for line in config.stash.get(_TOLD, []):
        terminalreporter.write_line(line, yellow=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    """Where stories are told: the cluster that the environment names, else a control plane of their own."""
    directory = tmp_path_factory.mktemp("cluster")
    if _CHOSEN in pytestconfig.stash:
        try:
            async with elsewhere.elsewhere(*pytestconfig.stash[_CHOSEN], directory, pytestconfig.stash[_TOLD]) as found:
                yield found
        except Lacking as error:
            pytest.exit(str(error), pytest.ExitCode.USAGE_ERROR)
    else:
        async with cluster(tools.directory(), directory, with_contour=not contour.missing()) as own:
            yield own.place
            assert beyond_the_role(own.plane.audit_log) == []
            assert invalid(own.plane.audit_log) == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and call.excinfo is not None and item.get_closest_marker("e2e"):
        try:
            kept = evidence.keep(record, item.nodeid, call.excinfo.value, call.start)
            told = "" if kept is None else f"logs, audit log and objects: {kept}"
        except Exception as error:
            # The failure of the test must be told, whatever becomes of its evidence.
            told = f"not complete: {error!r}"
        if told:
            report.sections.append(("evidence", told))
    return report
