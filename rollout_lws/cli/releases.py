"""What a command knows of one release: a Rollout and its LWSs, groups and pods, by a few selective calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.options import release_name
from rollout_lws.cli.versions import Stored, stored
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    PODS,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.workloads import LeaderWorkerSet, LeaderWorkerSetSpec, Pod, StatefulSet
from rollout_lws.settings import DEFAULT_API_GROUP
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.template import Version, version_of, version_of_members

VERSION = "v1beta1"
SHORT_NAME = "lwsro"
#: Label of a canary LWS, after the API group and a slash; its value is the stable LWS's name.
CANARY_MARK = "canary-leaderworkerset"

_Kind = TypeVar("_Kind")


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


def fetch_workload(transport: Transport, rollout: Object) -> Object:
    """The LWS that a Rollout refers to; a missing one is a UsageError."""
    name = rollout["spec"]["workloadRef"]["name"]
    try:
        return transport.get(LEADER_WORKER_SETS.path(rollout["metadata"]["namespace"], name))
    except ApiError as error:
        if error.code != 404:
            raise
        raise UsageError(
            f"rollout/{rollout['metadata']['name']} refers to LeaderWorkerSet {name!r},"
            " which does not exist: apply it first"
        ) from error


def chosen_names(transport: Transport, rollouts: Resource, names: Iterable[str], selector: str | None) -> list[str]:
    """The Rollouts that a command is about, by name or by label; UsageError when there is none."""
    given = [release_name(name) for name in names]
    if given and selector:
        raise UsageError("a NAME and -l are given: leave out either")
    if given:
        return list(dict.fromkeys(given))
    if not selector:
        raise UsageError("the Rollout's name is missing: write NAME, rollout/NAME or -l SELECTOR")
    found = _items(transport, rollouts, labelSelector=selector)
    if not found:
        raise UsageError(f"no Rollout in namespace {transport.namespace!r} has the labels {selector}")
    return [each["metadata"]["name"] for each in found]


@dataclass(frozen=True, slots=True)
class Release:
    """A Rollout with its stable and canary LWS; None when absent. ``before`` is the version that another is to replace,
    where it is on record.
    """

    rollout: Object
    stable: Facts | None
    canary: Facts | None
    before: Version | None = None


def fetch_release(transport: Transport, rollouts: Resource, name: str, *, pods: bool = False) -> Release:
    """The release of a Rollout as it is now; with ``pods`` all of them, else leaders only."""
    rollout = fetch_rollout(transport, rollouts, name)
    workloads = [each for query in workload_queries(rollout) for each in _items(transport, LEADER_WORKER_SETS, **query)]
    before = fetch_before(transport, rollouts, rollout)
    names = [lws["metadata"]["name"] for lws in workloads]
    if not names:
        return Release(rollout, None, None, before)
    sets = _items(transport, STATEFUL_SETS, labelSelector=of_workloads(names))
    members = _items(transport, PODS, labelSelector=of_workloads(names, leaders=not pods))
    return replace(assemble(rollout, workloads, sets, members), before=before)


def workload_queries(rollout: Object) -> tuple[dict[str, str], dict[str, str]]:
    """How to ask for the LWSs of a Rollout: the canary's, and the stable one's."""
    name, group = rollout["spec"]["workloadRef"]["name"], rollout["apiVersion"].partition("/")[0]
    return {"labelSelector": f"{group}/{CANARY_MARK}={name}"}, {"fieldSelector": f"metadata.name={name}"}


def of_workloads(names: Iterable[str], *, leaders: bool = False) -> str:
    """The label selector of what LWSs of these names are made of."""
    selector = f"{LWS_NAME} in ({','.join(names)})"
    return f"{selector},{LWS_WORKER_INDEX}=0" if leaders else selector


def fetch_before(transport: Transport, rollouts: Resource, rollout: Object) -> Version | None:
    """The stable version while another is released; None at rest, or where it is not on record or not to be read."""
    stable = ((rollout.get("status") or {}).get("stable") or {}).get("templateHash")
    if not stable or not releasing(rollout):
        return None
    try:
        known = stored_versions(transport, rollouts, rollout)
    except ApiError:
        return None
    return next((version_of_members(each.members) for each in known if each.template_hash == stable), None)


def releasing(rollout: Object) -> bool:
    return (rollout.get("status") or {}).get("phase") == "Progressing"


def stored_versions(transport: Transport, rollouts: Resource, rollout: Object) -> list[Stored]:
    """The versions that a Rollout has stored, the newest release first."""
    selector = f"{rollouts.group}/history={rollout['metadata']['name']}"
    return stored(_items(transport, CONTROLLER_REVISIONS, labelSelector=selector), rollouts.group)


def todays_hashes(known: Iterable[Stored]) -> dict[str, str]:
    """Our hash of each stored version, by the controller's: one of another release may hash differently."""
    return {each.template_hash: version_of_members(each.members).template_hash for each in known}


def version_hash(lws: Object) -> str:
    """Our hash of the version that an LWS asks for."""
    return version_of(typed(lws["spec"], LeaderWorkerSetSpec)).template_hash


def assemble(
    rollout: Object, workloads: Iterable[Object], stateful_sets: Iterable[Object], pods: Iterable[Object]
) -> Release:
    """The release around ``rollout`` out of what its namespace lists; objects of other LWSs are left aside."""
    return gathered(
        rollout,
        [typed(each, LeaderWorkerSet) for each in workloads],
        [typed(each, StatefulSet) for each in stateful_sets],
        [typed(each, Pod) for each in pods],
    )


def gathered(
    rollout: Object, workloads: Iterable[LeaderWorkerSet], sets: Iterable[StatefulSet], pods: Iterable[Pod]
) -> Release:
    """The same out of what has been read already."""
    name, group = rollout["spec"]["workloadRef"]["name"], rollout["apiVersion"].partition("/")[0]
    listed, members = list(sets), list(pods)
    stable = canary = None
    for lws in workloads:
        if lws.metadata.name == name:
            stable = _facts(lws, listed, members)
        elif lws.metadata.labels.get(f"{group}/{CANARY_MARK}") == name:
            canary = _facts(lws, listed, members)
    return Release(rollout, stable, canary)


def typed(obj: Object, kind: type[_Kind]) -> _Kind:
    """By way of JSON, because the structs keep some members as the bytes they were."""
    return msgspec.json.decode(msgspec.json.encode(obj), type=kind)


def _facts(lws: LeaderWorkerSet, sets: list[StatefulSet], pods: list[Pod]) -> Facts:
    name = lws.metadata.name
    mine = tuple(each for each in sets if each.metadata.labels.get(LWS_NAME) == name)
    members = tuple(pod for pod in pods if pod.workload == name)
    return Facts(
        lws,
        next((each for each in mine if each.metadata.name == name), None),
        tuple(pod for pod in members if pod.is_leader),
        tuple(each for each in mine if each.metadata.name != name),
        members if any(not pod.is_leader for pod in members) else (),
    )


def _items(transport: Transport, resource: Resource, **query: str) -> list[Object]:
    return list(transport.get(resource.path(transport.namespace), **query).get("items") or ())


def style(rollout: Object) -> Object:
    """What its spec says of how versions are released, be it a canary or blue-green; {} when nothing."""
    strategy = rollout["spec"].get("strategy") or {}
    found: Object = strategy.get("canary") or strategy.get("blueGreen") or {}
    return found


def summary(rollout: Object) -> dict[str, str]:
    """``status.summary``, with empty strings for what the controller has not said."""
    said = (rollout.get("status") or {}).get("summary") or {}
    return {
        key: str(said.get(key) or "") for key in ("state", "step", "traffic", "new", "stable", "accelerators", "since")
    }


def message(rollout: Object) -> str:
    """What the controller says, or that there is none to say it."""
    if not rollout.get("status"):
        return "no controller has seen this Rollout yet; is one running?"
    return str(rollout["status"].get("message") or "")


def condition(rollout: Object, kind: str) -> Object | None:
    """A condition that is True, and not said of an older generation."""
    for each in (rollout.get("status") or {}).get("conditions") or ():
        current = int(each.get("observedGeneration") or 0) >= rollout["metadata"].get("generation", 0)
        if each["type"] == kind and each["status"] == "True" and current:
            found: Object = each
            return found
    return None
