"""What of ours is on a cluster, read by few requests: the plan is made of it, and the end is judged by it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rollout_lws.api.resources import keys
from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.gitops import owner
from rollout_lws.cli.install.installation import DEFAULT_NAMESPACE
from rollout_lws.cli.install.ownership import flags, is_ours
from rollout_lws.cli.install.rights import CONTROLLER
from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.cli.uninstall import parts as installed
from rollout_lws.cli.uninstall.departures import Departure, Place, Workloads, departures
from rollout_lws.cli.uninstall.homes import Home, home, others
from rollout_lws.cli.uninstall.parts import Part, Parts, definitions_of, our_groups, part_of, parts
from rollout_lws.cli.uninstall.plan import Controller, Plan
from rollout_lws.cli.versions import stored
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEFAULT_API_GROUP,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    LEASES,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.settings import DEFAULT_LEASE

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the flags of the command say. ``group`` and ``namespace`` are None where the cluster decides."""

    group: str | None = None
    namespace: str | None = None
    delete_namespace: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """``groups`` are the API groups whose marks are ours on this cluster."""

    plan: Plan
    groups: tuple[str, ...]


def read(transport: Transport, chosen: Chosen) -> Seen:
    """UsageError when the flags do not fit what is on the cluster."""
    definitions = listed(transport, CUSTOM_RESOURCE_DEFINITIONS)
    labelled = {each: listed(transport, each, labelSelector=installed.SELECTOR) for each in installed.KINDS}
    controller = _controller(labelled[DEPLOYMENTS])
    labelled[LEASES] += [each for each in leases(transport) if not is_ours(each)]
    served = _served(definitions, chosen.group)
    groups = served or _without_definitions(definitions, labelled[DEPLOYMENTS], chosen.group)
    leaving: list[Departure] = []
    named = definitions_of(served)
    warnings = [
        *_kept(DEPLOYMENTS, labelled[DEPLOYMENTS]),
        *_kept(CUSTOM_RESOURCE_DEFINITIONS, (each for each in definitions if each["metadata"]["name"] in named)),
    ]
    for group in groups:
        rollouts = listed(transport, rollouts_of(group)) if group in served else []
        warnings += _kept(rollouts_of(group), rollouts)
        leaving += departures(group, rollouts, _workloads(transport, group, rollouts))
    found = parts(labelled, definitions, served)
    where = _home(transport, controller, labelled[SERVICE_ACCOUNTS], chosen, found)
    return Seen(Plan(tuple(leaving), found, where, controller, tuple(warnings)), groups)


def listed(transport: Transport, resource: Resource, namespace: str = "", **query: str) -> list[Object]:
    """Objects of a kind, of all namespaces unless one is named; [] where the cluster does not serve it."""
    try:
        found = transport.get(resource.path(namespace), **query).get("items") or ()
    except ApiError as error:
        if error.code != 404:
            raise
        return []
    return [each if "kind" in each else {**each, "kind": resource.kind} for each in found]


def found(transport: Transport, resource: Resource, namespace: str, name: str) -> Object | None:
    try:
        return transport.get(resource.path(namespace, name))
    except ApiError as error:
        if error.code != 404:
            raise
        return None


def _served(definitions: Iterable[Object], asked: str | None) -> tuple[str, ...]:
    """The API groups whose Rollouts are ours."""
    known = list(definitions)
    ours = our_groups(known)
    if asked is None or asked in ours:
        return ours if asked is None else (asked,)
    if any(each["metadata"]["name"] == f"rollouts.{asked}" for each in known):
        raise UsageError(
            f"nothing was changed: CustomResourceDefinition rollouts.{asked} is another product's (OpenKruise"
            " Rollouts?), and is left alone: leave out --api-group"
        )
    return ()


def _without_definitions(
    definitions: Iterable[Object], deployments: Iterable[Object], asked: str | None
) -> tuple[str, ...]:
    """Whose marks may be left where no definition of ours is there any more: never those of another product."""
    named = [asked] if asked else [group for each in deployments for group in flags(each, "--api-group")]
    theirs = {each["spec"]["group"] for each in definitions if each["spec"]["names"]["plural"] == "rollouts"}
    return tuple(group for group in named or [DEFAULT_API_GROUP] if group not in theirs)


def _controller(deployments: Iterable[Object]) -> Controller:
    found = [each for each in deployments if each["metadata"]["name"] == CONTROLLER]
    if len(found) > 1:
        places = " and ".join(each["metadata"]["namespace"] for each in found)
        raise UsageError(
            f"nothing was changed: deployment/{CONTROLLER} is in namespaces {places}, and a cluster has one"
            " installation: delete the one that does not belong there, with --cascade=foreground, then run this command"
            " again"
        )
    for each in found:
        meta, status = each["metadata"], each.get("status") or {}
        return Controller(
            meta["namespace"],
            meta["name"],
            int(status.get("availableReplicas") or 0),
            int(each["spec"].get("replicas", 1)),
            tuple(flags(each, "--namespace")),
        )
    return Controller()


def leases(transport: Transport) -> list[Object]:
    """By which controllers agree who leads, wherever these live or lived: they make them themselves, without labels."""
    return listed(transport, LEASES, fieldSelector=f"metadata.name={DEFAULT_LEASE}")


def _kept(resource: Resource, objects: Iterable[Object]) -> list[str]:
    """Those that somebody would make anew."""
    return [
        f"{part_of(resource, each)} is kept by {keeper}, which may make it anew: take it out of Git first"
        for each in objects
        if (keeper := owner(each))
    ]


def _workloads(transport: Transport, group: str, rollouts: Iterable[Object]) -> Workloads:
    named = {(each["metadata"]["namespace"], each["spec"]["workloadRef"]["name"]) for each in rollouts}
    own = keys(group)
    chosen: dict[Place, Object] = {}
    for lws in listed(transport, LEADER_WORKER_SETS):
        meta = lws["metadata"]
        place, marks = (meta["namespace"], meta["name"]), meta.get("annotations") or {}
        canary = own.canary_leader_worker_set in (meta.get("labels") or {})
        if place in named or (not canary and (own.original in marks or own.held in marks)):
            chosen[place] = lws
    if not chosen:
        return Workloads(chosen, {}, {}, {})
    sets = listed(transport, STATEFUL_SETS, labelSelector=LWS_NAME)
    wanted = {(each["metadata"]["namespace"], each["metadata"]["name"]): revision(each) for each in sets}
    running: dict[Place, list[str]] = {}
    for pod in listed(transport, PODS, labelSelector=f"{LWS_NAME},{LWS_WORKER_INDEX}=0"):
        meta = pod["metadata"]
        if not meta.get("deletionTimestamp"):
            running.setdefault((meta["namespace"], meta["labels"][LWS_NAME]), []).append(revision(pod))
    kept: dict[Place, list[Object]] = {}
    for record in listed(transport, CONTROLLER_REVISIONS, labelSelector=own.history):
        meta = record["metadata"]
        kept.setdefault((meta["namespace"], meta["labels"][own.history]), []).append(record)
    history = {place: stored(records, group) for place, records in kept.items()}
    return Workloads(chosen, wanted, running, history)


def revision(obj: Object) -> str:
    return str((obj["metadata"].get("labels") or {}).get(LWS_REVISION) or "")


def _home(
    transport: Transport, controller: Controller, accounts: Iterable[Object], chosen: Chosen, found_parts: Parts
) -> Home | None:
    named = [each["metadata"] for each in accounts]
    lives = controller.namespace or next((each["namespace"] for each in named if each["name"] == CONTROLLER), "")
    if chosen.namespace and lives and chosen.namespace != lives:
        raise UsageError(
            f"nothing was changed: rollout-lws is installed in namespace {lives}, not {chosen.namespace}: leave out -n,"
            " the installation of a cluster is found by its labels"
        )
    if not lives:
        # An earlier run was stopped before it came to the namespace.
        ours = [each["metadata"]["name"] for each in listed(transport, NAMESPACES, labelSelector=installed.SELECTOR)]
        lives = DEFAULT_NAMESPACE if DEFAULT_NAMESPACE in ours else next(iter(ours), "")
    namespace = found(transport, NAMESPACES, "", lives) if lives else None
    if namespace is None:
        if chosen.delete_namespace:
            raise UsageError("nothing was changed: --delete-namespace, but no namespace of an installation is there")
        return None
    if found_parts.helm and is_ours(namespace):
        return Home(lives, why="until Helm's release is gone")
    answer = home(
        namespace,
        neighbours(transport, lives, found_parts.doomed),
        wanted=chosen.delete_namespace and not found_parts.helm,
    )
    if chosen.delete_namespace and answer.doomed is None and not found_parts.helm:
        raise UsageError(f"nothing was changed: --delete-namespace, but namespace {lives} stays: {answer.why}")
    return answer


def neighbours(transport: Transport, namespace: str, doomed: Collection[Part]) -> list[str] | None:
    """What lives there that is not of the installation, of every kind that the cluster serves; None where a part of
    it could not be read.
    """
    try:
        found = {str(each): _unless_gone(partial(listed, transport, each, namespace)) for each in _kinds(transport)}
        return others(found, doomed)
    except ApiError:
        return None


def _unless_gone(ask: Callable[[], Iterable[Object]]) -> list[Object]:
    """Of a kind whose definition has just gone there is nothing; the server tells of it for a moment longer."""
    try:
        return list(ask())
    except ApiError as error:
        if error.code != 404:
            raise
        return []


def _kinds(transport: Transport) -> Iterable[Resource]:
    """All kinds with namespaces that can be listed, each in its group's preferred version."""
    versions = [("", "v1", "/api/v1")]
    for each in transport.get("/apis").get("groups", ()):
        version = (each.get("preferredVersion") or each["versions"][0])["version"]
        versions.append((each["name"], version, f"/apis/{each['name']}/{version}"))
    for group, version, path in versions:
        for kind in _unless_gone(lambda path=path: transport.get(path).get("resources", ())):  # type: ignore[misc]
            if kind.get("namespaced") and "list" in (kind.get("verbs") or ()) and "/" not in kind["name"]:
                yield Resource(group, version, kind["kind"], kind["name"])
