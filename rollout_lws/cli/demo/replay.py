"""What happened to groups in a demo, change by change, as the API server told it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rollout_lws.cli.demo import checks
from rollout_lws.cli.demo.checks import Listing, Object
from rollout_lws.objects.resources import LWS_GROUP_INDEX, LWS_NAME, LWS_WORKER_INDEX, PODS
from rollout_lws.sandbox.store import Event


def moments(before: Listing, events: Iterable[Event]) -> Iterator[tuple[Event | None, Mapping[str, Object]]]:
    """The pods by name, first as they were ``before``, then after each event, with it."""
    pods = dict(before["Pod"])
    yield None, pods
    for event in events:
        if event.resource == PODS:
            pods = {name: pod for name, pod in pods.items() if name != event.object["metadata"]["name"]}
            if event.type != "DELETED":
                pods[event.object["metadata"]["name"]] = event.object
        yield event, pods


def loads(before: Listing, events: Iterable[Event]) -> Counter[str]:
    """How many groups of each LeaderWorkerSet were made."""
    known = {pod["metadata"]["uid"] for pod in before["Pod"].values()}
    made = {
        event.object["metadata"]["uid"]: checks.label(event.object, LWS_NAME)
        for event in events
        if event.resource == PODS and event.type != "DELETED" and checks.label(event.object, LWS_WORKER_INDEX) == "0"
    }
    return Counter(name for uid, name in made.items() if uid not in known)


def group_sizes(listing: Listing) -> dict[str, int]:
    """Pods of a group, by LeaderWorkerSet."""
    every = listing["LeaderWorkerSet"].items()
    return {name: int(lws["spec"]["leaderWorkerTemplate"].get("size", 1)) for name, lws in every}


def counted(pods: Mapping[str, Object], sizes: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """How many groups there are of each LeaderWorkerSet in ``sizes``, and how many of them are ready."""
    found: dict[str, dict[str, list[Object]]] = {name: {} for name in sizes}
    for pod in pods.values():
        if checks.label(pod, LWS_NAME) in found:
            members = found[checks.label(pod, LWS_NAME)]
            members.setdefault(checks.label(pod, LWS_GROUP_INDEX), []).append(pod)
    return {name: (len(groups), _ready(groups.values(), sizes[name])) for name, groups in found.items()}


def _ready(groups: Iterable[list[Object]], size: int) -> int:
    return sum(len(each) == size and all(map(checks.is_ready, each)) for each in groups)
