"""The list of differences is what the suite expects, all of it, and what the documentation says."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conformance import differences
from tests.conformance.differences import Difference
from tests.docs.pages import ROOT

_HERE = Path(__file__).parent
_NAMED = {name: each for name, each in vars(differences).items() if isinstance(each, Difference)}


def test_the_documentation_shows_the_differences() -> None:
    assert differences.table() in (ROOT / "docs" / "conformance.md").read_text()


def test_all_differences_are_listed_and_are_some() -> None:
    assert sorted(map(id, differences.ALL)) == sorted(map(id, _NAMED.values()))
    assert [name for name, each in _NAMED.items() if each.kubernetes == each.sandbox or not each.why] == []


def test_each_difference_is_asked_for() -> None:
    asked = {name for path in _HERE.glob("test_*.py") for name in re.findall(r"\b([A-Z_]+)\.on\(", path.read_text())}
    assert asked == _NAMED.keys()
