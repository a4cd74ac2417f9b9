"""What gates conclude of versions whose truth is known: `python -m tests.analysis.simulated` has the table."""

from __future__ import annotations

import pytest

from tests.analysis.simulated import AT_LIMIT, BAD, GOOD, QUERIES, ROWS, Asked, Row, outcome

#: Of so many releases, which are the same in each run.
FEW, MANY = 12, 200
EVERY = (*ROWS, *QUERIES)


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.name)
@pytest.mark.parametrize("runs", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_a_good_version_passes_and_a_bad_one_fails(row: Row | Asked, runs: int) -> None:
    good, bad = outcome(row, GOOD, runs), outcome(row, BAD, runs)
    assert good.passed >= 0.8 and good.failed <= 0.05, good
    assert bad.failed >= 0.8 and bad.passed <= 0.05, bad


@pytest.mark.long
@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.name)
def test_a_version_at_its_limit_is_rarely_judged(row: Row | Asked) -> None:
    found = outcome(row, AT_LIMIT, MANY)
    assert found.failed <= 0.05 and found.passed <= 0.09, found
