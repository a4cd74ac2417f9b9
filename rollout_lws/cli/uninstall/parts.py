"""The objects of an installation, told from others' by labels and names, whoever applied them: pure.

Nothing is asked for by the flags of ``install``: what is on the cluster says what was installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rollout_lws.cli.install.manifests import PART_OF, PRODUCT
from rollout_lws.cli.install.ownership import is_ours
from rollout_lws.cli.install.rights import CONTROLLER
from rollout_lws.cli.rollouts import SHORT_NAME
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEASES,
    MUTATING_WEBHOOKS,
    POD_DISRUPTION_BUDGETS,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    SERVICES,
    VALIDATING_WEBHOOKS,
    Resource,
)

Object = dict[str, Any]
_ADMISSION, _RBAC = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
#: In the order in which they go: what asks the controller or limits others first, its rights when it has ended.
KINDS = (
    VALIDATING_WEBHOOKS,
    MUTATING_WEBHOOKS,
    Resource(
        _ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
    ),
    Resource(_ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False),
    POD_DISRUPTION_BUDGETS,
    DEPLOYMENTS,
    Resource("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
    Resource("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"),
    SERVICES,
    CONFIG_MAPS,
    Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
    ROLE_BINDINGS,
    Resource(_RBAC, "v1", "Role", "roles"),
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    SERVICE_ACCOUNTS,
    LEASES,
)
SELECTOR = f"{PART_OF}={PRODUCT}"
_HELM_RELEASE, _HELM_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
_HELM_POLICY = "helm.sh/resource-policy"


@dataclass(frozen=True, slots=True)
class Part:
    """One object to delete."""

    resource: Resource
    namespace: str
    name: str
    uid: str

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace, self.name)

    def __str__(self) -> str:
        """As kubectl tells it, with the namespace."""
        group = f".{self.resource.group}" if self.resource.group else ""
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.resource.kind.lower()}{group}/{self.name}{where}"


@dataclass(frozen=True, slots=True)
class Parts:
    """``doomed`` in the order in which they go, definitions and the namespace apart; ``stay`` are lines that say what
    is left alone and why; ``helm`` are the commands that take away what Helm has made.
    """

    doomed: tuple[Part, ...] = ()
    definitions: tuple[Part, ...] = ()
    stay: tuple[str, ...] = ()
    helm: tuple[str, ...] = ()


def parts(labelled: Mapping[Resource, Iterable[Object]], definitions: Iterable[Object], groups: Iterable[str]) -> Parts:
    """``labelled`` are objects with our label, by kind; ``groups`` the API groups whose definitions are ours."""
    names = definitions_of(groups)
    ours = [each for each in definitions if each["metadata"]["name"] in names]
    found = [(resource, each) for resource in KINDS for each in labelled.get(resource, ())]
    # Helm keeps what says so when it takes a release away, and everything of the release stays on it; so what it
    # would take away tells whether the release is still there.
    standing = {by_helm(each) for each in (*(each for _, each in found), *ours) if not _kept_by_helm(each)} - {""}
    doomed: list[Part] = []
    going: list[Part] = []
    stay: list[str] = []
    for resource, each in (*found, *((CUSTOM_RESOURCE_DEFINITIONS, each) for each in ours)):
        part = part_of(resource, each)
        if by_helm(each) in standing:
            stay.append(f"{part}: Helm's")
        elif resource == CUSTOM_RESOURCE_DEFINITIONS:
            going.append(part)
        elif not _installed(part):
            stay.append(f"{part}: it has our label, and no name that an installation gives")
        else:
            doomed.append(part)
    by_name = sorted(going, key=lambda each: each.name)
    return Parts(tuple(doomed), tuple(by_name), tuple(stay), tuple(sorted(standing)))


def definitions_of(groups: Iterable[str]) -> set[str]:
    """Names of the definitions of ours in these API groups."""
    return {f"{plural}.{group}" for group in groups for plural in ("rollouts", "batchreleases")}


def part_of(resource: Resource, obj: Object) -> Part:
    meta = obj["metadata"]
    return Part(resource, meta.get("namespace") or "", meta["name"], meta["uid"])


def our_groups(definitions: Iterable[Object]) -> tuple[str, ...]:
    """API groups whose Rollouts are ours: labelled by an installation, or with the short name that only ours have."""
    return tuple(
        sorted(
            each["spec"]["group"]
            for each in definitions
            if each["spec"]["names"]["plural"] == "rollouts"
            and each["spec"]["names"]["kind"] == "Rollout"
            and (is_ours(each) or SHORT_NAME in (each["spec"]["names"].get("shortNames") or ()))
        )
    )


def by_helm(obj: Object) -> str:
    """The command that takes away the release of Helm that an object is of, "" when it is of none. What ``helm
    template`` prints for others to apply has Helm's label, and is of no release.
    """
    notes = obj["metadata"].get("annotations") or {}
    release, namespace = notes.get(_HELM_RELEASE), notes.get(_HELM_NAMESPACE)
    if not release:
        return ""
    return f"helm uninstall {release}" + (f" -n {namespace}" if namespace else "")


def _kept_by_helm(obj: Object) -> bool:
    return (obj["metadata"].get("annotations") or {}).get(_HELM_POLICY) == "keep"


def _installed(part: Part) -> bool:
    """Whether an installation gives this name; every one has the same Deployment."""
    return part.name == CONTROLLER if part.resource == DEPLOYMENTS else part.name.startswith(PRODUCT)
