"""What all tests share."""

from __future__ import annotations

import asyncio
import gc
from collections import defaultdict
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

from tests import browser_tool, helm_tool, kubectl_tool, sampling, virtual_time
from tests.scenarios import providers_table
from tests.scenarios.matrix_table import table, told_by, windows_told

#: By the marker of its tests: what a lane is called, and who knows what it needs.
_LANES = {
    "browser": ("tests in a browser", browser_tool),
    "helm": ("tests of the chart", helm_tool),
    "kubectl": ("tests with kubectl", kubectl_tool),
}

#: Of the whole releases in this folder the default run tells one in so many of each module.
_RELEASES = "tests/scenarios/"
_STORIES = 10

# How long an example takes says more of what else the machine does than of what is tested.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("the longer lanes")
    group.addoption("--one-in", type=int, default=1, metavar="N", help="tell one in N variants of each long test")
    group.addoption("--seed", default="", help="any text: which of the variants --one-in and one_in(n) tell")
    group.addoption("--each-change", action="store_true", help="the controller of each story decides on each change")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected, modules and tests, stays to the end: the garbage collector need not go through it again and
    again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _leave_variants_to_the_long_lane(items, str(config.getoption("--seed")))
    _leave_stories_to_the_long_lane(items, str(config.getoption("--seed")))
    sampling.sample(config, items)
    for marker, (lane, tool) in _LANES.items():
        wanting = [item for item in items if item.get_closest_marker(marker)]
        why = tool.missing() if wanting else ""
        for item in wanting if why else ():
            item.add_marker(pytest.mark.skip(reason=f"{lane}: {why}"))
    for item in items:
        if item.get_closest_marker("looptime"):
            item.add_marker(pytest.mark.looptime(**virtual_time.OPTIONS))


def _leave_variants_to_the_long_lane(items: list[pytest.Item], seed: str) -> None:
    """Of a test that is marked one_in(n), ``seed`` draws the one variant in n that is told by default. With
    of="parameter" it draws for each value of that parameter, so that each is told.
    """
    sampled: defaultdict[tuple[int, str], list[pytest.Function]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("one_in")
        if mark is not None and isinstance(item, pytest.Function) and not item.get_closest_marker("long"):
            of = mark.kwargs.get("of")
            sampled[mark.args[0], repr(item.callspec.params[of]) if of else ""].append(item)
    for (one_in, _), variants in sampled.items():
        out = sampling.left_out((item.nodeid for item in variants), one_in, seed)
        for item in variants:
            if item.nodeid in out:
                item.add_marker(pytest.mark.long)


def _leave_stories_to_the_long_lane(items: list[pytest.Item], seed: str) -> None:
    """Of the stories of a module that are marked rare(n), ``seed`` draws the one in n that is told by default; of those
    in the folder of whole releases that are not marked, one in _STORIES.
    """
    rare: defaultdict[tuple[int, str], dict[str, pytest.Item]] = defaultdict(dict)
    for item in items:
        mark, module = item.get_closest_marker("rare"), item.nodeid.partition("::")[0]
        one_in = mark.args[0] if mark is not None else _STORIES if module.startswith(_RELEASES) else 1
        if one_in > 1 and not item.get_closest_marker("long"):
            rare[one_in, module][item.nodeid] = item
    for (one_in, _), stories in rare.items():
        for node in sampling.undrawn(stories, one_in, seed):
            stories[node].add_marker(pytest.mark.long)
            stories[node].stash[sampling.UNDRAWN] = True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A lane that was left out is told of in one line, whatever the flags; the story matrix, and by what requests of
    traffic stories were shared, as tables.
    """
    skipped = [str(each.longrepr) for each in terminalreporter.stats.get("skipped", ())]
    for lane, tool in _LANES.values():
        count = sum(lane in text for text in skipped)
        if count:
            terminalreporter.write_line(f"skipped {count} {lane}: {tool.missing()}; {tool.HOW_TO_GET_IT}", yellow=True)
    reports = [(each, each.passed) for key in ("passed", "failed") for each in terminalreporter.stats.get(key, ())]
    told = [each for report, passed in reports for each in told_by(report.user_properties, passed=passed)]
    windows = sorted(line for report, _ in reports for line in windows_told(report.user_properties))
    shared = [
        each for report, passed in reports for each in providers_table.told_by(report.user_properties, passed=passed)
    ]
    for line in (*table(told), *windows, *providers_table.summary(shared)):
        terminalreporter.write_line(line)
    one_in, seed = terminalreporter.config.getoption("--one-in"), terminalreporter.config.getoption("--seed")
    if one_in > 1:
        terminalreporter.write_line(f"of the longer lanes one variant in {one_in}, by seed {seed!r}; ALL=1 tells all")


@pytest.fixture(autouse=True)
def _no_loop_left_behind() -> Iterator[None]:
    """The virtual-time plugin asks for a current loop even in synchronous tests, and would leave it open."""
    asyncio.set_event_loop(None)
    yield
