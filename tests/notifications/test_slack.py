"""Messages for Slack: what they show, within its limits, and that no word of others means anything there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollout_lws.api import GateResult
from rollout_lws.notifications.slack import slack
from rollout_lws.notifications.transition import Transition, notification
from rollout_lws.rollout.decision import GateEnd
from rollout_lws.rollout.reasons import EventReason
from tests.notifications.samples import GATE, rollout, transition


def told(given: Transition) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(slack(notification(given)))
    return decoded


def texts(message: dict[str, Any]) -> list[str]:
    """All texts of a message, in order."""
    found = [message["text"]]
    for block in message["blocks"]:
        parts = [block.get("text"), *block.get("fields", ()), *block.get("elements", ())]
        assert all(part["type"] == "mrkdwn" and part["verbatim"] for part in parts if part)
        found += [part["text"] for part in parts if part]
    return found


def test_what_people_see() -> None:
    assert texts(told(transition(cluster="prod-eu"))) == [
        "prod-eu: Rollout prod/llama: GateFailed: gate latency: too slow",
        "*prod-eu: Rollout prod/llama: GateFailed*\ngate latency: too slow",
        "*State*\nStalled",
        "*Step*\n2/3",
        "*Requests to the new version*\n5% (20% asked for)",
        "*Stable*\nold-revision, groups 4/4 ready",
        "*New*\nr-7, groups 0/1 ready",
        "Gate latency (metric): Failed; new 2.09s, stable 700ms, limit 1s; 42% slow or failed, between 32% and 48%,"
        " 5% allowed; 300 requests and 1,200 of stable",
        "`kubectl rollout-lws abort llama -n prod`",
        "`kubectl rollout-lws retry llama -n prod`",
        "`kubectl rollout-lws skip llama latency -n prod`",
        "`kubectl rollout-lws skip llama errors -n prod`",
        "Warning 2026-11-29 12:00:00 UTC",
    ]


def test_a_rollout_without_a_status_is_told_too() -> None:
    message = told(transition(EventReason.ADOPTED, "llama is held", gates=(), rollout=rollout({}), verdict=None))
    assert texts(message)[1:] == ["*Rollout prod/llama: Adopted*\nllama is held", "Warning 2026-11-29 12:00:00 UTC"]


@pytest.mark.parametrize("words", ["<!channel>", "<https://evil.invalid|click>", "a & b", "&lt;!here&gt;", "<@U1>"])
def test_no_word_of_others_is_a_mention_or_a_link(words: str) -> None:
    gate = GATE.model_copy(update={"value": words, "stable_value": words, "limit": words})
    end = GateEnd("metric", GateResult.FAILED, gate, 1.0)
    message = told(transition(note=words, gates=(end,), cluster=words))
    for text in texts(message):
        assert not set("<>") & {*text}
        assert all(part.startswith(("amp;", "lt;", "gt;")) for part in text.split("&")[1:])
    shown = message["text"].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert shown.endswith(words)


@pytest.mark.parametrize("letter", ["x", "&", "<", "ü"])
def test_long_words_stay_within_the_limits_and_no_escape_is_cut(letter: str) -> None:
    for length in (1990, 1999, 2000, 2001, 2999, 3000, 3001, 9000):
        message = told(transition(note=letter * length, gates=tuple([*transition().event.gates] * 30)))
        for text in texts(message):
            assert len(text) <= 3000
            assert all(part.startswith(("amp;", "lt;", "gt;")) for part in text.split("&")[1:])
        assert len(message["blocks"]) <= 50
        for block in message["blocks"]:
            assert len(block.get("fields", ())) <= 10
            assert all(len(each["text"]) <= 2000 for each in block.get("fields", ()))


@pytest.mark.parametrize("reason", list(EventReason))
def test_each_reason_of_events_is_told(reason: EventReason) -> None:
    message = told(transition(reason, about="LeaderWorkerSet"))
    assert reason.value in message["text"]
    assert "*About*\nLeaderWorkerSet llama" in texts(message)
