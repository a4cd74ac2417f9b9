"""Where there is no control plane, its tests are skipped with one line that says what is missing and how to get it.
Where there is one, a test that fails leaves its evidence and says where.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.e2e import evidence, tools
from tests.e2e.scenes import record

_LANE = "tests with a real control plane"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    wanting = [item for item in items if item.get_closest_marker("e2e")]
    why = tools.missing() if wanting else ""
    for item in wanting if why else ():
        item.add_marker(pytest.mark.skip(reason=f"{_LANE}: {why}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    count = sum(_LANE in str(each.longrepr) for each in terminalreporter.stats.get("skipped", ()))
    if count:
        terminalreporter.write_line(f"skipped {count} {_LANE}: {tools.missing()}", yellow=True)


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
