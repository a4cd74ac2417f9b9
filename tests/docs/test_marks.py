"""A block of commands that no test runs says so, and what it needs, in its first line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import blocks, pages

#: What a block in `sh` begins with: it is not run by tests, since it needs what they do not have.
_NEEDS = re.compile(r"# Needs [^\n]*[^\n.]\.\n")


@pytest.mark.parametrize("page", pages(), ids=str)
def test_a_block_that_no_test_runs_says_what_it_needs(page: Path) -> None:
    unmarked = [block for block in blocks(page, "sh") if not _NEEDS.match(block)]
    assert unmarked == [], "let its first line be like '# Needs a cluster.', or have tests run it: ```bash"


@pytest.mark.parametrize(
    ("first", "marked"),
    [
        ("# Needs a cluster.\nkubectl get pods\n", True),
        ("# needs a cluster\nkubectl get pods\n", False),
        ("kubectl get pods\n", False),
        ("# Needs .\n", False),
    ],
)
def test_a_mark_has_its_form(first: str, marked: bool) -> None:
    assert bool(_NEEDS.match(first)) is marked
