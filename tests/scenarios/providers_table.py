"""Which traffic story is told with which providers, and why not with the others: read from the stories themselves.

``python -m tests.scenarios.providers_table`` prints a line for each story. A test run prints a line for each module:
with what its stories were told, and how they ended.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.scenarios.matrix_table import aligned
from tests.scenarios.routed import AND_SCRIPTS, Provider

#: The name that a story's note goes by among a report's properties.
NOTE = "providers"
#: The modules whose stories are about requests.
MODULES = ("test_traffic*.py", "test_pair*.py", "test_one_workload_meter.py", "test_promotion_shares.py")
NAMES = tuple(each.name for each in AND_SCRIPTS)


@dataclass(frozen=True)
class Line:
    """A story, the providers that it is told with and, by their names, why it is not told with others."""

    module: str
    test: str
    told: tuple[str, ...]
    but: Mapping[str, str] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """What the story does not say, or says wrongly."""
        told = f"{self.module}::{self.test}"
        silent = [name for name in NAMES if name not in (*self.told, *self.but)]
        twice = [name for name in self.told if name in self.but]
        found = []
        if silent:
            found.append(f"{told} is not told with {', '.join(silent)}: tell it with them, or say why not")
        if twice:
            found.append(f"{told} is told with {', '.join(twice)}, and says why not")
        return found

    @property
    def reasons(self) -> str:
        """Each reason once, with those that it leaves out unless these are all that the story leaves out."""
        left: dict[str, list[str]] = {}
        for name in NAMES:
            if name in self.but:
                left.setdefault(self.but[name], []).append(name)
        if len(left) == 1:
            return next(iter(left))
        return "; ".join(f"{', '.join(names)}: {why}" for why, names in left.items())


def line(module: str, test: str, marks: Sequence[pytest.Mark]) -> Line:
    """What the ``marks`` of a story say, the closest one first."""
    said = next((mark for mark in marks if mark.name == "told_with"), None)
    found = [name for mark in marks if mark.name == "parametrize" for name in _providers(mark.args[1])]
    names = {*found, *(said.args if said is not None else ())}
    told = tuple(name for name in NAMES if name in names)
    return Line(module, test, told, said.kwargs["but"] if said is not None else {})


def _providers(values: Iterable[Any]) -> Iterator[str]:
    """Those among the values of a parameter, or of several at once."""
    for value in values:
        held = getattr(value, "values", value)
        for each in held if isinstance(held, (tuple, list)) else (held,):
            if isinstance(each, Provider):
                yield each.name


def declared(item: pytest.Item) -> frozenset[str] | None:
    """The providers of one variant of a story: its parameter's, or all that it declares; None if it declares none."""
    held = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    own = frozenset(_providers(held))
    said = line("", item.name, [*item.iter_markers()])
    return own or (frozenset(said.told) if said.told else None)


def lines_of(module: ModuleType) -> Iterator[Line]:
    """A line for each test of the module."""
    own = getattr(module, "pytestmark", [])
    above = own if isinstance(own, (list, tuple)) else [own]
    for name, test in inspect.getmembers(module, inspect.isfunction):
        if name.startswith("test_") and test.__module__ == module.__name__:
            marks = [*reversed(getattr(test, "pytestmark", [])), *above]
            yield line(module.__name__.rpartition(".")[2], name, [getattr(each, "mark", each) for each in marks])


def every_line() -> list[Line]:
    """A line for each traffic story there is."""
    here = Path(__file__).parent
    names = sorted({path.stem for pattern in MODULES for path in here.glob(pattern)})
    modules = (importlib.import_module(f"tests.scenarios.{name}") for name in names)
    return [each for module in modules for each in lines_of(module)]


def table(lines: Sequence[Line]) -> list[str]:
    """The table as people read it: a story a line, a provider a column, and why others are left out."""
    rows = [["", *NAMES, "left out because"]]
    for number, each in enumerate(lines):
        if not number or lines[number - 1].module != each.module:
            rows.append([each.module, *[""] * (len(NAMES) + 1)])
        rows.append([f"  {each.test}", *("x" if name in each.told else "-" for name in NAMES), each.reasons])
    told = sum(len(each.told) for each in lines)
    head = f"providers: {len(lines)} stories, told {told} times, left out {len(lines) * len(NAMES) - told} times"
    return [head, *aligned(rows)]


@dataclass(frozen=True)
class Told:
    """A story of ``module`` that was told with ``provider`` once."""

    module: str
    provider: str
    passed: bool = True

    def note(self) -> tuple[str, list[str]]:
        """What a test records as a property: plain values, as they travel between processes."""
        return NOTE, [self.module, self.provider]


def told_by(properties: Iterable[tuple[str, Any]], *, passed: bool) -> list[Told]:
    """What the properties of one report tell of."""
    return [Told(module, name, passed) for key, value in properties if key == NOTE for module, name in [value]]


def summary(told: Sequence[Told]) -> list[str]:
    """Lines of the table of a run: a module a line, a provider a column; none when no traffic story was told."""
    if not told:
        return []
    columns = [name for name in NAMES if any(each.provider == name for each in told)]
    rows = [["", *columns]]
    for module in sorted({each.module for each in told}):
        here = [[each for each in told if (each.module, each.provider) == (module, name)] for name in columns]
        rows.append([module, *map(_cell, here)])
    return [f"providers: {len(told)} traffic stories", *aligned(rows)]


def _cell(told: Sequence[Told]) -> str:
    failed = sum(not each.passed for each in told)
    return "-" if not told else f"FAILED {failed} of {len(told)}" if failed else f"ok {len(told)}"


def main(write: Callable[[str], object] = sys.stdout.write) -> None:
    for each in table(every_line()):
        write(f"{each}\n")


if __name__ == "__main__":
    main()
