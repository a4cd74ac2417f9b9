"""Checks of a demo's end state, by the API server's objects instead of the controller's claims. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rollout_lws.objects.resources import LWS_NAME, LWS_WORKER_INDEX

Object = dict[str, Any]
#: The partition that keeps an LWS from rolling out a template change by itself.
HOLD = 1_000_000


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of one namespace that a release touches, as the API server lists them."""

    rollout: Object
    workloads: tuple[Object, ...]
    stateful_sets: tuple[Object, ...]
    pods: tuple[Object, ...]
    services: tuple[Object, ...]
    batch_releases: tuple[Object, ...]
    routes: tuple[Object, ...]
    ingresses: tuple[Object, ...] = ()
    pools: tuple[Object, ...] = ()

    def leaders(self, workload: str) -> dict[str, Object]:
        """Leader pods of an LWS, by name."""
        return {
            name_of(pod): pod
            for pod in self.pods
            if label(pod, LWS_NAME) == workload and label(pod, LWS_WORKER_INDEX) == "0"
        }


@dataclass(slots=True)
class Record:
    """Changes of the stable LWS during the demo, by resourceVersion, which orders all changes of a cluster."""

    opened: int | None = None
    """When its hold was first lifted; None if it never was."""
    promoted: int | None = None
    """When its promotion began, by the Rollout's status; None if it did not."""
    lost_leaders: dict[str, int] = field(default_factory=dict)
    """Leader pods that existed at the start, by name, with the time of their end."""
    others: set[str] = field(default_factory=set)
    """All other LWSs that ever existed."""


@dataclass(frozen=True, slots=True)
class Check:
    passed: bool
    claim: str
    detail: str


def name_of(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def label(obj: Object, key: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(key, ""))


def after_promotion(
    before: Listing,
    after: Listing,
    record: Record,
    workload: str,
    template: Object,
    group: str,
    in_steps: int | None = None,
) -> list[Check]:
    """Checks after a promotion: all groups are new, no objects are left over, and stable was untouched before it.

    ``in_steps``, for versions that share one LWS: the number of groups that the steps update, which lifts its hold too.
    """
    lws = _workload(after, workload)
    replicas = int(lws["spec"].get("replicas", 1))
    old = {str(pod["metadata"]["uid"]) for pod in before.leaders(workload).values()}
    leaders = after.leaders(workload)
    renewed = [name for name, pod in leaders.items() if pod["metadata"]["uid"] not in old]
    return [
        Check(
            len(renewed) == len(leaders) == replicas,
            "all groups are new",
            f"{len(renewed)} of {replicas} leaders were replaced",
        ),
        _ready(after, workload, replicas),
        _images(after, workload, template),
        *_before_promotion(record, in_steps, replicas),
        _phase(after, "Healthy"),
        *_at_rest(before, after, workload, group),
    ]


def _before_promotion(record: Record, in_steps: int | None, replicas: int) -> list[Check]:
    begun = record.opened if in_steps is None else record.promoted
    early = sorted(name for name, when in record.lost_leaders.items() if begun is None or when < begun)
    if in_steps:
        said = f"{len(early)} of {replicas} leaders were replaced"
        if len(early) != in_steps:
            said += f", and the steps ask for {in_steps}"
        touched = Check(
            len(early) == in_steps, "before the promotion as many groups were renewed as the steps say", said
        )
    else:
        said = "nothing restarted" if not early else ", ".join(early)
        touched = Check(not early, "stable was not touched before its promotion", said)
    return [touched] if in_steps is None else [touched, _never_second(record)]


def _never_second(record: Record) -> Check:
    said = ", ".join(sorted(record.others)) or "none was made"
    return Check(not record.others, "no second LeaderWorkerSet ever existed", said)


def after_abort(
    before: Listing,
    after: Listing,
    record: Record,
    workload: str,
    template: Object,
    group: str,
    in_steps: int | None = None,
) -> list[Check]:
    """Checks after an abort: the original pods still run, except, when the versions share one LWS, for the up to
    ``in_steps`` groups that the step had updated.
    """
    replicas = int(_workload(after, workload)["spec"].get("replicas", 1))
    uids = {name_of(pod): pod["metadata"]["uid"] for pod in before.pods}
    now = {name_of(pod): pod["metadata"]["uid"] for pod in after.pods}
    lost = sorted(name for name, uid in uids.items() if now.get(name) != uid)
    if in_steps:
        count = len(record.lost_leaders)
        said = f"{count} of {replicas} leaders were replaced"
        kept = Check(count <= in_steps, "only groups that the step had renewed were made again", said)
    else:
        said = f"{len(uids)} pods, same UIDs" if not lost else ", ".join(lost)
        kept = Check(not lost, "every pod from before still runs", said)
    if in_steps is None:
        said = "partition stayed" if record.opened is None else "it was"
        way = Check(record.opened is None, "the hold was never lifted", said)
    else:
        way = _never_second(record)
    return [
        kept,
        _ready(after, workload, replicas),
        _images(after, workload, template),
        way,
        _phase(after, "Aborted"),
        *_at_rest(before, after, workload, group),
    ]


def _ready(after: Listing, workload: str, replicas: int) -> Check:
    pods = [pod for pod in after.pods if label(pod, LWS_NAME) == workload]
    ready = sum(is_ready(pod) for pod in pods)
    size = int((_workload(after, workload)["spec"].get("leaderWorkerTemplate") or {}).get("size", 1))
    return Check(ready == len(pods) == replicas * size, "all groups are ready", f"{ready} of {replicas * size} pods")


def is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def _images(after: Listing, workload: str, template: Object) -> Check:
    """Each pod runs its role's images in ``template`` (leaders without a template of their own: the worker's)."""
    workers = _template_images(template.get("workerTemplate"))
    leaders = _template_images(template.get("leaderTemplate") or template.get("workerTemplate"))
    wrong = [
        name_of(pod)
        for pod in after.pods
        if label(pod, LWS_NAME) == workload
        and not _pod_images(pod) >= (leaders if label(pod, LWS_WORKER_INDEX) == "0" else workers)
    ]
    shown = ", ".join(sorted(leaders | workers))
    return Check(
        not wrong, "every pod runs the right version", shown if not wrong else f"not {', '.join(sorted(wrong))}"
    )


def _template_images(template: Object | None) -> set[str]:
    return {each["image"] for each in ((template or {}).get("spec") or {}).get("containers") or ()}


def _pod_images(pod: Object) -> set[str]:
    return {each["image"] for each in pod["spec"].get("containers") or ()}


def _phase(after: Listing, phase: str) -> Check:
    found = str((after.rollout.get("status") or {}).get("phase"))
    return Check(found == phase, f"the Rollout says {phase}", f"phase {found}")


def _at_rest(before: Listing, after: Listing, workload: str, group: str) -> list[Check]:
    lws = _workload(after, workload)
    rolling = (lws["spec"].get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    marked = f"{group}/original" in (lws["metadata"].get("annotations") or {})
    held = rolling.get("partition") == HOLD and marked
    others = sorted(name_of(each) for each in after.workloads if name_of(each) != workload)
    allowed = {(kind, name_of(each)) for kind, each in _objects(before)}
    extra = sorted(f"{kind} {name_of(each)}" for kind, each in _objects(after) if (kind, name_of(each)) not in allowed)
    return [
        Check(not others, "one LeaderWorkerSet", workload if not others else f"also {', '.join(others)}"),
        Check(
            held,
            "the hold is in place",
            f"partition {rolling.get('partition')}" + ("" if marked else ", not marked as ours"),
        ),
        Check(
            not extra,
            "nothing is left over",
            "no other StatefulSet, pod, Service, Ingress, BatchRelease" if not extra else ", ".join(extra),
        ),
    ]


def _objects(listing: Listing) -> Iterable[tuple[str, Object]]:
    kinds: Mapping[str, tuple[Object, ...]] = {
        "StatefulSet": listing.stateful_sets,
        "Pod": listing.pods,
        "Service": listing.services,
        "Ingress": listing.ingresses,
        "BatchRelease": listing.batch_releases,
    }
    for kind, objects in kinds.items():
        for each in objects:
            yield kind, each


def _workload(listing: Listing, name: str) -> Object:
    return next((each for each in listing.workloads if name_of(each) == name), {"metadata": {"name": name}, "spec": {}})
