"""Which variants a run tells: of a test marked ``one_in(n)`` one in n by default, of each test of the longer lanes one
in ``--one-in``; others with another seed.

The variants of one test repeat each other but for a style, a moment or a part of the kills. A pipeline that runs for
each commit tells all of them within a few commits, in a part of the time.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable

import pytest

#: Of stories that a default run does not draw, one in so many of each module is told by ``--one-in``.
ONE_STORY_IN = 8
#: Such a story.
UNDRAWN = pytest.StashKey[bool]()
#: One story in so many has a controller that decides on each change.
ONE_IN_SEES_EACH_CHANGE = 8


def left_out(variants: Iterable[str], one_in: int, seed: str) -> frozenset[str]:
    """Those of ``variants`` (node IDs) that a run with ``seed`` does not tell. Of each test at least one is told, and a
    test without variants always is.
    """
    tests: defaultdict[str, list[str]] = defaultdict(list)
    for each in variants:
        tests[each.partition("[")[0]].append(each)
    return frozenset(node for each in tests.values() for node in undrawn(each, one_in, seed))


def undrawn(nodes: Iterable[str], one_in: int, seed: str) -> list[str]:
    """What is left of ``nodes`` (node IDs) when ``seed`` has drawn one in so many of them, and one at least."""
    every = sorted(nodes, key=lambda node: _digest(node, seed))
    return every[-(-len(every) // one_in) :]


def unrouted(variants: Iterable[tuple[str, str]], seed: str) -> frozenset[str]:
    """Those of ``variants`` (node IDs, each with its router) that are left out where each test is told once by each of
    the routers.
    """
    told: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for node, router in variants:
        told[node.partition("[")[0], router].append(node)
    return frozenset(node for each in told.values() for node in undrawn(each, len(each), seed))


def sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out of ``items`` what ``--one-in`` and ``--seed`` leave out of the longer lanes. By other routers than its
    first one a test is told once, and with ``--one-in`` at least one test of each module is: the first tells them all.
    Of stories that the default run has left one in ONE_STORY_IN of each module is.
    """
    one_in, seed = int(config.getoption("--one-in")), str(config.getoption("--seed"))
    others = {
        item.nodeid: str(item.callspec.params["router"])
        for item in items
        if item.get_closest_marker("other_router") and isinstance(item, pytest.Function)
    }
    _take_out(config, items, unrouted(others.items(), seed))
    long = {item.nodeid for item in items if item.get_closest_marker("long")}
    stories = {item.nodeid for item in items if item.stash.get(UNDRAWN, False)} - others.keys()
    out = left_out(long - stories - others.keys(), one_in, seed)
    out |= undrawn_of_modules(long & others.keys(), one_in, seed)
    _take_out(config, items, out | undrawn_of_modules(stories, min(one_in, ONE_STORY_IN), seed))


def undrawn_of_modules(nodes: Iterable[str], one_in: int, seed: str) -> frozenset[str]:
    """What is left of ``nodes`` (node IDs) when ``seed`` has drawn one in so many of each module, and one at least."""
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for node in nodes:
        modules[node.partition("::")[0]].append(node)
    return frozenset(node for each in modules.values() for node in undrawn(each, one_in, seed))


def _take_out(config: pytest.Config, items: list[pytest.Item], out: Collection[str]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in out])
    items[:] = [item for item in items if item.nodeid not in out]


def sees_each_change(item: pytest.Item) -> bool:
    """Whether the controller of the story ``item`` decides on each change: where it is marked ``each_change``, with
    ``--each-change``, and otherwise as the seed draws.
    """
    if item.get_closest_marker("each_change") or item.config.getoption("--each-change"):
        return True
    return drawn(item.nodeid, str(item.config.getoption("--seed")))


def drawn(node: str, seed: str) -> bool:
    """Whether ``seed`` draws the story ``node`` as one whose controller decides on each change."""
    return not int(_digest(node, seed), 16) % ONE_IN_SEES_EACH_CHANGE


def _digest(node: str, seed: str) -> str:
    return hashlib.sha256(f"{seed} {node}".encode()).hexdigest()
