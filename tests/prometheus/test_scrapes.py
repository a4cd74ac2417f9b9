"""Samples of Prometheus become what pods said: by scrape, of the right pod, and never older than it."""

from __future__ import annotations

import promql_parser
import pytest

from rollout_lws.analysis.kinds import Signal
from rollout_lws.analysis.ledger import Key, Server
from rollout_lws.analysis.readings import Exposition, Histogram, Level, Nothing, Read, Same, Trouble
from rollout_lws.analysis.signals import SOURCES, families, read
from rollout_lws.prometheus.scrapes import STALE, Prometheus, ScrapedPod, Series, reads_at, samples_query, scrapes

SERVER = Prometheus(matchers=(("cluster", "eu"),))
UID = Server("uid", "i")
WAITING, RUNNING = "vllm:num_requests_waiting", "vllm:num_requests_running"


def series(pod: str, *points: tuple[float, float], name: str = WAITING, native: bool = False, **labels: str) -> Series:
    return Series({"__name__": name, "pod": pod, "job": "j", "instance": "i", **labels}, points, native)


def queue(answer: Exposition) -> Read:
    return read(Signal.QUEUE_LENGTH, answer)


def reads(
    tick: float, *found: Series, since: float = 0.0, seen: float | None = None
) -> tuple[dict[Key, Read], dict[Key, float]]:
    pods = [ScrapedPod("uid", "p", since)]
    return reads_at(tick, pods, scrapes(SERVER, found, {}), {} if seen is None else {UID: seen}, queue)


def test_the_last_scrape_counts_at_its_own_time() -> None:
    assert reads(30.0, series("p", (10, 1), (25, 7), (40, 9))) == ({UID: Level(7)}, {UID: 25})


@pytest.mark.parametrize(
    ("tick", "since", "seen", "expected"),
    [
        (30.0, 0.0, 25.0, {UID: Same()}),  # nothing newer
        (30.0, 26.0, None, {UID: Same()}),  # another pod's of that name
        (30.0, 31.0, None, {}),  # it was not ready yet
        (26.0 + STALE, 0.0, 25.0, {UID: Trouble("Prometheus has no samples of it: is it scraped?")}),
        (25.0 + STALE, 0.0, 25.0, {UID: Same()}),
    ],
)
def test_what_is_not_new(tick: float, since: float, seen: float | None, expected: dict[str, Read]) -> None:
    assert reads(tick, series("p", (10, 1), (25, 7)), since=since, seen=seen)[0] == expected


def test_a_server_that_counts_nothing_of_the_signal_says_nothing_and_another_one_is_none() -> None:
    assert (
        read(Signal.TIME_TO_FIRST_TOKEN, scrapes(SERVER, [series("p", (10, 1), name=RUNNING)], {})["p"]["i"][10])
        == Nothing()
    )  # type: ignore[arg-type]
    assert isinstance(reads(30.0, series("p", (10, 1), name="up"))[0][UID], Trouble)


def test_what_two_jobs_scrape_counts_once() -> None:
    found = (series("p", (10, 4), job="b"), series("p", (12, 4), job="a"))
    assert reads(30.0, *found) == ({UID: Level(4)}, {UID: 10})


def test_two_servers_of_a_pod_count_for_themselves() -> None:
    """Read in turn one's counters would be taken for what came to the other's."""
    found = (series("p", (10, 4), instance="x:1"), series("p", (12, 6), instance="x:2"))
    assert reads(30.0, *found)[0] == {Server("uid", "x:1"): Level(4), Server("uid", "x:2"): Level(6)}


def test_several_series_of_a_scrape_are_those_of_one_server() -> None:
    found = (series("p", (10, 4), engine="0"), series("p", (10, 6), engine="1"))
    assert reads(30.0, *found)[0] == {UID: Level(10)}


FIRST = "vllm:time_to_first_token_seconds"


def first_token(*found: Series) -> Read:
    known = scrapes(SERVER, found, {})["p"]["i"][10]
    assert isinstance(known, Exposition)
    return read(Signal.TIME_TO_FIRST_TOKEN, known)


def test_native_histograms_are_no_verdict_where_the_servers_buckets_are_not_there() -> None:
    native = series("p", (10, 0), name=FIRST, native=True)
    buckets = [series("p", (10, count), name=f"{FIRST}_bucket", le=edge) for edge, count in (("1", 4), ("+Inf", 5))]
    assert first_token(native) == Trouble(f"{FIRST} is a native histogram, not a histogram")
    assert first_token(native, *buckets) == Histogram((1.0,), (4, 1))


def test_a_server_at_the_pods_own_address_counts_and_no_other_cluster_of_its_name() -> None:
    found = (series("p", (10, 4), instance="10.0.0.7:8000"), series("p", (12, 900), instance="10.9.9.9:8000"))
    assert list(scrapes(SERVER, found, {"p": "10.0.0.7"})["p"]) == ["10.0.0.7:8000"]
    assert len(scrapes(SERVER, found, {"p": "10.0.0.8"})["p"]) == 2
    six = (series("p", (10, 4), instance="[fd00::7]:8000"),)
    assert list(scrapes(SERVER, six, {"p": "fd00::7"})["p"]) == ["[fd00::7]:8000"]


def test_several_clusters_at_one_address_are_no_verdict() -> None:
    (told,) = reads(30.0, series("p", (10, 4), cluster="a"), series("p", (12, 900), cluster="b"))[0].values()
    assert isinstance(told, Trouble) and "set the analysis' matchers" in told.why


def test_a_scrape_that_is_not_all_there_counts_once_it_is() -> None:
    """A series that is missing for once would have its whole count come to it later."""
    stop, error = (series("p", *points, reason=name) for name, points in ONE_IS_MISSING.items())
    known = scrapes(SERVER, [stop, error], {})["p"]["i"]
    assert sorted(known) == [10, 40]
    # And one that stays away has gone.
    gone = scrapes(SERVER, [stop, series("p", (10, 200), reason="error")], {})["p"]["i"]
    assert sorted(gone) == [10, 25, 40, 55]


ONE_IS_MISSING = {"stop": ((10, 5), (25, 9), (40, 12), (55, 20)), "error": ((10, 200), (40, 200))}


def test_a_server_that_is_gone_is_missed() -> None:
    pods = [ScrapedPod("uid", "p", 0.0)]
    known = scrapes(SERVER, [series("p", (200, 4), instance="x:1")], {})
    found, _ = reads_at(210.0, pods, known, {Server("uid", "x:1"): 195.0, Server("uid", "x:2"): 30.0}, queue)
    assert found == {
        Server("uid", "x:1"): Level(4),
        Server("uid", "x:2"): Trouble("Prometheus has no samples of it: is it scraped?"),
    }


@pytest.mark.parametrize("signal", Signal)
def test_every_query_of_a_signal_is_promql(signal: Signal) -> None:
    for engine in (None, *(each for each, of in SOURCES.items() if signal in of)):
        pods = [ScrapedPod("u", "llama-0", 0.0), ScrapedPod("v", "llama-1", 0.0)]
        text = samples_query(SERVER, "team", families(signal, engine), pods, 165)
        found = promql_parser.parse(text)
        assert isinstance(found, promql_parser.MatrixSelector)
        matchers = {each.name: each.value for each in found.vector_selector.matchers.matchers}
        assert (matchers["namespace"], matchers["cluster"], matchers["pod"]) == ("team", "eu", "llama-0|llama-1")
        assert matchers["__name__"].count("|") + 1 == 2 * len(families(signal, engine))
