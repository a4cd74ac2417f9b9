"""What stands on a cluster already, and whether it may be replaced: judgements of objects, without a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rollout_lws.cli.install.installation import Installation
from rollout_lws.cli.install.manifests import PART_OF, PRODUCT
from rollout_lws.cli.releases import SHORT_NAME
from rollout_lws.controller.capabilities import CRD_NAME, of_schema
from rollout_lws.objects.resources import LEADER_WORKER_SETS

Object = dict[str, Any]


def definitions(chosen: Installation) -> tuple[str, ...]:
    """Names of the CRDs that matter: ours, and LeaderWorkerSet's."""
    return (*_ours(chosen), CRD_NAME)


def refusal(chosen: Installation, found: Mapping[str, Object], binding: Object | None) -> str | None:
    """Why nothing may be applied, None when everything may. ``found`` are the cluster's CRDs by name, ``binding`` is
    the controller's ClusterRoleBinding; only those that exist.
    """
    return _foreign_definitions(chosen, found) or _other_installation(chosen, binding)


def warnings(found: Mapping[str, Object]) -> list[str]:
    """What the controller will miss on this cluster."""
    definition = found.get(CRD_NAME)
    if definition is None:
        return ["LeaderWorkerSet is not installed: the controller waits for it (0.9 or newer)"]
    schema = next(
        (
            (each.get("schema") or {}).get("openAPIV3Schema") or {}
            for each in definition["spec"]["versions"]
            if each["name"] == LEADER_WORKER_SETS.version
        ),
        {},
    )
    if not of_schema(schema).observed_generation:
        return ["the LeaderWorkerSet on this cluster is older than 0.9: nothing can be released before it is upgraded"]
    return []


def is_ours(obj: Object) -> bool:
    """Whether an installation of ours has made or labelled it."""
    return bool((obj["metadata"].get("labels") or {}).get(PART_OF) == PRODUCT)


def _foreign_definitions(chosen: Installation, found: Mapping[str, Object]) -> str | None:
    """Only our Rollouts have that short name, also where plain manifests installed them; what else is in their group
    is ours then. OpenKruise's have the same name and group, another schema, and users.
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


def _other_installation(chosen: Installation, binding: Object | None) -> str | None:
    """A second controller would take the first one's rights, or race with it."""
    homes = {subject.get("namespace") for subject in (binding or {}).get("subjects") or ()} - {None, chosen.namespace}
    if not homes:
        return None
    return (
        f"rollout-lws is installed in namespace {_and(sorted(str(each) for each in homes))}, and a cluster has one"
        f" installation: upgrade it with --namespace {min(str(each) for each in homes)}, or remove it first"
    )


def _ours(chosen: Installation) -> tuple[str, str]:
    return f"rollouts.{chosen.api_group}", f"batchreleases.{chosen.api_group}"


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)
