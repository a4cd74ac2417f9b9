"""What a command knows of one release: a Rollout and its LWSs, groups and pods, by a few selective calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from rollout_lws.cli.transport import Object, Transport
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    PODS,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.workloads import LeaderWorkerSet, Pod, StatefulSet
from rollout_lws.settings import DEFAULT_API_GROUP
from rollout_lws.workload.facts import Facts

VERSION = "v1beta1"
SHORT_NAME = "lwsro"


def rollouts_of(group: str) -> Resource:
    return Resource(group, VERSION, "Rollout", "rollouts")


def find_rollouts(transport: Transport, group: str | None = None) -> Resource:
    """The Rollouts that this cluster serves: of ``group``, else found by their short name, which Kruise's lack."""
    if group:
        return rollouts_of(group)
    if _serves(transport, DEFAULT_API_GROUP):
        return rollouts_of(DEFAULT_API_GROUP)
    for served in transport.get("/apis").get("groups", ()):
        versions = {version["version"] for version in served["versions"]}
        if served["name"] != DEFAULT_API_GROUP and VERSION in versions and _serves(transport, served["name"]):
            return rollouts_of(served["name"])
    raise UsageError(
        "this cluster does not serve rollout-lws's Rollouts: install them with `rollout-lws crds | kubectl apply -f -`"
    )


def _serves(transport: Transport, group: str) -> bool:
    try:
        resources = transport.get(f"/apis/{group}/{VERSION}").get("resources", ())
    except ApiError as error:
        if error.code == 404:
            return False
        raise
    return any(each["name"] == "rollouts" and SHORT_NAME in (each.get("shortNames") or ()) for each in resources)


def fetch_rollout(transport: Transport, rollouts: Resource, name: str) -> Object:
    """One Rollout; a missing one is a UsageError that names the namespace looked in."""
    try:
        return transport.get(rollouts.path(transport.namespace, name))
    except ApiError as error:
        if error.code == 404:
            raise UsageError(
                f"there is no Rollout {name!r} in namespace {transport.namespace!r}:"
                f" see `rollout-lws get -n {transport.namespace}`"
            ) from error
        raise


@dataclass(frozen=True, slots=True)
class Release:
    """A Rollout with its stable and canary LWS; None when absent."""

    rollout: Object
    stable: Facts | None
    canary: Facts | None


def fetch_release(transport: Transport, rollouts: Resource, name: str) -> Release:
    rollout = fetch_rollout(transport, rollouts, name)
    workload = rollout["spec"]["workloadRef"]["name"]
    marked = f"{rollouts.group}/canary-leaderworkerset={workload}"
    canaries = _items(transport, LEADER_WORKER_SETS, LeaderWorkerSet, labelSelector=marked)
    try:
        stable = msgspec.convert(
            transport.get(LEADER_WORKER_SETS.path(transport.namespace, workload)), LeaderWorkerSet, strict=False
        )
    except ApiError as error:
        if error.code != 404:
            raise
        stable = None
    sides = [lws for lws in (stable, *canaries[:1]) if lws is not None]
    if not sides:
        return Release(rollout, None, None)
    owned = f"{LWS_NAME} in ({','.join(lws.metadata.name for lws in sides)})"
    sets = _items(transport, STATEFUL_SETS, StatefulSet, labelSelector=owned)
    leaders = _items(transport, PODS, Pod, labelSelector=f"{owned},{LWS_WORKER_INDEX}=0")
    return Release(
        rollout,
        _facts(stable, sets, leaders) if stable else None,
        _facts(canaries[0], sets, leaders) if canaries else None,
    )


def _facts(lws: LeaderWorkerSet, sets: tuple[StatefulSet, ...], leaders: tuple[Pod, ...]) -> Facts:
    name = lws.metadata.name
    mine = tuple(each for each in sets if each.metadata.labels.get(LWS_NAME) == name)
    return Facts(
        lws,
        next((each for each in mine if each.metadata.name == name), None),
        tuple(pod for pod in leaders if pod.workload == name),
        tuple(each for each in mine if each.metadata.name != name),
    )


def _items(transport: Transport, resource: Resource, kind: type[Any], **query: str) -> tuple[Any, ...]:
    items = transport.get(resource.path(transport.namespace), **query).get("items") or ()
    return tuple(msgspec.convert(item, kind, strict=False) for item in items)


def summary(rollout: Object) -> dict[str, str]:
    """``status.summary``, with empty strings for what the controller has not said."""
    said = (rollout.get("status") or {}).get("summary") or {}
    return {
        key: str(said.get(key) or "") for key in ("state", "step", "traffic", "new", "stable", "accelerators", "since")
    }


def message(rollout: Object) -> str:
    return str((rollout.get("status") or {}).get("message") or "")


def condition(rollout: Object, kind: str) -> Object | None:
    """A condition that is True, and not said of an older generation."""
    for each in (rollout.get("status") or {}).get("conditions") or ():
        current = int(each.get("observedGeneration") or 0) >= rollout["metadata"].get("generation", 0)
        if each["type"] == kind and each["status"] == "True" and current:
            found: Object = each
            return found
    return None
