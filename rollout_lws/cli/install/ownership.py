"""Whether an installation may replace what a cluster already has: pure checks of objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rollout_lws.cli.install.manifests import PART_OF, PRODUCT
from rollout_lws.cli.install.options import Installation
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.cli.rollouts import SHORT_NAME
from rollout_lws.objects.resources import DEFAULT_API_GROUP, SERVICE_ACCOUNTS
from rollout_lws.observe.capabilities import CRD_NAME, of_schema, schema_of

Object = dict[str, Any]


def definitions(chosen: Installation) -> tuple[str, ...]:
    """Names of the CRDs to check: ours, and LeaderWorkerSet's."""
    return (*_ours(chosen), CRD_NAME)


@dataclass(frozen=True, slots=True)
class Found:
    """The cluster's state: the existing CRDs of ``definitions`` by name; the controller's ClusterRoleBinding, and its
    Deployment in the installation's namespace.
    """

    definitions: Mapping[str, Object]
    binding: Object | None = None
    deployment: Object | None = None


def refusal(chosen: Installation, found: Found) -> str | None:
    """Why nothing may be applied, None when everything may be."""
    return (
        _helms(chosen, found.deployment)
        or _other_installation(chosen, found.binding)
        or _other_group(chosen, found.deployment)
        or _foreign_definitions(chosen, found.definitions)
    )


def warnings(chosen: Installation, found: Found) -> list[str]:
    """Changes that the administrator may not have intended, and missing prerequisites."""
    told = []
    if found.deployment is not None:
        before, now = _watched(found.deployment), set(chosen.watch_namespaces)
        if before != now:
            told.append(f"the controller watched {_scope(before)} until now, and watches {_scope(now)} from now on")
    leader_worker_set = found.definitions.get(CRD_NAME)
    if leader_worker_set is None:
        told.append("LeaderWorkerSet is not installed: the controller waits for it (0.9 or newer)")
    elif _too_old(leader_worker_set):
        told.append("LeaderWorkerSet is older than 0.9 here: nothing can be released before it is upgraded")
    return told


def is_ours(obj: Object) -> bool:
    """Whether the object has our installation's label."""
    return bool((obj["metadata"].get("labels") or {}).get(PART_OF) == PRODUCT)


def _foreign_definitions(chosen: Installation, found: Mapping[str, Object]) -> str | None:
    """Refuse CRDs of another product. Our Rollouts alone have that short name, even from plain manifests; the rest of
    their group is then ours too. OpenKruise's have the same name and group, but another schema, and users.
    """
    rollouts, records = _ours(chosen)
    theirs = [name for name in (rollouts, records) if name in found and not is_ours(found[name])]
    if not theirs or (rollouts in found and SHORT_NAME in (found[rollouts]["spec"]["names"].get("shortNames") or ())):
        return None
    return (
        f"CustomResourceDefinition {_and(theirs)} {'are' if len(theirs) > 1 else 'is'} another product's (OpenKruise"
        " Rollouts?), and is left alone: install under a group of your own with --api-group, for example --api-group"
        " rollouts.example.com"
    )


def _helms(chosen: Installation, deployment: Object | None) -> str | None:
    """Refuse an installation by Helm: both tools would revert each other's fields."""
    release = (((deployment or {}).get("metadata") or {}).get("annotations") or {}).get("meta.helm.sh/release-name")
    if not release:
        return None
    return f"Helm has installed this: upgrade it with helm upgrade {release} --namespace {chosen.namespace}"


def _other_installation(chosen: Installation, binding: Object | None) -> str | None:
    """Refuse a second controller, or one that was set up by hand: it would lose its permissions, or race with ours."""
    own = (SERVICE_ACCOUNTS.kind, chosen.namespace, CONTROLLER)
    subjects = [
        (each.get("kind"), each.get("namespace"), each.get("name")) for each in (binding or {}).get("subjects") or ()
    ]
    others = [" ".join(str(part) for part in each if part) for each in subjects if each != own]
    if not others:
        return None
    return (
        f"ClusterRoleBinding {CONTROLLER} gives rights to {_and(others)}, which would lose them, and a cluster has one"
        " installation: upgrade that one with its --namespace, or delete it and the binding first"
    )


def _other_group(chosen: Installation, deployment: Object | None) -> str | None:
    """Refuse another API group: no controller would reconcile the old group's Rollouts, whose LWSs would stay held."""
    if deployment is None:
        return None
    before = next(iter(flags(deployment, "--api-group")), DEFAULT_API_GROUP)
    if before == chosen.api_group:
        return None
    return (
        f"this installation takes care of API group {before}: upgrade it with --api-group {before}. To change the"
        " group, delete the Rollouts of that one first, while its controller runs, then the Deployment"
    )


def _watched(deployment: Object) -> set[str]:
    return set(flags(deployment, "--namespace"))


def _scope(namespaces: set[str]) -> str:
    return f"namespace {_and(sorted(namespaces))}" if namespaces else "all namespaces"


def flags(deployment: Object, flag: str) -> list[str]:
    """Values of a flag in the arguments of a Deployment's controller."""
    return [
        argument.partition("=")[2]
        for container in deployment["spec"]["template"]["spec"]["containers"]
        for argument in (*(container.get("command") or ()), *(container.get("args") or ()))
        if argument.startswith(f"{flag}=")
    ]


def _too_old(leader_worker_set: Object) -> bool:
    return not of_schema(schema_of(leader_worker_set)).observed_generation


def _ours(chosen: Installation) -> tuple[str, str]:
    return f"rollouts.{chosen.api_group}", f"batchreleases.{chosen.api_group}"


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)
