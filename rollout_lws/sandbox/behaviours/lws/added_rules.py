"""What LWS's validating webhook demands of the members that came after v0.10. Source: its KEPs 820, 898 and 1064."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rollout_lws.objects.meta import LABEL_KEY
from rollout_lws.sandbox.behaviours.base import Object, annotations_of
from rollout_lws.sandbox.behaviours.lws.objects import EXCLUSIVE_TOPOLOGY, SUBGROUP_EXCLUSIVE_TOPOLOGY

_RECREATES = ("RecreateGroupOnPodRestart", "RecreateGroupAfterStart")
_GROUPS = "spec.leaderWorkerTemplate"
_SUBGROUPS = f"{_GROUPS}.subGroupPolicy"


def invalid(path: str, value: object, why: str) -> str:
    shown = f'"{value}"' if isinstance(value, str) else value
    return f"{path}: Invalid value: {shown}: {why}"


def violations(lws: Object) -> Iterator[str]:
    """Of a defaulted LeaderWorkerSet, each with its field path."""
    groups = lws["spec"]["leaderWorkerTemplate"]
    limit = groups.get("maxGroupRestarts")
    if limit is not None and groups.get("restartPolicy") not in _RECREATES:
        yield invalid(f"{_GROUPS}.maxGroupRestarts", limit, f"is only supported with {' or '.join(_RECREATES)}")
    yield from _of_identity(lws["spec"])
    yield from _of_placement(lws)


def _of_identity(spec: Mapping[str, Any]) -> Iterator[str]:
    if spec.get("groupIdentity") != "Hash":
        if spec.get("groupReplacementPolicy") == "Immediate":
            yield invalid("spec.groupReplacementPolicy", "Immediate", "is only supported with groupIdentity Hash")
        return
    groups, partition = spec["leaderWorkerTemplate"], spec["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"]
    if groups.get("volumeClaimTemplates"):
        path = f"{_GROUPS}.volumeClaimTemplates"
        yield f"{path}: Forbidden: volumeClaimTemplates are not supported with groupIdentity Hash"
    if partition:
        path = "spec.rolloutStrategy.rollingUpdateConfiguration.partition"
        yield invalid(path, partition, "partition is not supported with groupIdentity Hash")
    if groups.get("maxGroupRestarts") is not None:
        path = f"{_GROUPS}.maxGroupRestarts"
        yield invalid(path, groups["maxGroupRestarts"], "is not supported with groupIdentity Hash")


def _of_placement(lws: Object) -> Iterator[str]:
    groups, marks = lws["spec"]["leaderWorkerTemplate"], annotations_of(lws)
    subgroups = groups.get("subGroupPolicy") or {}
    found = []
    for path, holder, annotation in (
        (f"{_GROUPS}.placementPolicy", groups, EXCLUSIVE_TOPOLOGY),
        (f"{_SUBGROUPS}.placementPolicy", subgroups, SUBGROUP_EXCLUSIVE_TOPOLOGY),
    ):
        policy = holder.get("placementPolicy")
        if policy is None:
            continue
        topology, exclusive = str(policy.get("topology") or ""), policy.get("type") == "ExclusiveTopology"
        if exclusive and not (topology and re.fullmatch(LABEL_KEY, topology)):
            yield invalid(f"{path}.topology", topology, "must be a label key when type is ExclusiveTopology")
        if topology and not exclusive:
            yield invalid(f"{path}.topology", topology, "must be empty unless type is ExclusiveTopology")
        if annotation in marks and marks[annotation] != topology:
            yield invalid(path, topology, f"differs from the annotation {annotation}")
        found.append(topology)
    if len(found) == 2 and found[0] and found[0] == found[1]:
        yield invalid(f"{_SUBGROUPS}.placementPolicy.topology", found[1], "must differ from that of the groups")
