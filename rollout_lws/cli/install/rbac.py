"""RBAC rules: the least that the controller needs, and roles for users by their level of trust.

This module is the only source: the manifests, the documentation and the tests that run controllers with these
permissions read them from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rollout_lws.objects.released import RELEASED
from rollout_lws.objects.resources import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CRON_JOBS,
    DEFAULT_API_GROUP,
    JOBS,
    LEASES,
    MUTATING_WEBHOOKS,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from rollout_lws.settings import DEFAULT_GUARD
from rollout_lws.traffic.registry import WRITTEN_SPECS

Object = dict[str, Any]
CONTROLLER = "rollout-lws-controller"


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs on resources of one API group; ``cluster`` for cluster-scoped resources. ``names`` limits the rule to these
    objects, () means all.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    cluster: bool = False
    names: tuple[str, ...] = ()

    def rendered(self) -> Object:
        """The rule in RBAC's form."""
        rule: Object = {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}
        return rule | ({"resourceNames": list(self.names)} if self.names else {})


_SEE = ("get", "list", "watch")
_FOLLOW = ("list", "watch")


def controller_rules(group: str = DEFAULT_API_GROUP) -> tuple[Rule, ...]:
    """The permissions that a controller of API group ``group`` uses, and no others."""
    return (
        Rule(group, ("rollouts",), (*_FOLLOW, "patch")),
        Rule(group, ("batchreleases",), (*_FOLLOW, "create", "patch", "delete")),
        Rule(group, ("rollouts/status", "batchreleases/status"), ("patch",)),
        *(Rule(each.group, (each.plural,), (*_SEE, "create", "patch", "delete")) for each in RELEASED),
        # The history of released versions, and LWS's own revisions of old ones during a hold.
        Rule("apps", ("controllerrevisions",), (*_FOLLOW, "create", "patch", "delete")),
        # The controller deletes leaders of groups that roll back, and labels live leaders.
        Rule("", ("pods",), (*_FOLLOW, "patch", "delete")),
        # Pinned to one version during a release, and copied for the other.
        Rule("", ("services",), (*_FOLLOW, "create", "patch", "delete")),
        Rule("discovery.k8s.io", ("endpointslices",), _FOLLOW),
        # The user's own object, or a second one that we add, during a release.
        *(Rule(spec.resource.group, (spec.resource.plural,), (*_FOLLOW, *spec.verbs)) for spec in WRITTEN_SPECS),
        # Pinned like Services.
        Rule("inference.networking.k8s.io", ("inferencepools",), (*_FOLLOW, "patch")),
        # Bounds held during a release.
        Rule("autoscaling", ("horizontalpodautoscalers",), (*_FOLLOW, "patch")),
        # Named in an Event only, since PDBs do not limit a release.
        Rule("policy", ("poddisruptionbudgets",), _FOLLOW),
        # Read while a pod is missing, for its StatefulSet's errors.
        Rule("", ("events",), _FOLLOW),
        # Read during the release of an LWS that Kueue queues.
        Rule("kueue.x-k8s.io", ("workloads",), _FOLLOW),
        Rule("kueue.x-k8s.io", ("admissionchecks",), _FOLLOW, cluster=True),
        Rule("events.k8s.io", ("events",), ("create", "patch")),
        # To find out which LeaderWorkerSet version is installed.
        Rule("apiextensions.k8s.io", ("customresourcedefinitions",), _FOLLOW, cluster=True),
    )


def gate_job_rules() -> tuple[Rule, ...]:
    """Further permissions for gates that ask Jobs: to make them from the CronJobs of users, to stop and delete them."""
    return (
        Rule(JOBS.group, (JOBS.plural,), (*_FOLLOW, "create", "patch", "delete")),
        Rule(CRON_JOBS.group, (CRON_JOBS.plural,), _FOLLOW),
    )


def custom_network_rules(kinds: Iterable[str]) -> tuple[Rule, ...]:
    """Further permissions for objects that scripts change; ``kinds`` are plural.group."""
    named = (kind.partition(".") for kind in kinds)
    return tuple(Rule(group, (plural,), (*_FOLLOW, "patch")) for plural, _, group in named)


def script_rules(config_map: str) -> tuple[Rule, ...]:
    """Permission to read the scripts: one ConfigMap in the controller's namespace."""
    return (Rule(CONFIG_MAPS.group, (CONFIG_MAPS.plural,), _FOLLOW, names=(config_map,)),)


def leader_election_rules() -> tuple[Rule, ...]:
    """Permissions for leader election in the controller's namespace: its one Lease. RBAC cannot limit create to a name,
    because the name is not known at authorization.
    """
    return (
        Rule(LEASES.group, (LEASES.plural,), ("create",)),
        Rule(LEASES.group, (LEASES.plural,), (*_SEE, "patch"), names=(CONTROLLER,)),
    )


def guard_rules() -> tuple[Rule, ...]:
    """The guard's extra permission: to write caBundle into its own two webhook configurations."""
    kinds = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
    plurals = tuple(each.plural for each in kinds)
    return (Rule(MUTATING_WEBHOOKS.group, plurals, (*_SEE, "patch"), cluster=True, names=(DEFAULT_GUARD,)),)


def controller_role(group: str = DEFAULT_API_GROUP) -> Object:
    """The ClusterRole of a controller that watches all namespaces."""
    return role(CONTROLLER, controller_rules(group))


def people_roles(group: str = DEFAULT_API_GROUP) -> tuple[Object, ...]:
    """ClusterRoles for people, aggregated into Kubernetes' own view, edit and admin.

    *view* reads releases and the objects they change, enough for every read-only command; *operate* promotes, pauses,
    aborts and retries; *edit* writes Rollouts, and versions (undo, restart, set image). Operate is not part of view:
    bind it to people who approve releases and may not edit.
    """
    ours = ("rollouts", "batchreleases")
    view = (
        Rule(group, ours, _SEE),
        *(Rule(each.group, (each.plural,), _SEE) for each in RELEASED),
        # Kubernetes' own view has these too; a role that is bound alone needs them for `get NAME` and `history`.
        Rule("apps", ("controllerrevisions",), _SEE),
        Rule("", ("pods", "events"), _SEE),
    )
    operate = (Rule(group, ("rollouts/status",), ("patch",)),)
    edit = (
        Rule(group, ("rollouts",), ("create", "update", "patch", "delete", "deletecollection")),
        # kubectl scale.
        Rule(group, ("rollouts/scale",), ("get", "update", "patch")),
        *(Rule(each.group, (each.plural,), ("patch",)) for each in RELEASED),
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
    """``made`` as a binding of the role to the controller's service account in ``namespace``."""
    return made | {
        "roleRef": {"apiGroup": kind.group, "kind": kind.kind, "name": role},
        "subjects": [{"kind": SERVICE_ACCOUNTS.kind, "name": CONTROLLER, "namespace": namespace}],
    }


def _aggregated(*targets: str) -> dict[str, str]:
    return {f"rbac.authorization.k8s.io/aggregate-to-{target}": "true" for target in targets}
