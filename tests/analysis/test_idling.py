"""When a pod is idle: what engines expose, folded over rounds."""

from __future__ import annotations

import pytest

from rollout_lws.analysis.exposition import parse
from rollout_lws.analysis.idling import Heard, Idle, Idling, Requests
from rollout_lws.analysis.kinds import Engine
from rollout_lws.analysis.readings import Trouble

LOST = Trouble("no answer in 5 s", silent=True)


@pytest.mark.parametrize(
    ("text", "engine", "told"),
    [
        ("vllm:num_requests_running 2\nvllm:num_requests_waiting 1\n", None, 3.0),
        ("vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n", Engine.VLLM, 0.0),
        (
            'vllm:num_requests_running{engine="0"} 0\nvllm:num_requests_running{engine="1"} 4\n'
            "vllm:num_requests_waiting 0\n",
            None,
            4.0,
        ),
        ("sglang:num_running_reqs 1\nsglang:num_queue_reqs 0\n", None, 1.0),
        ("trtllm_num_requests_running 0\ntrtllm_num_requests_waiting 5\n", None, 5.0),
        ("dynamo_frontend_inflight_requests 1\ndynamo_frontend_queued_requests 0\n", None, 1.0),
        ("tgi_queue_size 0\n", None, Trouble("it does not say how many requests run")),
        ("tgi_queue_size 0\n", Engine.TGI, Trouble("it does not say how many requests run")),
        ("vllm:num_requests_running 0\n", None, Trouble("it does not say how many requests wait")),
        ("vllm:num_requests_waiting 0\n", None, Trouble("it does not say how many requests run")),
        (
            "vllm:num_requests_running NaN\nvllm:num_requests_waiting 0\n",
            None,
            Trouble("it does not say how many requests run"),
        ),
        (
            "sglang:num_running_reqs 0\nsglang:num_queue_reqs 0\n",
            Engine.VLLM,
            Trouble("it does not say how many requests run"),
        ),
        ("", None, Trouble("it does not say how many requests run")),
    ],
)
def test_both_figures_of_an_engine_are_needed(text: str, engine: Engine | None, told: Requests) -> None:
    asked = Idle(engine)
    assert asked.read(parse(text, asked.families)) == told


def test_a_pod_that_answers_without_figures_is_not_silent() -> None:
    odd = Trouble("/metrics answered 404")
    last = heard(0.0, odd, odd)
    assert (last.is_unknown, last.is_silent) == (True, False)
    assert not heard(LOST, odd, LOST).is_silent


@pytest.mark.parametrize("idle", ["0", "7"])
def test_each_rank_counts(idle: str) -> None:
    """SGLang with attention in parts: ranks of their own have requests of their own."""
    text = "".join(
        f'sglang:{name}{{tp_rank="{rank}"}} {value}\n'
        for name in ("num_running_reqs", "num_queue_reqs")
        for rank, value in (("0", "0"), ("4", idle))
    )
    asked = Idle()
    assert asked.read(parse(text, asked.families)) == 2 * float(idle)


def heard(*rounds: Requests) -> Heard:
    """Of one pod, after rounds that are five seconds apart, from second 0 on."""
    idling = Idling()
    for number, found in enumerate(rounds):
        idling = idling.after(5.0 * number, {"p": found})
    return idling.pods["p"]


@pytest.mark.parametrize(
    ("rounds", "idle", "silent"),
    [
        ((0.0,), False, False),
        ((0.0, 0.0), True, False),
        ((0.0, 1.0, 0.0), False, False),
        ((2.0, 0.0, 0.0), True, False),
        ((0.0, LOST, 0.0), True, False),
        ((0.0, LOST), False, False),
        ((0.0, LOST, LOST), False, True),
        ((0.0, 0.0, LOST, LOST), True, True),
        ((LOST, LOST, 0.0), False, False),
        ((LOST, 3.0, LOST), False, False),
        ((LOST, LOST), False, True),
    ],
)
def test_idle_and_silent_are_two_in_a_row(rounds: tuple[Requests, ...], idle: bool, silent: bool) -> None:
    last = heard(*rounds)
    assert (last.is_idle, last.is_silent) == (idle, silent)


def test_the_last_answer_is_dated_and_without_any_the_first_attempt() -> None:
    assert heard(LOST, LOST, LOST).at == 0
    assert heard(2.0, 2.0, LOST, LOST).at == 5


def test_a_pod_that_is_asked_no_more_is_forgotten() -> None:
    asked = Idling().after(0, {"p": 0.0, "q": 0.0})
    assert set(asked.after(5, {"q": 0.0}).pods) == {"q"}
    assert not asked.after(5, {"q": 0.0}).after(10, {"p": 0.0}).pods["p"].is_idle
