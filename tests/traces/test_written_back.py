"""A LeaderWorkerSet that the real webhook has something to add to is written back by it, and here in the same words.

``written-back.json`` holds the spec that was sent to the API server and the one that it answered with.
"""

from __future__ import annotations

import json
from pathlib import Path

from rollout_lws.objects.spelling import plain
from rollout_lws.sandbox.behaviours.lws_admission import defaulted

RECORDED = json.loads((Path(__file__).parent / "lws-0.10.0" / "written-back.json").read_text())


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
