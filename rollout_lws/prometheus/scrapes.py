"""A Prometheus server, and what is asked of it: the series of pods, whose samples are read as pods would be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rollout_lws.analysis.ledger import Key, Server
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


#: Labels that tell servers of one name apart where several Prometheus' samples are together.
_OUTER = ("cluster", "prometheus", "prometheus_replica", "replica", "receive")
#: What was scraped of each pod, by its name, the server's address, and the epoch second.
Scrapes: TypeAlias = Mapping[str, Mapping[str, Mapping[float, Exposition | Trouble]]]


@dataclass(frozen=True, slots=True)
class ScrapedPod:
    """A pod by uid and name; samples from before ``since`` (epoch seconds) are of another one of that name."""

    uid: str
    name: str
    since: float


def _seen_of(pod: ScrapedPod, seen: Mapping[Key, float]) -> set[str]:
    """Servers of the pod that were read before: one that is gone is missed."""
    return {key.address for key in seen if isinstance(key, Server) and key.pod == pod.uid}


def samples_query(
    prometheus: Prometheus, namespace: str, names: Collection[str], pods: Iterable[ScrapedPod], seconds: int
) -> str:
    """Every sample of the last ``seconds`` of families, or of their buckets, of these pods."""
    lines = sorted({line for name in names for line in (name, f"{name}_bucket")})
    either = {"__name__": lines, prometheus.pod_label: sorted({pod.name for pod in pods})}
    return f"{selector((('namespace', namespace), *prometheus.matchers), either)}[{seconds}s]"


def scrapes(prometheus: Prometheus, found: Iterable[Series], addresses: Mapping[str, str]) -> Scrapes:
    """What was scraped, put together again: the samples of one scrape have one time.

    ``addresses`` are those of pods by name: where the address of a server is known to be the pod's, others of its name
    are another cluster's. Of a server that two jobs scrape it is what the one with more samples did.
    """
    jobs: dict[tuple[str, str], dict[str, list[Series]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        pod, job, instance = (each.labels.get(label, "") for label in (prometheus.pod_label, "job", "instance"))
        jobs[pod, instance][job].append(each)
    pods: dict[str, dict[str, Mapping[float, Exposition | Trouble]]] = defaultdict(dict)
    for (pod, instance), of in sorted(jobs.items()):
        most = max(
            of.values(), key=lambda series: (len({time for each in series for time, _ in each.points}), len(series))
        )
        pods[pod][instance] = _scraped(most)
    return {pod: _own(instances, addresses.get(pod, "")) for pod, instances in pods.items()}


def _own(
    instances: Mapping[str, Mapping[float, Exposition | Trouble]], address: str
) -> Mapping[str, Mapping[float, Exposition | Trouble]]:
    own = {instance: of for instance, of in instances.items() if address and _host(instance) == address}
    return own or instances


def _host(instance: str) -> str:
    host, colon, port = instance.rpartition(":")
    return (host if colon and port.isdigit() else instance).strip("[]")


def _scraped(series: Sequence[Series]) -> dict[float, Exposition | Trouble]:
    """By time. A scrape that lacks a series which was there before, and is there again or may be, is not all there: it
    counts once it is.
    """
    if len({tuple(each.labels.get(label) for label in _OUTER) for each in series}) > 1:
        trouble = Trouble("Prometheus has samples of several servers of its name: set the analysis' matchers")
        return {time: trouble for each in series for time, _ in each.points}
    lines: dict[float, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    native: dict[float, set[str]] = defaultdict(set)
    for each in series:
        name = each.labels.get("__name__", "")
        labels = {label: text for label, text in each.labels.items() if label != "__name__"}
        for time, value in each.points:
            if each.native:
                native[time].add(name)
                lines[time][name] += []
            else:
                lines[time][name].append(Sample(labels, value))
    incomplete = _incomplete(series, sorted(lines))
    return {
        time: Exposition(
            {name: tuple(samples) for name, samples in of.items() if samples},
            {name: "native histogram" for name in native[time] if f"{name}_bucket" not in of},
        )
        for time, of in lines.items()
        if time not in incomplete
    }


def _incomplete(series: Sequence[Series], times: Sequence[float]) -> set[float]:
    missing: set[float] = set()
    for each in series:
        there = {time for time, _ in each.points}
        first, last = min(there), max(there)
        later = [time for time in times if time > last]
        missing |= {time for time in times if first < time < last and time not in there}
        if len(later) == 1:
            missing.add(later[0])
    return missing


def reads_at(
    tick: float,
    pods: Iterable[ScrapedPod],
    known: Scrapes,
    seen: Mapping[Key, float],
    read: Callable[[Exposition], Read],
) -> tuple[dict[Key, Read], dict[Key, float]]:
    """What was last scraped of each pod that there was at ``tick``, and when that was. ``seen`` is when what was read
    before had been scraped: what is not newer is the same. A pod with several servers counts as several.
    """
    reads: dict[Key, Read] = {}
    times: dict[Key, float] = {}
    for pod in pods:
        if pod.since > tick:
            continue
        found_now = known.get(pod.name, {})
        for instance in sorted({*found_now, *_seen_of(pod, seen)}) or [""]:
            found = found_now.get(instance, {})
            key: Key = Server(pod.uid, instance) if instance else pod.uid
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
