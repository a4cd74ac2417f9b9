"""LWS's mutating and validating webhooks for LeaderWorkerSets, with the defaults and rules of v0.10, and those of 1.0
for the members that it added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.objects.spelling import in_full
from rollout_lws.sandbox.behaviours.base import Object, annotations_of
from rollout_lws.sandbox.behaviours.lws import added_rules
from rollout_lws.sandbox.behaviours.lws.added_rules import invalid
from rollout_lws.sandbox.behaviours.lws.objects import SUBGROUP_EXCLUSIVE_TOPOLOGY, since_1_0
from rollout_lws.sandbox.behaviours.lws.partition import resolve

if TYPE_CHECKING:
    from rollout_lws.sandbox.apiserver import Operation

#: The names under which LWS registers its webhooks; a denial message contains the name.
MUTATING, VALIDATING = "mleaderworkerset.kb.io", "vleaderworkerset.kb.io"

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_PERCENT = re.compile(r"[0-9]+%")
_MOST_PODS = 2**31 - 1
_ROLLING = {"maxUnavailable": 1, "maxSurge": 0, "partition": 0}


def admit(operation: Operation) -> dict[str, Any]:
    """The operation's object with defaults; ApiError 403 when the webhook denies it. Other kinds pass unchanged."""
    if not concerned(operation):
        return operation.object
    lws = defaulted(operation.object)
    refusal = refused(lws, operation.old)
    if refusal:
        raise ApiError(403, "Forbidden", f'admission webhook "{VALIDATING}" denied the request: {refusal}')
    return lws


def concerned(operation: Operation) -> bool:
    """Whether this is a LeaderWorkerSet that the webhooks can read; malformed ones are left to schema validation."""
    if operation.resource != LEADER_WORKER_SETS or operation.subresource == "status":
        return False
    return _well_formed(operation.object.get("spec"))


def refused(lws: Object, old: Object | None) -> str:
    """Why the webhook denies a defaulted LeaderWorkerSet; "" when it admits it."""
    violations = validate(lws, old)
    return f"[{', '.join(violations)}]" if len(violations) > 1 else "".join(violations)


def defaulted(lws: dict[str, Any]) -> dict[str, Any]:
    """``lws`` with the defaults of the CRD schema and the mutating webhook; unchanged parts are shared."""
    spec = {"replicas": 1, "startupPolicy": "LeaderCreated", **(lws.get("spec") or {})}
    groups = {"size": 1, **(spec.get("leaderWorkerTemplate") or {})}
    policy = groups.get("restartPolicy") or "RecreateGroupOnPodRestart"
    groups["restartPolicy"] = "None" if policy == "Default" else policy
    subgroups = groups.get("subGroupPolicy")
    if subgroups:
        groups["subGroupPolicy"] = {"subGroupPolicyType": "LeaderWorker", **subgroups}
    strategy = dict(spec.get("rolloutStrategy") or {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    strategy["rollingUpdateConfiguration"] = {**_ROLLING, **(strategy.get("rollingUpdateConfiguration") or {})}
    network = dict(spec.get("networkConfig") or {})
    network["subdomainPolicy"] = network.get("subdomainPolicy") or "Shared"
    filled = {**spec, "leaderWorkerTemplate": groups, "rolloutStrategy": strategy, "networkConfig": network}
    if since_1_0(lws):
        filled["groupReplacementPolicy"] = spec.get("groupReplacementPolicy") or "PostTermination"
        filled["podTerminationPolicy"] = spec.get("podTerminationPolicy") or "Default"
    if policy == "Default" or (lws.get("spec") or {}).get("networkConfig") != network:
        # The webhook fills in something that no schema default covers, so it writes the whole object back.
        filled = in_full(filled)
    return lws if filled == lws.get("spec") else {**lws, "spec": filled}


def validate(lws: Object, old: Object | None) -> list[str]:
    """All violations of a defaulted LeaderWorkerSet, each with its field path."""
    spec, name = lws["spec"], lws["metadata"]["name"]
    found: list[str] = []
    if not _NAME.fullmatch(name):
        found.append(invalid("metadata.name", name, "must be a DNS-1035 label of at most 63 characters"))
    replicas, size = int(spec["replicas"]), int(spec["leaderWorkerTemplate"]["size"])
    if replicas < 0:
        found.append(invalid("spec.replicas", replicas, "must be greater than or equal to 0"))
    if size < 1:
        found.append(invalid("spec.leaderWorkerTemplate.size", size, "must be greater than or equal to 1"))
    if replicas * size > _MOST_PODS:
        found.append(invalid("spec.replicas", replicas, f"replicas times size must not exceed {_MOST_PODS}"))
    found += _rolling_update(spec["rolloutStrategy"]["rollingUpdateConfiguration"], replicas)
    found += _subgroups(lws, old, size)
    found += added_rules.violations(lws)
    return found


def _well_formed(spec: Any) -> bool:
    """Whether every field read here has the type that the schema requires."""
    if not isinstance(spec, Mapping):
        return False
    groups, strategy = spec.get("leaderWorkerTemplate"), spec.get("rolloutStrategy") or {}
    if not isinstance(groups, Mapping) or not isinstance(strategy, Mapping):
        return False
    rolling, subgroups = strategy.get("rollingUpdateConfiguration") or {}, groups.get("subGroupPolicy") or {}
    network = spec.get("networkConfig") or {}
    if not all(isinstance(part, Mapping) for part in (rolling, subgroups, network)):
        return False
    whole = (
        spec.get("replicas", 1),
        groups.get("size", 1),
        rolling.get("partition", 0),
        subgroups.get("subGroupSize", 1),
    )
    either = (rolling.get("maxUnavailable", 1), rolling.get("maxSurge", 0))
    return all(isinstance(value, int) for value in whole) and all(isinstance(value, int | str) for value in either)


def _rolling_update(rolling: Mapping[str, Any], replicas: int) -> list[str]:
    path = "spec.rolloutStrategy.rollingUpdateConfiguration"
    found: list[str] = []
    partition = rolling["partition"]
    if partition < 0:
        found.append(invalid(f"{path}.partition", partition, "must be greater than or equal to 0"))
    for field in ("maxUnavailable", "maxSurge"):
        value = rolling[field]
        if isinstance(value, str) and not _PERCENT.fullmatch(value):
            found.append(invalid(f"{path}.{field}", value, "must be an integer or a percentage such as '5%'"))
        elif isinstance(value, str) and int(value.removesuffix("%")) > 100:
            found.append(invalid(f"{path}.{field}", value, "must not be greater than 100%"))
        elif isinstance(value, int) and value < 0:
            found.append(invalid(f"{path}.{field}", value, "must be greater than or equal to 0"))
    if found or replicas <= 0:
        return found
    down, up = resolve(rolling["maxUnavailable"], replicas, up=False), resolve(rolling["maxSurge"], replicas, up=True)
    if down == 0 and up == 0:
        found.append(invalid(f"{path}.maxUnavailable", down, "must not be 0 when `maxSurge` is 0"))
    return found


def _subgroups(lws: Object, old: Object | None, size: int) -> list[str]:
    path = "spec.leaderWorkerTemplate.subGroupPolicy"
    policy = lws["spec"]["leaderWorkerTemplate"].get("subGroupPolicy")
    found: list[str] = []
    if old is not None:
        before = old["spec"]["leaderWorkerTemplate"].get("subGroupPolicy")
        if bool(before) != bool(policy):
            found.append(invalid(path, policy, "cannot be added or removed after creation"))
        elif policy and before["subGroupSize"] != policy.get("subGroupSize"):
            found.append(invalid(f"{path}.subGroupSize", policy.get("subGroupSize"), "field is immutable"))
    if not policy:
        if SUBGROUP_EXCLUSIVE_TOPOLOGY in annotations_of(lws):
            where = f"metadata.annotations.{SUBGROUP_EXCLUSIVE_TOPOLOGY}"
            found.append(invalid(where, "", "cannot be set without subGroupPolicy"))
        return found
    group = policy.get("subGroupSize")
    if group is None:
        return [*found, f"{path}.subGroupSize: Required value"]
    if not 1 <= group <= size:
        found.append(invalid(f"{path}.subGroupSize", group, "must be from 1 to size"))
    elif policy["subGroupPolicyType"] == "LeaderExcluded":
        if (size - 1) % group:
            found.append(invalid(f"{path}.subGroupSize", group, "size-1 must be divisible by it with LeaderExcluded"))
    elif size % group and (size - 1) % group:
        found.append(invalid(f"{path}.subGroupSize", group, "size or size-1 must be divisible by it"))
    return found
