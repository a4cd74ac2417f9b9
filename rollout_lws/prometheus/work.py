"""Whether pods are idle, by what a Prometheus has scraped of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from statistics import median

from rollout_lws.analysis.idling import IN_A_ROW, Heard, Idle, Told, Worked
from rollout_lws.analysis.readings import Exposition, Same, Trouble
from rollout_lws.prometheus.scrapes import ScrapedPod

#: Seconds between two answers that count as two: a request may be on its way between an engine's figures.
APART = 5.0
#: Seconds between scrapes where there is but one to tell by; a minute is what others may be apart at most.
_INTERVAL = 60.0
_STALE = Trouble("Prometheus has no samples of it from just now: is it scraped?")


def work_of(
    pod: ScrapedPod,
    found: Mapping[str, Mapping[float, Exposition | Trouble]],
    now: float,
    idle: Idle,
    before: Heard | None = None,
) -> Told:
    """What samples of a pod up to ``now`` say, those of each of its servers, also of those that were there ``before``:
    it works as long as one does.
    """
    before = before or Heard(now)
    every = sorted({*found, *before.servers})
    told = [_of_server(found.get(server, {}), pod.since, now, idle, before.at) for server in every]
    worked = [each for each in told if isinstance(each, Worked)]
    if worked and len(worked) == len(told):
        return Worked(min(each.idle for each in worked), frozenset(every))
    return next((each for each in told if isinstance(each, Trouble)), Same() if told else _STALE)


def _of_server(
    scraped: Mapping[float, Exposition | Trouble], since: float, now: float, idle: Idle, heard_at: float
) -> Told:
    """Only a sample that is younger than the interval of its scrapes says what runs now. One that is late may be on its
    way, if not for longer than another interval, and if not each time.
    """
    times = sorted(scraped)
    if not times:
        return _STALE
    gaps = [later - earlier for earlier, later in pairwise(times)]
    interval = median(gaps) if gaps else _INTERVAL
    age = now - times[-1]
    if age > interval:
        return _STALE if max(age, now - heard_at) > 2 * interval else Same()
    reads = [(at, _requests(scraped[at], idle)) for at in times if at >= since]
    if not reads:
        # Scraped before routers had their grace period.
        return Same()
    _, last = reads[-1]
    return last if isinstance(last, Trouble) else Worked(_idle_in_a_row(reads))


def _requests(scraped: Exposition | Trouble, idle: Idle) -> float | Trouble:
    return scraped if isinstance(scraped, Trouble) else idle.read(scraped)


def _idle_in_a_row(reads: list[tuple[float, float | Trouble]]) -> int:
    """How many of the last answers, ``APART`` from each other, had no request; more than are asked for do not count."""
    counted: list[float] = []
    for at, requests in reversed(reads):
        if isinstance(requests, Trouble):
            continue
        if requests:
            break
        if not counted or counted[-1] - at >= APART:
            counted.append(at)
    return min(len(counted), IN_A_ROW)
