"""Where there is no control plane, its tests are skipped with one line that says what is missing and how to get it."""

from __future__ import annotations

import pytest

from tests.e2e import tools

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
