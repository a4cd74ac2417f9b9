"""The threat model names tests that exist, and holds what the code holds."""

from __future__ import annotations

import re

from rollout_lws.api.structural import ITEMS_LIMIT, TEXT_LIMIT
from rollout_lws.kube import events
from rollout_lws.objects.codec.nesting import MOST_NESTED
from rollout_lws.objects.codec.yaml_nodes import MOST_VALUES
from rollout_lws.workload.revisions import HISTORY_LIMIT
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/threat-model.md").read_text()


def test_what_shows_it_is_there() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE))
    assert len(named) > 15
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_each_row_names_a_test_or_says_that_none_was_run() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and line.count("|") == 4]
    shown = [row.split("|")[3] for row in rows if "shown by" not in row and "is trusted with" not in row]
    assert [each for each in shown if "`tests/" not in each and "not run yet" not in each][:20] == _WHO_MEETS_WHOM


def test_the_numbers_are_those_of_the_code() -> None:
    limits = (TEXT_LIMIT, ITEMS_LIMIT, MOST_VALUES, MOST_NESTED, events._QUEUE, events._NOTE)
    assert [number for number in limits if f"{number:,}" not in PAGE] == []
    assert HISTORY_LIMIT == 10 and "ten versions" in PAGE


#: Rows of the one table of people, which has no tests.
_WHO_MEETS_WHOM = [
    row.split("|")[3]
    for row in PAGE.split("## Parties and trust")[1].split("## ")[0].splitlines()
    if row.count("|") == 4
][2:]
