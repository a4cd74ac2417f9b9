"""Reads the cluster for `uninstall`: Rollouts, their workloads, the controller, and what an installation has made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.install.inventory import RIGHTS, SERVING, WEBHOOKS, labelled, listed, name_of
from rollout_lws.cli.install.manifests import PRODUCT, SELECTOR
from rollout_lws.cli.install.ownership import flags, is_ours
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.cli.releases import pods_of, typed
from rollout_lws.cli.rollouts import SHORT_NAME, rollouts_of
from rollout_lws.cli.uninstall.detach_plan import Detachment, Place, Revisions, detachments, left_standing_in, place_of
from rollout_lws.cli.uninstall.plan import Controller, Plan
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEFAULT_API_GROUP,
    DEPLOYMENTS,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from rollout_lws.objects.workloads import Pod, StatefulSet
from rollout_lws.settings import DEFAULT_GUARD, DEFAULT_LEASE
from rollout_lws.targets.table import TARGETS
from rollout_lws.targets.target import Target

Object = dict[str, Any]
#: Deletion order; pods that still run need their permissions.
_STAGES: tuple[tuple[Resource, ...], ...] = (
    WEBHOOKS,
    (DEPLOYMENTS,),
    (*SERVING, SERVICE_ACCOUNTS, LEASES),
    RIGHTS,
    (CUSTOM_RESOURCE_DEFINITIONS,),
    (NAMESPACES,),
)
_HELM_RELEASE, _HELM_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"


def read(transport: Transport, group: str | None, namespace: str | None) -> Plan:
    """Read the plan. ``group`` and ``namespace`` None: detect them. UsageError when they do not match the cluster."""
    definitions = listed(transport, CUSTOM_RESOURCE_DEFINITIONS)
    deployments = labelled(transport, DEPLOYMENTS)
    served = _served(definitions, group)
    workloads = {place_of(each): each for kind in TARGETS for each in _workloads(transport, kind)}
    seen = revisions(transport)
    leaving: list[Detachment] = []
    notes: list[str] = []
    for each in served or _without_definitions(definitions, deployments, group):
        rollouts = listed(transport, rollouts_of(each)) if each in served else []
        leaving += detachments(each, rollouts, workloads, seen)
        notes += left_standing_in(each, rollouts, workloads)
    return Plan(
        tuple(leaving),
        _controller(transport, deployments, namespace),
        _guarded(transport),
        our_groups(definitions),
        tuple(removal(transport, served)),
        tuple(notes),
    )


def _served(definitions: Iterable[Object], asked: str | None) -> tuple[str, ...]:
    """API groups whose Rollouts are ours."""
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
    """API groups whose annotations may remain on workloads although none of our CRDs exists; never another product's
    group.
    """
    named = [asked] if asked else [group for each in deployments for group in flags(each, "--api-group")]
    theirs = {each["spec"]["group"] for each in definitions if each["spec"]["names"]["plural"] == "rollouts"}
    return tuple(group for group in named or [DEFAULT_API_GROUP] if group not in theirs)


def _controller(transport: Transport, deployments: Iterable[Object], asked: str | None) -> Controller:
    found = [each for each in deployments if each["metadata"]["name"] == CONTROLLER]
    places = [each["metadata"]["namespace"] for each in found]
    where = " and ".join(places)
    if found and asked and asked not in places:
        raise UsageError(
            f"nothing was changed: rollout-lws is installed in namespace {where}, not {asked}: leave out -n, the"
            " installation of a cluster is found by its labels"
        )
    if len(found) > 1 and not asked:
        raise UsageError(
            f"nothing was changed: deployment/{CONTROLLER} is in namespaces {where}, and a cluster has one"
            " installation: delete the one that does not belong there, with --cascade=foreground, or name with -n the"
            " one that is to let go of the Rollouts; then both are deleted"
        )
    for each in found:
        if asked in (None, each["metadata"]["namespace"]):
            return Controller(
                each["metadata"]["namespace"],
                CONTROLLER,
                int((each.get("status") or {}).get("availableReplicas") or 0),
                int(each["spec"].get("replicas", 1)),
                tuple(flags(each, "--namespace")),
            )
    return Controller(next((each["metadata"]["namespace"] for each in leases(transport)), ""))


def _guarded(transport: Transport) -> bool:
    """Whether the API server rejects edits while no controller answers."""
    found = [transport.find(each.path("", DEFAULT_GUARD)) for each in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)]
    return any(hook.get("failurePolicy") == "Fail" for each in found if each for hook in each.get("webhooks") or ())


def _workloads(transport: Transport, kind: type[Target]) -> Iterator[Target]:
    """Those of a kind that can be released: not what other controllers have made."""
    query = {"labelSelector": kind.labels.workloads} if kind.labels.workloads else {}
    return (typed(each, kind) for each in listed(transport, kind.resource, **query))


def revisions(transport: Transport, namespace: str = "", name: str = "") -> Revisions:
    """Reads the revisions of all workloads, or of one, by one list of each kind of objects, when the first of a kind of
    workloads is asked for.
    """

    @cache
    def wanted(kind: type[Target]) -> dict[Place, str]:
        of = f"{kind.labels.stateful_sets}={name}" if name else str(kind.labels.stateful_sets)
        made = listed(transport, STATEFUL_SETS, namespace, labelSelector=of)
        found = (typed(each, StatefulSet) for each in made)
        return {_place(kind, each.metadata.namespace, each.metadata.name): each.revision for each in found}

    @cache
    def running(kind: type[Target]) -> dict[Place, list[str]]:
        of = pods_of(kind, [name], leaders=True) if name else f"{kind.labels.mark},{kind.labels.leaders}"
        known: dict[Place, list[str]] = {}
        for pod in (typed(each, Pod) for each in listed(transport, PODS, namespace, labelSelector=of)):
            if not pod.metadata.terminating:
                known.setdefault(_place(kind, pod.metadata.namespace, pod.workload), []).append(pod.revision)
        return known

    def of(workload: Target) -> tuple[str, Sequence[str]]:
        kind, place, leader_set = type(workload), place_of(workload), workload.leader_set
        asked = leader_set.revision if leader_set is not None else wanted(kind).get(place, "")
        return asked, running(kind).get(place, ())

    return of


def _place(kind: type[Target], namespace: str, name: str) -> Place:
    return namespace, kind.resource.kind.lower(), name


# What deletes the rest


def removal(transport: Transport, groups: Iterable[str]) -> list[str]:
    """The commands that delete the installation's objects, in order; ``groups`` are the API groups of our CRDs. Helm
    uninstalls what it installed, except the CRDs, which it keeps.
    """
    definitions = definitions_of(groups)
    helm: set[str] = set()
    commands: list[str] = []
    for stage in _STAGES:
        names: dict[str, list[str]] = {}
        for resource in stage:
            for each in _installed(transport, resource, definitions):
                if release := _helm(each):
                    helm.add(release)
                else:
                    namespace = each["metadata"].get("namespace") or ""
                    names.setdefault(namespace, []).append(name_of(resource, each))
        for namespace, found in names.items():
            commands += _deleting(stage, namespace, found)
    return [*sorted(helm), *commands]


def our_groups(definitions: Iterable[Object]) -> tuple[str, ...]:
    """API groups whose Rollouts are ours: with an installation's label, or with the short name that only ours have."""
    return tuple(
        sorted(
            each["spec"]["group"]
            for each in definitions
            if each["spec"]["names"]["plural"] == "rollouts"
            and each["spec"]["names"]["kind"] == "Rollout"
            and (is_ours(each) or SHORT_NAME in (each["spec"]["names"].get("shortNames") or ()))
        )
    )


def definitions_of(groups: Iterable[str]) -> set[str]:
    """Names of our CRDs in these API groups."""
    return {f"{plural}.{group}" for group in groups for plural in ("rollouts", "batchreleases")}


def leases(transport: Transport) -> list[Object]:
    """Leader election Leases in all namespaces; controllers create them without labels."""
    return listed(transport, LEASES, fieldSelector=f"metadata.name={DEFAULT_LEASE}")


def _installed(transport: Transport, resource: Resource, definitions: set[str]) -> list[Object]:
    if resource == CUSTOM_RESOURCE_DEFINITIONS:
        return [each for each in listed(transport, resource) if each["metadata"]["name"] in definitions]
    if resource == LEASES:
        return leases(transport)
    found = labelled(transport, resource)
    if resource == NAMESPACES:
        return [each for each in found if not _serves_others(transport, each["metadata"]["name"])]
    # Users may have put our label on objects of their own; every installation has the same Deployment.
    if resource == DEPLOYMENTS:
        return [each for each in found if each["metadata"]["name"] == CONTROLLER]
    return [each for each in found if each["metadata"]["name"].startswith(PRODUCT)]


def _serves_others(transport: Transport, namespace: str) -> bool:
    """Whether a workload is in it, or a pod that is not the controller's: both would end with it."""
    pods = (each["metadata"].get("labels") or {} for each in listed(transport, PODS, namespace))
    foreign = any(not SELECTOR.items() <= labels.items() for labels in pods)
    return foreign or any(listed(transport, kind.resource, namespace) for kind in TARGETS)


def _helm(obj: Object) -> str:
    """The command that uninstalls an object's Helm release; "" without one. Output of `helm template` for other tools
    belongs to no release, and objects with resource-policy keep survive an uninstall.
    """
    notes = obj["metadata"].get("annotations") or {}
    release, namespace = notes.get(_HELM_RELEASE), notes.get(_HELM_NAMESPACE)
    if not release or notes.get("helm.sh/resource-policy") == "keep":
        return ""
    return f"helm uninstall {release}" + (f" -n {namespace}" if namespace else "")


def _deleting(stage: tuple[Resource, ...], namespace: str, names: Iterable[str]) -> list[str]:
    command = " ".join(["kubectl delete", *names, *([f"-n {namespace}"] if namespace else [])])
    if stage == (DEPLOYMENTS,):
        return [f"{command} --cascade=foreground"]
    if stage == (NAMESPACES,):
        # On a line of its own: zsh takes what follows a command for its arguments.
        return ["# The last one takes all that is in it: look first.", command]
    return [command]
