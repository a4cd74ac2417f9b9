"""Reads the cluster for `uninstall`, with few requests, and builds the plan."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.install.inventory import labelled, listed
from rollout_lws.cli.install.ownership import flags
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.cli.uninstall.detach_plan import Detachment, Place, detachments, revision
from rollout_lws.cli.uninstall.inventory import leases, our_groups, removal
from rollout_lws.cli.uninstall.plan import Controller, Plan
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEFAULT_API_GROUP,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    MUTATING_WEBHOOKS,
    PODS,
    STATEFUL_SETS,
    VALIDATING_WEBHOOKS,
)
from rollout_lws.settings import DEFAULT_GUARD

Object = dict[str, Any]


def read(transport: Transport, group: str | None, namespace: str | None) -> Plan:
    """Read the plan. ``group`` and ``namespace`` None: detect them. UsageError when they do not match the cluster."""
    definitions = listed(transport, CUSTOM_RESOURCE_DEFINITIONS)
    deployments = labelled(transport, DEPLOYMENTS)
    served = _served(definitions, group)
    workloads = {_place(each): each for each in listed(transport, LEADER_WORKER_SETS)}
    leaving: list[Detachment] = []
    for each in served or _without_definitions(definitions, deployments, group):
        rollouts = listed(transport, rollouts_of(each)) if each in served else []
        leaving += detachments(each, rollouts, workloads, partial(revisions, transport))
    return Plan(
        tuple(leaving),
        _controller(transport, deployments, namespace),
        _guarded(transport),
        served,
        tuple(removal(transport, served)),
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
    """API groups whose annotations may remain on LWSs although none of our CRDs exists; never another product's
    group.
    """
    named = [asked] if asked else [group for each in deployments for group in flags(each, "--api-group")]
    theirs = {each["spec"]["group"] for each in definitions if each["spec"]["names"]["plural"] == "rollouts"}
    return tuple(group for group in named or [DEFAULT_API_GROUP] if group not in theirs)


def _controller(transport: Transport, deployments: Iterable[Object], asked: str | None) -> Controller:
    found = [each for each in deployments if each["metadata"]["name"] == CONTROLLER]
    places = [each["metadata"]["namespace"] for each in found]
    if found and asked and asked not in places:
        raise UsageError(
            f"nothing was changed: rollout-lws is installed in namespace {places[0]}, not {asked}: leave out -n, the"
            " installation of a cluster is found by its labels"
        )
    for each in found:
        return Controller(
            places[0],
            CONTROLLER,
            int((each.get("status") or {}).get("availableReplicas") or 0),
            tuple(flags(each, "--namespace")),
        )
    return Controller(next((each["metadata"]["namespace"] for each in leases(transport)), ""))


def _guarded(transport: Transport) -> bool:
    """Whether the API server rejects edits while no controller answers."""
    found = [transport.find(each.path("", DEFAULT_GUARD)) for each in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)]
    return any(hook.get("failurePolicy") == "Fail" for each in found if each for hook in each.get("webhooks") or ())


def _place(obj: Object) -> Place:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def revisions(transport: Transport, lws: Object) -> tuple[str, list[str]]:
    """LWS's revision that the leader StatefulSet wants, "" without one, and those that leaders run now."""
    namespace, name = _place(lws)
    leader_set = transport.find(STATEFUL_SETS.path(namespace, name))
    leaders = listed(transport, PODS, namespace, labelSelector=f"{LWS_NAME}={name},{LWS_WORKER_INDEX}=0")
    running = [revision(pod) for pod in leaders if "deletionTimestamp" not in pod["metadata"]]
    return revision(leader_set) if leader_set else "", running
