"""Signals as engines expose them, in the text that their servers answer."""

from __future__ import annotations

from dataclasses import replace
from time import thread_time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rollout_lws.analysis.exposition import MOST_CHARACTERS, MOST_LINES, MOST_WANTED, NotAnExposition, parse
from rollout_lws.analysis.kinds import MEASURES, Engine, Router, Signal, words
from rollout_lws.analysis.readings import MOST_EDGES, Counts, Histogram, Level, Nothing, Read, Trouble, Work
from rollout_lws.analysis.signals import SOURCES, engines, families, read

VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:num_requests_running{engine="1",model_name="m"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 4.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.7
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 90.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 5.0
vllm:request_success_total{engine="0",finished_reason="error",model_name="m"} 3.0
vllm:request_success_total{engine="1",finished_reason="repetition",model_name="m"} 2.0
vllm:request_success_created{engine="1",finished_reason="repetition",model_name="m"} 1.7e9
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="m"} 10.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="1.0",model_name="m"} 15.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 16.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 16.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 9.5
vllm:time_to_first_token_seconds_bucket{engine="1",le="0.5",model_name="m"} 1.0
vllm:time_to_first_token_seconds_bucket{engine="1",le="1.0",model_name="m"} 1.0
vllm:time_to_first_token_seconds_bucket{engine="1",le="+Inf",model_name="m"} 4.0
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 70.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 100.0
vllm:num_preemptions_total{engine="0",model_name="m"} 1.0
vllm:generation_tokens_total{engine="0",model_name="m"} 4000.0
"""
SGLANG = """\
sglang:num_running_reqs{engine_type="unified",model_name="m",tp_rank="0"} 7.0
sglang:num_running_reqs{engine_type="unified",model_name="m",tp_rank="1"} 7.0
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 1.0
sglang:token_usage{model_name="m",tp_rank="0"} 0.4
sglang:num_requests_total{model_name="m"} 50.0
sglang:num_aborted_requests_total{model_name="m"} 2.0
sglang:e2e_request_latency_seconds_bucket{le="2",model_name="m"} 40.0
sglang:e2e_request_latency_seconds_bucket{le="+Inf",model_name="m"} 50.0
"""
DYNAMO = """\
dynamo_frontend_inflight_requests{model="m"} 1
dynamo_frontend_requests_total{model="m",status="success",error_type=""} 90
dynamo_frontend_requests_total{model="m",status="error",error_type="internal"} 4
dynamo_frontend_requests_total{model="m",status="error",error_type="validation"} 6
"""


@pytest.mark.parametrize(
    ("text", "signal", "expected"),
    [
        (VLLM, Signal.TIME_TO_FIRST_TOKEN, Histogram((0.5, 1.0), (11, 5, 4))),
        (VLLM, Signal.ERROR_RATE, Counts(3, 100)),
        (VLLM, Signal.DEGENERATE, Counts(2, 100)),
        (VLLM, Signal.PREFIX_CACHE_HITS, Counts(70, 100)),
        (VLLM, Signal.PREEMPTIONS, Counts(1, 100)),
        (VLLM, Signal.RUNNING_REQUESTS, Level(5, running=5, completed=100)),
        (VLLM, Signal.QUEUE_LENGTH, Level(4, running=5, completed=100)),
        (VLLM, Signal.KV_CACHE_USAGE, Level(0.6, running=5, completed=100)),
        (VLLM, Signal.STALLED, Work(5, 4000)),
        (VLLM, Signal.INTER_TOKEN_LATENCY, Nothing()),
        (SGLANG, Signal.RUNNING_REQUESTS, Level(7, running=7, completed=50)),
        (SGLANG, Signal.QUEUE_LENGTH, Level(1, running=7, completed=50)),
        (SGLANG, Signal.ERROR_RATE, Counts(2, 50)),
        (SGLANG, Signal.REQUEST_LATENCY, Histogram((2.0,), (40, 10))),
        (SGLANG, Signal.TIME_TO_FIRST_TOKEN, Nothing()),
        (DYNAMO, Signal.ERROR_RATE, Counts(4, 100)),
        (DYNAMO, Signal.RUNNING_REQUESTS, Level(1, running=1, completed=100)),
        ("tgi_queue_size 2\ntgi_request_count 9\n", Signal.QUEUE_LENGTH, Level(2, completed=9)),
        ("vllm:num_requests_waiting 2\nvllm:num_requests_running NaN\n", Signal.QUEUE_LENGTH, Level(2)),
        # Answers of a server that is another one, or whose names have changed.
        ("", Signal.ERROR_RATE, None),
        ("go_goroutines 8\n", Signal.TIME_TO_FIRST_TOKEN, None),
        ("tgi_queue_size 1\n", Signal.RUNNING_REQUESTS, None),
    ],
)
def test_what_is_read(text: str, signal: Signal, expected: Read | None) -> None:
    found = read(signal, parse(text, families(signal)))
    if expected is None:
        assert isinstance(found, Trouble) and "is exposed" in found.why
    elif isinstance(expected, Level):
        assert isinstance(found, Level)
        assert replace(found, value=0) == replace(expected, value=0)
        assert found.value == pytest.approx(expected.value)
    else:
        assert found == expected


def test_the_names_of_before_are_known() -> None:
    text = (
        'vllm:time_per_output_token_seconds_bucket{le="1"} 3\nvllm:time_per_output_token_seconds_bucket{le="+Inf"} 4\n'
    )
    asked = Signal.INTER_TOKEN_LATENCY
    assert read(asked, parse(text, families(asked))) == Histogram((1.0,), (3, 1))


def test_an_engine_that_is_named_is_the_only_one_asked() -> None:
    asked = Signal.RUNNING_REQUESTS
    text = VLLM + SGLANG
    assert read(asked, parse(text, families(asked)), Engine.SGLANG) == Level(7, running=7, completed=50)
    assert read(asked, parse(VLLM, families(asked)), Engine.SGLANG) == Trouble(
        "none of sglang:num_running_reqs is exposed"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('vllm:e2e_request_latency_seconds_bucket{le="1"} 3\n', "le=+Inf"),
        ('vllm:e2e_request_latency_seconds_bucket{le="+Inf"} 3\n', "le=+Inf"),
        ('vllm:e2e_request_latency_seconds_bucket{model="m"} 3\n', "no edge"),
        (
            'vllm:e2e_request_latency_seconds_bucket{le="1"} NaN\n'
            'vllm:e2e_request_latency_seconds_bucket{le="+Inf"} 3\n',
            "not a number",
        ),
        ("# TYPE vllm:e2e_request_latency_seconds gauge\nvllm:e2e_request_latency_seconds 3\n", "is a gauge"),
        (
            'vllm:e2e_request_latency_seconds_bucket{engine="0",le="1"} 3\n'
            'vllm:e2e_request_latency_seconds_bucket{engine="0",le="+Inf"} 3\n'
            'vllm:e2e_request_latency_seconds_bucket{engine="1",le="2"} 3\n'
            'vllm:e2e_request_latency_seconds_bucket{engine="1",le="+Inf"} 3\n',
            "different buckets",
        ),
    ],
)
def test_what_cannot_be_judged_says_why(text: str, why: str) -> None:
    found = read(Signal.REQUEST_LATENCY, parse(text, families(Signal.REQUEST_LATENCY)))
    assert isinstance(found, Trouble) and why in found.why


def test_a_counter_that_is_no_number_is_none() -> None:
    text = 'vllm:request_success_total{finished_reason="stop"} NaN\n'
    found = read(Signal.ERROR_RATE, parse(text, families(Signal.ERROR_RATE)))
    assert found == Trouble("a counter is not a number")


def test_buckets_that_were_read_at_different_moments_count_nothing_twice() -> None:
    text = 'vllm:e2e_request_latency_seconds_bucket{le="1"} 5\nvllm:e2e_request_latency_seconds_bucket{le="+Inf"} 4\n'
    found = read(Signal.REQUEST_LATENCY, parse(text, families(Signal.REQUEST_LATENCY)))
    assert found == Histogram((1.0,), (5, 0))


@pytest.mark.parametrize(
    "text", ["vllm:num_requests_running{ 3\n", "vllm:num_requests_running x\n", 'vllm:num_requests_running{a="b" 1\n']
)
def test_a_broken_line_is_no_exposition(text: str) -> None:
    with pytest.raises(NotAnExposition, match="not Prometheus' text format"):
        parse(text, families(Signal.RUNNING_REQUESTS))


#: Lines as other servers write them: blanks, escapes, braces in a label, a time, an exemplar of OpenMetrics.
ODD = r"""
vllm:num_requests_running{} 1
vllm:num_requests_running 2 1700000000000
vllm:num_requests_running { engine = "0" , model_name = "m", } 3
vllm:num_requests_running{model_name="a{b},le=",engine="1"} 4e0
vllm:num_requests_running{engine="2"}5
vllm:num_requests_running_max{engine="2"} 6
"""


@pytest.mark.parametrize("text", [VLLM, SGLANG, DYNAMO, ODD])
def test_samples_are_those_that_prometheus_reads(text: str) -> None:
    everything = frozenset().union(*(families(signal) for signal in Signal))
    names = everything | {f"{name}_bucket" for name in everything}
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    known = {name: [(each.labels, each.value) for each in samples if each.name == name] for name in names}
    found = parse(text, everything).samples
    assert {name: [(each.labels, each.value) for each in of] for name, of in found.items()} == {
        name: of for name, of in known.items() if of
    }


def test_exemplars_and_line_ends_of_others_do_not_matter() -> None:
    text = 'vllm:num_requests_running{a="b"} 3 1700.5 # {trace_id="x"} 0.67 1700.5\r\n'
    assert read(Signal.RUNNING_REQUESTS, parse(text, families(Signal.RUNNING_REQUESTS))) == Level(3, running=3)


EDGE = 'vllm:e2e_request_latency_seconds_bucket{{engine="0",le="{}",model_name="m"}} 3\n'
LABELS = "vllm:e2e_request_latency_seconds{{{}}} 1\n"
OTHER_LINE = "vllm:e2e_request_latency_second_other 3\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\n" * (4 * 2**20), f"more than {MOST_LINES:,} lines"),
        ("vllm:num_requests_running 1\n" * (MOST_WANTED + 1), f"more than {MOST_WANTED:,} lines"),
        (f"vllm:num_requests_running {'1' * MOST_CHARACTERS}\n", f"{MOST_CHARACTERS // 1024} KiB"),
    ],
)
def test_an_answer_with_more_than_any_server_tells_is_not_read(text: str, why: str) -> None:
    with pytest.raises(NotAnExposition, match=why):
        parse(text, families(Signal.RUNNING_REQUESTS))


def test_a_histogram_with_thousands_of_edges_is_not_judged() -> None:
    text = "".join(map(EDGE.format, range(MOST_EDGES + 1)))
    found = read(Signal.REQUEST_LATENCY, parse(text, families(Signal.REQUEST_LATENCY)))
    assert found == Trouble(f"its histogram has more than {MOST_EDGES} edges")


@pytest.mark.parametrize(
    "text",
    [
        OTHER_LINE * (MOST_LINES - MOST_WANTED) + "".join(map(EDGE.format, range(MOST_WANTED))),
        OTHER_LINE * MOST_LINES,
        LABELS.format('a="",' * (MOST_CHARACTERS // 6)),
        LABELS.format('a="",' * (4 * 2**20 // 5)),
        EDGE.format(1) * (4 * 2**20 // len(EDGE)),
    ],
    ids=["as-much-as-is-read", "other-lines", "labels", "one-line", "as-much-as-is-sent"],
)
def test_no_answer_takes_long_to_look_at(text: str) -> None:
    """Some 50 ms at most, of a processor that does nothing else; a whole answer of 4 MiB took 900 ms."""
    asked = frozenset().union(*(families(signal) for signal in Signal))
    began = thread_time()
    try:
        read(Signal.REQUEST_LATENCY, parse(text, asked))
    except NotAnExposition as error:
        assert "more than" in str(error)
    assert thread_time() - began < 0.6


def test_what_is_not_asked_for_is_not_read() -> None:
    found = parse("<html>\n" + VLLM + "broken{ line\n", families(Signal.QUEUE_LENGTH, Engine.VLLM))
    assert found.samples.keys() == {
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "vllm:request_success_total",
    }


def test_each_signal_has_words_a_measure_and_an_engine() -> None:
    assert MEASURES.keys() == set(Signal)
    assert SOURCES.keys() == {*Engine, *Router}
    for signal in Signal:
        assert engines(signal)
        assert words(signal)
        for engine in engines(signal):
            assert families(signal, engine)


PICKER = """
llm_d_epp_ready_endpoints{name="pool"} 3
llm_d_epp_request_total{model_name="m",fairness_id="a",priority="0"} 60
llm_d_epp_request_total{model_name="m",fairness_id="b",priority="0"} 30
inference_objective_request_total{model_name="m"} 90
llm_d_epp_request_error_total{model_name="m",fairness_id="a",priority="0",error_code="ModelServerError"} 3
llm_d_epp_request_error_total{model_name="m",fairness_id="a",priority="0",error_code="ServiceUnavailable"} 10
llm_d_epp_request_error_total{model_name="m",fairness_id="a",priority="0",error_code="BadRequest"} 50
llm_d_epp_request_error_total{model_name="m",fairness_id="a",priority="0",error_code="Unknown"} 50
inference_objective_request_error_total{model_name="m",error_code="ModelServerError"} 3
inference_objective_request_error_total{model_name="m",error_code="InferencePoolResourceExhausted"} 10
llm_d_epp_request_running{model_name="m",fairness_id="a"} 4
llm_d_epp_request_ttft_seconds_bucket{model_name="m",streaming="true",le="1"} 50
llm_d_epp_request_ttft_seconds_bucket{model_name="m",streaming="true",le="+Inf"} 55
llm_d_epp_request_ttft_seconds_bucket{model_name="m",streaming="false",le="1"} 10
llm_d_epp_request_ttft_seconds_bucket{model_name="m",streaming="false",le="+Inf"} 35
"""


@pytest.mark.parametrize(
    ("signal", "told"),
    [
        # Neither what clients got wrong, nor what servers answered; each is counted once.
        (Signal.ERROR_RATE, Counts(10, 100)),
        (Signal.TIME_TO_FIRST_TOKEN, Histogram((1.0,), (50, 5))),
        (Signal.INTER_TOKEN_LATENCY, Nothing()),
    ],
)
def test_what_a_picker_says(signal: Signal, told: Read) -> None:
    asked = parse(PICKER, families(signal, Router.ENDPOINT_PICKER))
    assert read(signal, asked, Router.ENDPOINT_PICKER) == told


def test_pickers_of_the_inference_extension_have_other_names() -> None:
    old = "\n".join(line for line in PICKER.splitlines() if "llm_d" not in line)
    asked = parse(old, families(Signal.ERROR_RATE, Router.ENDPOINT_PICKER))
    assert read(Signal.ERROR_RATE, asked, Router.ENDPOINT_PICKER) == Counts(10, 100)
