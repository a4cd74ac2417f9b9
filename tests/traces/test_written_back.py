"""A LeaderWorkerSet that the real webhook has something to add to is written back by it, and here in the same words.

``written-back.json`` holds the spec that was sent to the API server and the one that it answered with,
``revisions.json`` the worker template that an LWS was made with, the one that it was replaced by, and how many
ControllerRevisions there were then.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.objects.spelling import plain
from rollout_lws.sandbox.behaviours.lws.admission import defaulted

_RECORDINGS = Path(__file__).parent / "lws-0.10.0"
RECORDED = json.loads((_RECORDINGS / "written-back.json").read_text())
REVISIONS = json.loads((_RECORDINGS / "revisions.json").read_text())
#: What ``plain`` says that it does not cover.
_TOLD_APART = {"empty value of a variable, none given", "host network false, none given"}


def test_the_answer_is_the_recorded_one() -> None:
    assert defaulted({"metadata": {"name": "rich"}, "spec": RECORDED["given"]})["spec"] == RECORDED["answer"]


def test_a_spec_with_nothing_to_add_stays_as_it_was_written() -> None:
    template = {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "1000m"}}}, {"name": "b"}]}}
    complete = {**RECORDED["answer"], "leaderWorkerTemplate": {**RECORDED["answer"]["leaderWorkerTemplate"]}}
    complete["leaderWorkerTemplate"]["workerTemplate"] = template
    lws = {"metadata": {"name": "rich"}, "spec": complete}
    assert defaulted(lws) is lws


def test_what_was_sent_and_what_was_answered_are_one_version() -> None:
    told = plain(RECORDED["answer"])["leaderWorkerTemplate"]
    given = plain(RECORDED["given"])["leaderWorkerTemplate"]
    assert given == {name: told[name] for name in given}


@pytest.mark.parametrize("name", sorted(REVISIONS.keys() - _TOLD_APART))
def test_templates_of_one_revision_are_one_version_and_others_are_not(name: str) -> None:
    assert _are_one(REVISIONS[name]) == (REVISIONS[name]["revisions"] == 1)


@pytest.mark.parametrize("name", sorted(_TOLD_APART))
def test_zero_values_that_go_leaves_out_make_another_version_here_only(name: str) -> None:
    assert REVISIONS[name]["revisions"] == 1
    assert not _are_one(REVISIONS[name])


def _are_one(recorded: dict[str, Any]) -> bool:
    one, other = ({"leaderWorkerTemplate": {"workerTemplate": recorded[which]}} for which in ("one", "other"))
    return plain(one) == plain(other)
