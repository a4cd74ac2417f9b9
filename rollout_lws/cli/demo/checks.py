"""Checks of a demo's end state, by the API server's objects instead of the controller's claims. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rollout_lws.api import GateResult
from rollout_lws.objects.resources import LWS_NAME, LWS_WORKER_INDEX, PODS, Resource
from rollout_lws.rollout.reasons import Task
from rollout_lws.sandbox.store import Event

Object = dict[str, Any]
#: All objects of one namespace that a release touches, as the API server lists them: by kind, then by name.
Listing = Mapping[str, Mapping[str, Object]]
#: The partition that keeps an LWS from rolling out a template change by itself.
HOLD = 1_000_000


@dataclass(frozen=True, slots=True)
class Expected:
    """What a demo of LWS ``workload`` has to end with."""

    workload: str
    template: Object
    """The leaderWorkerTemplate that all pods have in the end."""
    aborted: bool
    in_steps: int | None
    """Number of the LWS's own groups that the steps update; None for a canary in a second LWS."""
    api_group: str
    by_gate: bool = False
    """Whether a gate that failed is what has aborted it."""


@dataclass(frozen=True, slots=True)
class Check:
    passed: bool
    claim: str
    detail: str


def label(obj: Object, key: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(key, ""))


def leaders(listing: Listing, workload: str) -> dict[str, Object]:
    """Leader pods of an LWS, by name."""
    pods = _pods(listing, workload)
    return {name: pod for name, pod in pods.items() if label(pod, LWS_WORKER_INDEX) == "0"}


def _pods(listing: Listing, workload: str) -> dict[str, Object]:
    return {name: pod for name, pod in listing["Pod"].items() if label(pod, LWS_NAME) == workload}


def is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def all_ready(listing: Listing, workload: str) -> Check:
    spec = listing["LeaderWorkerSet"][workload]["spec"]
    pods = _pods(listing, workload).values()
    wanted = int(spec.get("replicas", 1)) * int(spec["leaderWorkerTemplate"].get("size", 1))
    ready = sum(map(is_ready, pods))
    return Check(ready == len(pods) == wanted, "all groups are ready", f"{ready} of {wanted} pods")


def lost_before_promotion(before: Listing, events: Iterable[Event], workload: str, rollouts: Resource) -> list[str]:
    """The leaders in ``before`` that ended before the Rollout's promotion began, or at all if it never did."""
    lost: set[str] = set()
    uids = {name: pod["metadata"]["uid"] for name, pod in leaders(before, workload).items()}
    for event in events:
        metadata = event.object["metadata"]
        if event.resource == rollouts:
            finalising = (event.object.get("status") or {}).get("finalising") or {}
            if finalising.get("task") == Task.PROMOTE:
                break
        ended = event.type == "DELETED" or metadata.get("deletionTimestamp")
        if event.resource == PODS and ended and metadata["uid"] == uids.get(metadata["name"]):
            lost.add(metadata["name"])
    return sorted(lost)


def end_state(before: Listing, after: Listing, lost: list[str], others: set[str], expected: Expected) -> list[Check]:
    """All checks of a demo; ``lost`` are the leaders of ``lost_before_promotion``, ``others`` the names of all other
    LWSs that ever existed.
    """
    found = [
        *(_kept(before, after, lost, expected) if expected.aborted else updated(before, after, expected)),
        all_ready(after, expected.workload),
        images(after, expected),
    ]
    if not expected.aborted:
        found.append(_early(lost, expected.in_steps or 0, len(leaders(after, expected.workload))))
    if expected.in_steps is not None:
        said = ", ".join(sorted(others)) or "none was made"
        found.append(Check(not others, "no second LeaderWorkerSet ever existed", said))
    phase = "Aborted" if expected.aborted else "Healthy"
    (rollout,) = after["Rollout"].values()
    reached = str((rollout.get("status") or {}).get("phase"))
    if expected.by_gate:
        found.append(_gate_failed(rollout))
    extra = [f"{kind} {name}" for kind, names in after.items() for name in names if name not in before[kind]]
    return [
        *found,
        Check(reached == phase, f"the Rollout says {phase}", f"phase {reached}"),
        held(after["LeaderWorkerSet"][expected.workload], expected.api_group),
        Check(not extra, "nothing is left over", ", ".join(sorted(extra)) or "the same objects as before"),
    ]


def _gate_failed(rollout: Object) -> Check:
    """A gate has failed, and the release says that it was aborted for what the gate has found."""
    status = rollout.get("status") or {}
    failed = next((each for each in status.get("gates") or () if each.get("result") == GateResult.FAILED), None)
    why = str((status.get("aborted") or {}).get("message") or "")
    said = f"gate {failed['name']}: {failed['message']}" if failed else "no gate has failed"
    return Check(failed is not None and said in why, "a gate that failed has aborted the release", why or said)


def updated(before: Listing, after: Listing, expected: Expected) -> list[Check]:
    """All leaders are others than before."""
    old = {pod["metadata"]["uid"] for pod in leaders(before, expected.workload).values()}
    now = [pod["metadata"]["uid"] for pod in leaders(after, expected.workload).values()]
    new = sum(uid not in old for uid in now)
    replicas = int(after["LeaderWorkerSet"][expected.workload]["spec"].get("replicas", 1))
    said = f"{new} of {replicas} leaders were replaced"
    return [Check(new == len(now) == replicas, "all groups are new", said)]


def _kept(before: Listing, after: Listing, lost: list[str], expected: Expected) -> list[Check]:
    """The original pods still run, but for groups that a step had updated in the LWS itself."""
    if expected.in_steps:
        said = f"{len(lost)} of {len(leaders(after, expected.workload))} leaders were replaced"
        return [Check(len(lost) <= expected.in_steps, "only groups that the step had renewed were made again", said)]
    uids = {name: pod["metadata"]["uid"] for name, pod in before["Pod"].items()}
    gone = [name for name, uid in uids.items() if after["Pod"].get(name, {}).get("metadata", {}).get("uid") != uid]
    return [Check(not gone, "every pod from before still runs", ", ".join(gone) or f"{len(uids)} pods, same UIDs")]


def _early(lost: list[str], in_steps: int, replicas: int) -> Check:
    if not in_steps:
        return Check(not lost, "stable was not touched before its promotion", ", ".join(lost) or "nothing restarted")
    said = f"{len(lost)} of {replicas} leaders were replaced"
    if len(lost) != in_steps:
        said += f", and the steps ask for {in_steps}"
    return Check(len(lost) == in_steps, "before the promotion as many groups were renewed as the steps say", said)


def images(after: Listing, expected: Expected) -> Check:
    """Each pod runs its role's images of the template (leaders without a template of their own: the worker's)."""
    workers = _template_images(expected.template.get("workerTemplate"))
    own = _template_images(expected.template.get("leaderTemplate") or expected.template.get("workerTemplate"))
    wrong = [
        name
        for name, pod in _pods(after, expected.workload).items()
        if not {each["image"] for each in pod["spec"].get("containers") or ()}
        >= (own if label(pod, LWS_WORKER_INDEX) == "0" else workers)
    ]
    said = f"not {', '.join(sorted(wrong))}" if wrong else ", ".join(sorted(own | workers))
    return Check(not wrong, "every pod runs the right version", said)


def _template_images(template: Object | None) -> set[str]:
    return {each["image"] for each in ((template or {}).get("spec") or {}).get("containers") or ()}


def held(lws: Object, api_group: str) -> Check:
    """A changed template of the LWS starts nothing by itself."""
    rolling = (lws["spec"].get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    marked = f"{api_group}/original" in (lws["metadata"].get("annotations") or {})
    said = f"partition {rolling.get('partition')}" + ("" if marked else ", not marked as ours")
    return Check(rolling.get("partition") == HOLD and marked, "the hold is in place", said)


def given_back(before: Listing, after: Listing, managed: Iterable[tuple[str, str]]) -> Check:
    """The routing objects in ``managed``, by kind and name, have their original spec, labels and annotations."""
    every = [f"{kind} {name}" for kind, name in managed]
    changed = [
        f"{kind} {name}"
        for kind, name in managed
        if _written(before[kind].get(name)) != _written(after[kind].get(name))
    ]
    said = f"changed: {', '.join(changed)}" if changed else ", ".join(every)
    return Check(not changed, "what was changed is as before", said)


def _written(obj: Object | None) -> tuple[Any, ...]:
    metadata = obj["metadata"] if obj else {}
    return (obj or {}).get("spec"), metadata.get("labels") or {}, metadata.get("annotations") or {}
