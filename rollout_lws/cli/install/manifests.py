"""The objects of an installation, in the order in which they can be applied: functions of one value, and of nothing
else.
"""

from __future__ import annotations

from typing import Any

from rollout_lws import __version__
from rollout_lws.api import crd
from rollout_lws.cli.install import extras, rights
from rollout_lws.cli.install.deployment import deployment, disruption_budget
from rollout_lws.cli.install.installation import DEFAULT_NAMESPACE, Installation
from rollout_lws.cli.install.rights import CONTROLLER
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)

Object = dict[str, Any]
PART_OF = "app.kubernetes.io/part-of"
PRODUCT = "rollout-lws"
#: The rights of a controller that sees some namespaces only, which it has in these.
NAMESPACED = f"{CONTROLLER}-namespaced"
#: The rights to the Lease, which it has where it lives.
ELECTION = f"{CONTROLLER}-leader-election"


def objects(chosen: Installation) -> tuple[Object, ...]:
    """Everything, each with the labels of the product; what others refer to comes first.

    Only the namespace that has our name is among them: whoever deletes these objects deletes no other one, which may be
    somebody else's home too.
    """
    made = (
        *([_own_namespace()] if chosen.namespace == DEFAULT_NAMESPACE else ()),
        *crd.render(chosen.api_group),
        _service_account(chosen),
        *_granted(chosen),
        *_elected(chosen),
        *rights.people_roles(chosen.api_group),
        disruption_budget(chosen),
        *extras.wanted(chosen),
        deployment(chosen),
    )
    return tuple(_labelled(each) for each in made)


def home(chosen: Installation) -> Object:
    """The controller's namespace as it is made where there is none."""
    made = _own_namespace() if chosen.namespace == DEFAULT_NAMESPACE else _made(NAMESPACES, {"name": chosen.namespace})
    return _labelled(made)


def _own_namespace() -> Object:
    """Held to the restricted standard: nobody else lives there."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return _made(NAMESPACES, {"name": DEFAULT_NAMESPACE, "labels": labels})


def _service_account(chosen: Installation) -> Object:
    account = _made(SERVICE_ACCOUNTS, {"name": CONTROLLER, "namespace": chosen.namespace})
    return account | {"automountServiceAccountToken": False}


def _granted(chosen: Installation) -> list[Object]:
    """The controller's roles and what gives it them.

    The ClusterRole of this name is bound for the whole cluster; so where only some namespaces are watched it has
    nothing but what is in none, and a second one is bound in each of these.
    """
    everything = rights.controller_rules(chosen.api_group)
    bound = _binding(_made(CLUSTER_ROLE_BINDINGS, {"name": CONTROLLER}), CLUSTER_ROLES, CONTROLLER, chosen)
    if not chosen.watch_namespaces:
        return [rights.role(CONTROLLER, everything), bound]
    return [
        rights.role(CONTROLLER, (rule for rule in everything if rule.cluster)),
        rights.role(NAMESPACED, (rule for rule in everything if not rule.cluster)),
        bound,
        *(
            _binding(
                _made(ROLE_BINDINGS, {"name": CONTROLLER, "namespace": namespace}), CLUSTER_ROLES, NAMESPACED, chosen
            )
            for namespace in chosen.watch_namespaces
        ),
    ]


def _elected(chosen: Installation) -> list[Object]:
    """The rights to the Lease, in no other namespace."""
    metadata = {"name": ELECTION, "namespace": chosen.namespace}
    rules = [rule.rendered() for rule in rights.leader_election_rules()]
    return [
        _made(ROLES, dict(metadata)) | {"rules": rules},
        _binding(_made(ROLE_BINDINGS, dict(metadata)), ROLES, ELECTION, chosen),
    ]


def _binding(made: Object, kind: Resource, role: str, chosen: Installation) -> Object:
    return made | {
        "roleRef": {"apiGroup": kind.group, "kind": kind.kind, "name": role},
        "subjects": [{"kind": SERVICE_ACCOUNTS.kind, "name": CONTROLLER, "namespace": chosen.namespace}],
    }


def _made(resource: Resource, metadata: Object) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def _labelled(obj: Object) -> Object:
    metadata = obj["metadata"]
    ours = {"app.kubernetes.io/name": PRODUCT, PART_OF: PRODUCT, "app.kubernetes.io/version": __version__}
    return {**obj, "metadata": {**metadata, "labels": {**ours, **(metadata.get("labels") or {})}}}
