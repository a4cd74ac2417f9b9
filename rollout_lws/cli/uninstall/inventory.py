"""Finds what an installation put on a cluster, by labels and names, and prints the commands that delete it."""

from __future__ import annotations

from collections.abc import Iterable

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.install.inventory import RIGHTS, SERVING, WEBHOOKS, labelled, listed, name_of
from rollout_lws.cli.install.manifests import PRODUCT, SELECTOR
from rollout_lws.cli.install.ownership import is_ours
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.cli.rollouts import SHORT_NAME
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    LEASES,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    Resource,
)
from rollout_lws.settings import DEFAULT_LEASE

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
    """Whether a LeaderWorkerSet is in it, or a pod that is not the controller's: both would end with it."""
    pods = (each["metadata"].get("labels") or {} for each in listed(transport, PODS, namespace))
    foreign = any(not SELECTOR.items() <= labels.items() for labels in pods)
    return foreign or bool(listed(transport, LEADER_WORKER_SETS, namespace))


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
