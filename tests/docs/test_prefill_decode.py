"""The page on prefill and decode: its table of companions is what releases make, its layout is that of the example."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rollout_lws.api import Capacity, Rollout
from rollout_lws.api.rollout_spec import CanaryStrategy, Step
from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.capacity.replica_math import in_proportion
from rollout_lws.objects.scaling import scaled
from rollout_lws.rollout.reasons import Reason
from tests.docs.pages import ROOT, blocks

PAGE = Path("docs/prefill-decode.md")
_TEXT = (ROOT / PAGE).read_text()
_ROWS = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in _TEXT.splitlines() if line.startswith("|")]
#: R, replicas of the companion, its full size, and its groups at one group, at 50% and at 100%.
NUMBERS = [row for row in _ROWS if len(row) == 6 and row[0].isdigit()]
#: The steps of that table.
PLAN = CanaryStrategy(capacity=Capacity.PAIR, steps=(Step(replicas=1), Step(replicas="50%"), Step(replicas="100%")))


def test_the_table_has_counts_and_percentages() -> None:
    assert len(NUMBERS) == 5
    assert {row[1].endswith("%") for row in NUMBERS} == {True, False}


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: f"{row[0]} and {row[1]}")
def test_companions_get_as_many_groups_as_the_table_says(row: list[str]) -> None:
    replicas, asked = int(row[0]), int(row[1]) if row[1].isdigit() else row[1]
    own = scaled(asked, replicas)
    each = [in_proportion(wanted_groups(PLAN, step, replicas), replicas, own) for step in (1, 2, 3)]
    assert [str(number) for number in (own, *each)] == row[2:]


def test_the_rollout_that_is_shown_has_a_companion_on_each_side() -> None:
    (shown,) = (found for block in blocks(PAGE, "yaml") if "strategy" in (found := yaml.safe_load(block)))
    spec = Rollout.model_validate({"spec": shown}).spec
    assert spec.workloads == ("decode-blue", "decode-green", "prefill-blue", "prefill-green")
    assert spec.scales_sides


def test_its_reasons_are_words_of_the_status() -> None:
    told = {row[0] for row in _ROWS if len(row) == 3 and row[0][:1].isupper()}
    assert told >= {Reason.VERSION_INCOMPLETE.value, Reason.COMPANION_MISSING.value}
    assert told <= {reason.value for reason in Reason}
