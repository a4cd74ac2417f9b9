"""Which reasons need a person, and by which commands that ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout_lws.api import SummaryState
from rollout_lws.cli.doctor.case import PLACE
from rollout_lws.cli.main import COMMANDS
from rollout_lws.rollout.decision import Verdict
from rollout_lws.rollout.reasons import Reason


def test_every_verb_is_a_command() -> None:
    assert {verb for reason in Reason for verb in reason.verbs} <= set(COMMANDS)


def test_whatever_is_stalled_needs_a_person_but_what_is_tried_again() -> None:
    assert {each for each in PLACE if not each.needs_person} == {Reason.WRITE_REFUSED}


def test_no_command_ends_what_goes_on_by_itself_or_is_asked_for_by_the_spec() -> None:
    late = Verdict("Stalled", Reason.DEADLINE, SummaryState.STALLED, "")
    paused = Verdict("Reconciling", Reason.PAUSED, SummaryState.PAUSED)
    assert (late.verbs, paused.verbs) == (("abort", "retry"), ("resume",))
    assert (replace(late, goes_on=True).verbs, replace(paused, by_spec=True).verbs) == ((), ())
    assert replace(paused, by_spec=True).needs_person


@pytest.mark.parametrize(
    ("reason", "goes_on", "needed"),
    [(Reason.CHURN, False, True), (Reason.CHURN, True, False), (Reason.LOADING, False, False)],
)
def test_a_person_is_needed_where_the_reason_says_so_and_nothing_goes_on(
    reason: Reason, goes_on: bool, needed: bool
) -> None:
    assert Verdict("Stalled", reason, SummaryState.STALLED, "", goes_on=goes_on).needs_person is needed
