"""The page of flaws that became tests: it names each such test, and none that is not there."""

from __future__ import annotations

import re
from collections import Counter

from tests.docs.pages import ROOT

_PREFIX = "test_kruise_flaw_"
_ROW = re.compile(rf"^\| [^|`].*\| `({_PREFIX}\w+)` \|$", re.MULTILINE)


def test_the_page_of_flaws_has_one_row_for_each_test_of_a_flaw() -> None:
    named = Counter(_ROW.findall((ROOT / "docs/kruise-flaws.md").read_text()))
    found = Counter(
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(rf"^ *(?:async )?def ({_PREFIX}\w+)", file.read_text(), re.MULTILINE)
    )
    assert named == found
    assert set(found.values()) == {1}
