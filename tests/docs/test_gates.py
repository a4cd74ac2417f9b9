"""The page on gates says where each signal is found, and what simulated releases came to."""

from __future__ import annotations

import re

from tests.analysis.simulated import EVERY
from tests.docs.gates import PAGE, SECTION, signals


def test_the_table_of_signals_is_that_of_the_code() -> None:
    found = SECTION.search(PAGE.read_text())
    assert found is not None
    assert found[0] == signals(), "write it anew with `python -m tests.docs.gates`"


def test_each_simulated_gate_has_its_row() -> None:
    rows = re.findall(r"^\| (.*?) \| [0-9.]+ %, [0-9.]+ % ", PAGE.read_text(), re.MULTILINE)
    assert rows == [row.name for row in EVERY]
