"""The rights of the controller, as few as it can work with, and of people, by what they are trusted with.

This is the only place that says so: the manifests, the documentation and the tests that run controllers under these
rights take them from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rollout_lws.objects.resources import (
    CLUSTER_ROLES,
    DEFAULT_API_GROUP,
    LEASES,
    MUTATING_WEBHOOKS,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from rollout_lws.settings import DEFAULT_GUARD
from rollout_lws.traffic.registry import SPECS

Object = dict[str, Any]
CONTROLLER = "rollout-lws-controller"


@dataclass(frozen=True, slots=True)
class Rule:
    """These verbs on these resources of one API group; ``cluster`` when they are in no namespace. ``names`` are the
    only objects that they are for, () means all.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    cluster: bool = False
    names: tuple[str, ...] = ()

    def rendered(self) -> Object:
        """As a role has it."""
        rule: Object = {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}
        return rule | ({"resourceNames": list(self.names)} if self.names else {})


_SEE = ("get", "list", "watch")
_FOLLOW = ("list", "watch")
_LWS = "leaderworkerset.x-k8s.io"


def controller_rules(group: str = DEFAULT_API_GROUP) -> tuple[Rule, ...]:
    """What a controller of API group ``group`` asks the API server for, and nothing else."""
    return (
        Rule(group, ("rollouts",), (*_FOLLOW, "patch")),
        Rule(group, ("batchreleases",), (*_FOLLOW, "create", "patch", "delete")),
        Rule(group, ("rollouts/status", "batchreleases/status"), ("patch",)),
        Rule(_LWS, ("leaderworkersets",), (*_SEE, "create", "patch", "delete")),
        Rule("apps", ("statefulsets",), _SEE),
        # The history of released versions, and what LWS itself keeps of old ones while it is held.
        Rule("apps", ("controllerrevisions",), (*_FOLLOW, "create", "patch", "delete")),
        # Leaders of groups that go back are deleted; live leaders get labels.
        Rule("", ("pods",), (*_FOLLOW, "patch", "delete")),
        # Pinned to a version while it is released, and copied for the other.
        Rule("", ("services",), (*_FOLLOW, "create", "patch", "delete")),
        Rule("discovery.k8s.io", ("endpointslices",), _FOLLOW),
        # The user's own, or a second one beside it, while a version is released.
        *(Rule(spec.resource.group, (spec.resource.plural,), (*_FOLLOW, *spec.verbs)) for spec in SPECS),
        # Pinned as Services are.
        Rule("inference.networking.k8s.io", ("inferencepools",), (*_FOLLOW, "patch")),
        # Held while a version is released.
        Rule("autoscaling", ("horizontalpodautoscalers",), (*_FOLLOW, "patch")),
        # Named in an Event, since they do not limit a release.
        Rule("policy", ("poddisruptionbudgets",), _FOLLOW),
        # Read while a pod is missing: what its StatefulSet says.
        Rule("", ("events",), _FOLLOW),
        # Read while an LWS that Kueue queues is released.
        Rule("kueue.x-k8s.io", ("workloads",), _FOLLOW),
        Rule("kueue.x-k8s.io", ("admissionchecks",), _FOLLOW, cluster=True),
        Rule("events.k8s.io", ("events",), ("create", "patch")),
        # Which LeaderWorkerSet is installed.
        Rule("apiextensions.k8s.io", ("customresourcedefinitions",), _FOLLOW, cluster=True),
    )


def leader_election_rules() -> tuple[Rule, ...]:
    """What electing a leader needs in the controller's own namespace: its one Lease. A right to create cannot be
    limited to a name, since the API server does not know it yet when it judges.
    """
    return (
        Rule(LEASES.group, (LEASES.plural,), ("create",)),
        Rule(LEASES.group, (LEASES.plural,), (*_SEE, "patch"), names=(CONTROLLER,)),
    )


def guard_rules() -> tuple[Rule, ...]:
    """What the guard needs besides: to have API servers trust it, by its two configurations and no others."""
    kinds = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
    plurals = tuple(each.plural for each in kinds)
    return (Rule(MUTATING_WEBHOOKS.group, plurals, (*_SEE, "patch"), cluster=True, names=(DEFAULT_GUARD,)),)


def controller_role(group: str = DEFAULT_API_GROUP) -> Object:
    """The ClusterRole of a controller that sees all namespaces."""
    return role(CONTROLLER, controller_rules(group))


def people_roles(group: str = DEFAULT_API_GROUP) -> tuple[Object, ...]:
    """ClusterRoles for people, which Kubernetes' own view, edit and admin include by aggregation.

    *view* sees releases and what they move, enough for every command that only looks; *operate* promotes, pauses,
    aborts and retries; *edit* writes Rollouts, and versions (undo, restart, set image). Operate is no part of view:
    bind it to people that approve and may not edit.
    """
    ours = ("rollouts", "batchreleases")
    view = (
        Rule(group, ours, _SEE),
        Rule(_LWS, ("leaderworkersets",), _SEE),
        # Kubernetes' own view has these, too: a role that is bound alone needs them for `get NAME` and `history`.
        Rule("apps", ("statefulsets", "controllerrevisions"), _SEE),
        Rule("", ("pods", "events"), _SEE),
    )
    operate = (Rule(group, ("rollouts/status",), ("patch",)),)
    edit = (
        Rule(group, ("rollouts",), ("create", "update", "patch", "delete", "deletecollection")),
        Rule(_LWS, ("leaderworkersets",), ("patch",)),
    )
    return (
        role("rollout-lws-view", view, _aggregated("view", "edit", "admin")),
        role("rollout-lws-operate", (*view, *operate), _aggregated("edit", "admin")),
        role("rollout-lws-edit", (*view, *operate, *edit), _aggregated("edit", "admin")),
    )


def role(name: str, rules: Iterable[Rule], labels: dict[str, str] | None = None) -> Object:
    """A ClusterRole."""
    made = CLUSTER_ROLES.manifest(name, rules=[rule.rendered() for rule in rules])
    if labels:
        made["metadata"]["labels"] = labels
    return made


def binding(made: Object, kind: Resource, role: str, namespace: str) -> Object:
    """``made`` as a binding of the role to the controller, whose account is in ``namespace``."""
    return made | {
        "roleRef": {"apiGroup": kind.group, "kind": kind.kind, "name": role},
        "subjects": [{"kind": SERVICE_ACCOUNTS.kind, "name": CONTROLLER, "namespace": namespace}],
    }


def _aggregated(*targets: str) -> dict[str, str]:
    return {f"rbac.authorization.k8s.io/aggregate-to-{target}": "true" for target in targets}
