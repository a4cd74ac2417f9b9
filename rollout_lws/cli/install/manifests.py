"""The objects of an installation, in the order in which they can be applied, as pure functions of the options."""

from __future__ import annotations

from typing import Any

from rollout_lws import __version__
from rollout_lws.api import crd
from rollout_lws.cli.install import extras, rbac
from rollout_lws.cli.install.deployment import deployment, disruption_budget
from rollout_lws.cli.install.options import DEFAULT_NAMESPACE, EXTRAS, Installation
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
)

Object = dict[str, Any]
PART_OF = "app.kubernetes.io/part-of"
PRODUCT = "rollout-lws"
#: ClusterRole of a controller that watches some namespaces only, bound in each of them.
NAMESPACED = f"{CONTROLLER}-namespaced"
#: Role for the Lease, in the controller's namespace.
ELECTION = f"{CONTROLLER}-leader-election"


def objects(chosen: Installation) -> tuple[Object, ...]:
    """All objects with the product's labels; referenced objects come first.

    A Namespace is included only under our default name, so that deleting these objects never deletes a namespace that
    others may use.
    """
    own = [_own_namespace()] if chosen.namespace == DEFAULT_NAMESPACE else []
    return tuple(map(_labelled, (*own, *crd.render(chosen.api_group), *_controller(chosen))))


def names() -> set[tuple[str, str]]:
    """Kind and name of everything that an installation can contain, except its namespace and CRDs."""
    most = Installation("any", extras=EXTRAS, watch_namespaces=("any",))
    return {(each["kind"], each["metadata"]["name"]) for each in _controller(most)}


def _controller(chosen: Installation) -> list[Object]:
    return [
        _service_account(chosen),
        *_granted(chosen),
        *_elected(chosen),
        *rbac.people_roles(chosen.api_group),
        disruption_budget(chosen),
        *extras.wanted(chosen),
        deployment(chosen),
    ]


def home(chosen: Installation) -> Object:
    """The controller's namespace, for clusters where it does not exist."""
    own = chosen.namespace == DEFAULT_NAMESPACE
    return _labelled(_own_namespace() if own else NAMESPACES.manifest(chosen.namespace))


def _own_namespace() -> Object:
    """Enforces the restricted pod security standard: only the controller runs there."""
    made = NAMESPACES.manifest(DEFAULT_NAMESPACE)
    made["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}
    return made


def _service_account(chosen: Installation) -> Object:
    return SERVICE_ACCOUNTS.manifest(CONTROLLER, chosen.namespace, automountServiceAccountToken=False)


def _granted(chosen: Installation) -> list[Object]:
    """The controller's roles and bindings.

    A ClusterRoleBinding binds the ClusterRole of this name; when only some namespaces are watched, that role has only
    the rules for cluster-scoped kinds, and RoleBindings bind a second one in each of these namespaces.
    """
    everything = rbac.controller_rules(chosen.api_group)
    bound = rbac.binding(CLUSTER_ROLE_BINDINGS.manifest(CONTROLLER), CLUSTER_ROLES, CONTROLLER, chosen.namespace)
    if not chosen.watch_namespaces:
        return [rbac.role(CONTROLLER, everything), bound]
    bindings = (ROLE_BINDINGS.manifest(CONTROLLER, namespace) for namespace in chosen.watch_namespaces)
    return [
        rbac.role(CONTROLLER, (rule for rule in everything if rule.cluster)),
        rbac.role(NAMESPACED, (rule for rule in everything if not rule.cluster)),
        bound,
        *(rbac.binding(each, CLUSTER_ROLES, NAMESPACED, chosen.namespace) for each in bindings),
    ]


def _elected(chosen: Installation) -> list[Object]:
    """Permissions for the Lease, in the controller's namespace only."""
    rules = [rule.rendered() for rule in rbac.leader_election_rules()]
    made = ROLE_BINDINGS.manifest(ELECTION, chosen.namespace)
    return [
        ROLES.manifest(ELECTION, chosen.namespace, rules=rules),
        rbac.binding(made, ROLES, ELECTION, chosen.namespace),
    ]


def _labelled(obj: Object) -> Object:
    metadata = obj["metadata"]
    ours = {"app.kubernetes.io/name": PRODUCT, PART_OF: PRODUCT, "app.kubernetes.io/version": __version__}
    return {**obj, "metadata": {**metadata, "labels": {**ours, **(metadata.get("labels") or {})}}}
