"""A Prometheus server, and what is asked of it: the series of pods, whose samples are read as pods would be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rollout_lws.analysis.readings import Exposition, Read, Same, Sample, Trouble
from rollout_lws.prometheus.promql import selector

#: Seconds after which a pod whose samples do not come is one that cannot be read. Scrapes are a minute apart at most.
STALE = 150.0


@dataclass(frozen=True, slots=True)
class Prometheus:
    """``address`` is a URL, "" for the controller's own. ``secret`` and ``key`` name what is sent as a bearer token, ""
    for nothing. ``matchers`` are equal labels that each query asks for; ``pod_label`` names pods.
    """

    address: str = ""
    secret: str = ""
    key: str = ""
    matchers: tuple[tuple[str, str], ...] = ()
    pod_label: str = "pod"


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of a series: epoch seconds and values, in order of time. ``native`` tells that it is a native histogram,
    whose samples are not read.
    """

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]
    native: bool = False


#: What was scraped of each pod, by its name, the server's address, and the epoch second.
Scrapes: TypeAlias = Mapping[str, Mapping[str, Mapping[float, Exposition | Trouble]]]


@dataclass(frozen=True, slots=True)
class ScrapedPod:
    """A pod by uid and name; samples from before ``since`` (epoch seconds) are of another one of that name."""

    uid: str
    name: str
    since: float


def samples_query(
    prometheus: Prometheus, namespace: str, names: Collection[str], pods: Iterable[ScrapedPod], seconds: int
) -> str:
    """Every sample of the last ``seconds`` of families, or of their buckets, of these pods."""
    lines = sorted({line for name in names for line in (name, f"{name}_bucket")})
    either = {"__name__": lines, prometheus.pod_label: sorted({pod.name for pod in pods})}
    return f"{selector((('namespace', namespace), *prometheus.matchers), either)}[{seconds}s]"


def scrapes(prometheus: Prometheus, found: Iterable[Series]) -> Scrapes:
    """What was scraped, put together again: the samples of one scrape have one time. Of a server that two jobs scrape
    it is what the first of them did.
    """
    jobs: dict[tuple[str, str], dict[str, list[Series]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        pod, job, instance = (each.labels.get(label, "") for label in (prometheus.pod_label, "job", "instance"))
        jobs[pod, instance][job].append(each)
    pods: dict[str, dict[str, dict[float, Exposition | Trouble]]] = defaultdict(dict)
    for (pod, instance), of in sorted(jobs.items()):
        pods[pod][instance] = _scraped(of[min(of)])
    return pods


def _scraped(series: Sequence[Series]) -> dict[float, Exposition | Trouble]:
    lines: dict[float, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    native = set()
    for each in series:
        name = each.labels.get("__name__", "")
        labels = {label: text for label, text in each.labels.items() if label != "__name__"}
        for time, value in each.points:
            lines[time][name].append(Sample(labels, value))
            if each.native:
                native.add(time)
    trouble = Trouble("Prometheus stores native histograms, without the server's buckets")
    return {
        time: trouble if time in native else Exposition({name: tuple(found) for name, found in of.items()}, {})
        for time, of in lines.items()
    }


def reads_at(
    tick: float,
    pods: Iterable[ScrapedPod],
    known: Scrapes,
    seen: Mapping[str, float],
    read: Callable[[Exposition], Read],
) -> tuple[dict[str, Read], dict[str, float]]:
    """What was last scraped of each pod that there was at ``tick``, and when that was. ``seen`` is when what was read
    before had been scraped: what is not newer is the same. A pod with several servers counts as several.
    """
    reads: dict[str, Read] = {}
    times: dict[str, float] = {}
    for pod in pods:
        if pod.since > tick:
            continue
        instances = known.get(pod.name) or {"": {}}
        for instance, found in instances.items():
            key = pod.uid if len(instances) < 2 else f"{pod.uid} {instance}"
            earlier = max(seen.get(key, 0.0), pod.since)
            at = max((time for time in found if earlier < time <= tick), default=None)
            if at is not None:
                scraped = found[at]
                reads[key], times[key] = scraped if isinstance(scraped, Trouble) else read(scraped), at
            elif tick - earlier > STALE:
                reads[key] = Trouble("Prometheus has no samples of it: is it scraped?")
            else:
                reads[key] = Same()
    return reads, times
