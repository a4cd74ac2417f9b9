"""What gates conclude of versions whose truth is known: `python -m tests.analysis.simulated` has the table."""

from __future__ import annotations

import pytest

from tests.analysis.simulated import AT_LIMIT, BAD, EVERY, GOOD, QUERIES, ROWS, Asked, Row, outcome, watched

pytestmark = pytest.mark.rare(3)

#: Of so many releases, which are the same in each run.
FEW, MANY = 12, 200


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.name)
@pytest.mark.parametrize("runs", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_a_good_version_passes_and_a_bad_one_fails(row: Row | Asked, runs: int) -> None:
    good, bad = outcome(row, GOOD, runs), outcome(row, BAD, runs)
    assert good.passed >= 0.8 and good.failed <= 0.05, good
    assert bad.failed >= 0.8 and bad.passed <= 0.05, bad


@pytest.mark.long
@pytest.mark.parametrize(
    ("row", "runs"),
    # Queries have bounds that are as wide as they may be, so that more releases have to tell.
    [*((row, MANY) for row in ROWS), *((row, 5 * MANY) for row in QUERIES)],
    ids=lambda each: each.name if isinstance(each, Row | Asked) else str(each),
)
def test_a_version_at_its_limit_is_rarely_judged(row: Row | Asked, runs: int) -> None:
    found = outcome(row, AT_LIMIT, runs)
    assert found.failed <= 0.05 and found.passed <= 0.09, found


#: Windows of a release: an hour and more.
WINDOWS = 15
_FAILURES = next(row for row in ROWS if "failed requests" in row.name)


@pytest.mark.parametrize("runs", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_what_is_watched_fails_if_it_is_bad_and_not_because_it_is_watched_for_long(runs: int) -> None:
    good, bad = (sum(watched(_FAILURES, each, seed, WINDOWS) for seed in range(runs)) for each in (GOOD, BAD))
    assert good == 0
    assert bad >= 0.9 * runs


@pytest.mark.long
def test_a_version_at_its_limit_rarely_fails_in_any_window() -> None:
    assert sum(watched(_FAILURES, AT_LIMIT, seed, WINDOWS) for seed in range(MANY)) <= 0.05 * MANY
