"""The CustomResourceDefinitions of Rollout and BatchRelease, rendered from the models for any API group."""

from __future__ import annotations

from typing import Any

from rollout_lws.api.batch_release import BatchReleaseSpec, BatchReleaseStatus
from rollout_lws.api.resources import batch_releases, rollouts
from rollout_lws.api.rollout_spec import RolloutSpec
from rollout_lws.api.rollout_status import RolloutStatus
from rollout_lws.api.structural import structural
from rollout_lws.objects.released import RELEASED
from rollout_lws.objects.resources import DEFAULT_API_GROUP, Resource

_STRATEGY = "has(self.canary) != has(self.blueGreen)"
_STEP_REPLICAS = (
    "type(self.replicas) == int ? self.replicas > 0 :"
    " self.replicas != '0%' && self.replicas != '00%' && self.replicas != '000%'"
)
_CAPACITY = (
    "!has(self.capacity) || !has(self.enableExtraWorkloadForCanary)"
    " || self.enableExtraWorkloadForCanary == (self.capacity in ['ExtraWorkload', 'Shift'])"
)
_WORKLOAD = " || ".join(f"self.apiVersion == '{each.api_version}' && self.kind == '{each.kind}'" for each in RELEASED)
_RELEASED = " and ".join(f"{each.api_version} {each.kind}" for each in RELEASED)
_SAME_KIND = (
    "!has(self.counterpartRef) || (self.counterpartRef.apiVersion == self.workloadRef.apiVersion"
    " && self.counterpartRef.kind == self.workloadRef.kind && self.counterpartRef.name != self.workloadRef.name)"
)
_PAIR = (
    "has(self.counterpartRef) == (has(self.strategy.canary) && has(self.strategy.canary.capacity)"
    " && self.strategy.canary.capacity == 'Pair')"
)
_PAIR_REPLICAS = "!has(self.touch) || !has(self.replicas)"
_SHIFTS = (
    "!has(self.strategy.canary) || !has(self.strategy.canary.shift) || (!has(self.touch)"
    " && has(self.strategy.canary.capacity) && self.strategy.canary.capacity in ['Pair', 'Shift'])"
)
_ROUTED = (
    "!has(self.capacity) || self.capacity != 'Shift' || (has(self.trafficRoutings) && size(self.trafficRoutings) > 0)"
)
_KEEPS = (
    "!has(self.scaleDownDelaySeconds) || self.scaleDownDelaySeconds == 0 || (has(self.promotion)"
    " && self.promotion == 'Swap' && has(self.trafficRoutings) && size(self.trafficRoutings) > 0)"
)
#: Absent, there is one group beyond the number, and none may lack in it.
_SHIFT_MARGIN = (
    "!has(self.maxExtraGroups)"
    " || (type(self.maxExtraGroups) == int ? self.maxExtraGroups > 0 : self.maxExtraGroups != '0%')"
    " || (has(self.maxUnavailableGroups) && (type(self.maxUnavailableGroups) == int"
    " ? self.maxUnavailableGroups > 0 : self.maxUnavailableGroups != '0%'))"
)
_COMPANIONS = "!has(self.companions) || size(self.companions) == 0 || has(self.counterpartRef)"
_COMPANION_REPLICAS = "!has(self.companions) || self.companions.all(each, has(each.replicas) != has(self.touch))"
_COMPANIONS_STAY = (
    "!has(self.companions) || size(self.companions) == 0 || !has(self.strategy.canary)"
    " || !has(self.strategy.canary.shift)"
)
_APPROVAL = "!has(self.duration) || !has(self.approvalTimeoutSeconds)"
_NAME = "size(self.metadata.name) <= 63"
_IN_CARE = "!has(oldSelf.status) || !has(oldSelf.status.stable) || self.spec.workloadRef == oldSelf.spec.workloadRef"
_PAIR_IN_CARE = (
    "!has(oldSelf.status) || !has(oldSelf.status.stable)"
    " || (has(self.spec.counterpartRef) == has(oldSelf.spec.counterpartRef)"
    " && (!has(self.spec.counterpartRef) || self.spec.counterpartRef.name == oldSelf.spec.counterpartRef.name)"
    " && has(self.spec.touch) == has(oldSelf.spec.touch)"
    " && (has(self.spec.companions) ? size(self.spec.companions) : 0)"
    " == (has(oldSelf.spec.companions) ? size(oldSelf.spec.companions) : 0)"
    " && (!has(self.spec.companions) || !has(oldSelf.spec.companions) || self.spec.companions.all(each,"
    " oldSelf.spec.companions.exists(was, was.name == each.name && was.counterpart == each.counterpart))))"
)


def render(group: str = DEFAULT_API_GROUP) -> list[dict[str, Any]]:
    """Both manifests, the Rollout's first. Applying them on a cluster that runs Kruise needs another ``group``."""
    return [_rollout(rollouts(group)), _batch_release(batch_releases(group))]


def _rollout(resource: Resource) -> dict[str, Any]:
    spec, status = structural(RolloutSpec), structural(RolloutStatus)
    _rule(spec["properties"]["workloadRef"], _WORKLOAD, f"only {_RELEASED} can be released")
    _rule(spec, _SAME_KIND, "counterpartRef must name another workload of the kind of workloadRef")
    _rule(spec, _PAIR_REPLICAS, "with touch RouteOnly no workload is scaled: scale the workload itself")
    _rule(spec, _PAIR, "capacity Pair and counterpartRef go together: set both or neither")
    _rule(spec, _SHIFTS, "shift is for capacity Shift, and for a pair whose workloads the release scales (no touch)")
    _rule(spec, _COMPANIONS, "companions are of a pair: name its second workload in counterpartRef")
    _rule(
        spec,
        _COMPANION_REPLICAS,
        "each companion needs replicas, unless touch is RouteOnly: then its owner scales it",
    )
    _rule(spec, _COMPANIONS_STAY, "groups of companions cannot be exchanged one by one: remove shift, or companions")
    strategy = spec["properties"]["strategy"]
    _rule(strategy, _STRATEGY, "exactly one of canary and blueGreen must be set")
    for style in ("canary", "blueGreen"):
        steps = strategy["properties"][style]["properties"]["steps"]
        _rule(steps["items"], _STEP_REPLICAS, "replicas must be more than 0")
        pause = steps["items"]["properties"]["pause"]
        _rule(pause, _APPROVAL, "approvalTimeoutSeconds needs a pause without duration")
    _rule(
        strategy["properties"]["canary"],
        _CAPACITY,
        "capacity contradicts enableExtraWorkloadForCanary: remove the latter",
    )
    _rule(
        strategy["properties"]["canary"],
        _ROUTED,
        "capacity Shift takes requests off groups before they go: it needs trafficRoutings",
    )
    _rule(
        strategy["properties"]["blueGreen"],
        _KEEPS,
        "scaleDownDelaySeconds keeps the groups that promotion Swap has taken the requests off by trafficRoutings",
    )
    _rule(
        strategy["properties"]["canary"]["properties"]["shift"],
        _SHIFT_MARGIN,
        "with maxExtraGroups 0 a group has to be allowed to lack: set maxUnavailableGroups 1, or remove maxExtraGroups",
    )
    status["properties"]["conditions"] |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    columns = [
        _column("STATUS", ".status.summary.state", "What the release does now"),
        _column("STEP", ".status.summary.step", "Current step of all"),
        _column("TRAFFIC", ".status.summary.traffic", "Share of requests for the new version"),
        _column("NEW", ".status.summary.new", "Groups of the new version, ready of existing"),
        _column("STABLE", ".status.summary.stable", "Groups of the stable version, ready of existing"),
        _column("AGE", ".metadata.creationTimestamp", "Age", kind="date"),
        # The wide ones come last, the sentence at the end of the line.
        _column(
            "ACCELERATORS", ".status.summary.accelerators", "Accelerators of all groups", kind="integer", wide=True
        ),
        _column("SINCE", ".status.summary.since", "Since when STATUS is this", kind="date", wide=True),
        _column("PHASE", ".status.phase", "Kruise's phase", wide=True),
        _column("MESSAGE", ".status.message", "What is waited for", wide=True),
    ]
    definition = _definition(
        resource, "Progressive delivery of a LeaderWorkerSet or a StatefulSet.", spec, status, columns, ["lwsro"]
    )
    definition["spec"]["versions"][0]["subresources"]["scale"] = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    root = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    _rule(root, _NAME, "the name may have at most 63 characters: objects of a release carry it as a label")
    _rule(
        root,
        _IN_CARE,
        "spec.workloadRef cannot change while that workload is in care, it would stay held: set spec.disabled to true"
        " first",
    )
    _rule(
        root,
        _PAIR_IN_CARE,
        "spec.counterpartRef, spec.touch and the names of spec.companions cannot change while the workloads are in"
        " care: set spec.disabled to true first",
    )
    return definition


def _batch_release(resource: Resource) -> dict[str, Any]:
    columns = [
        _column("KIND", ".spec.workloadRef.kind", "Kind of the workload"),
        _column("PHASE", ".status.phase", "Preparing, Progressing, Finalizing or Completed"),
        _column("BATCH", ".status.canaryStatus.currentBatch", "0-based batch", kind="integer"),
        _column("BATCH-STATE", ".status.canaryStatus.batchState", "Upgrading, Verifying or Ready"),
        _column("AGE", ".metadata.creationTimestamp", "Age", kind="date"),
    ]
    spec, status = structural(BatchReleaseSpec), structural(BatchReleaseStatus)
    return _definition(resource, "Capacity of one release on record; made by its Rollout.", spec, status, columns, [])


def _definition(
    resource: Resource,
    description: str,
    spec: dict[str, Any],
    status: dict[str, Any],
    columns: list[dict[str, Any]],
    short_names: list[str],
) -> dict[str, Any]:
    schema = {
        "description": description,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"description": f"Always {resource.api_version}.", "type": "string"},
            "kind": {"description": f"Always {resource.kind}.", "type": "string"},
            # A real API server refuses any further word about it.
            "metadata": {"type": "object"},
            "spec": {"description": "What is wanted.", **spec},
            "status": {"description": "What is there.", **status},
        },
    }
    names = {
        "kind": resource.kind,
        "listKind": resource.kind + "List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": names | ({"shortNames": short_names} if short_names else {}),
            "scope": "Namespaced",
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _rule(schema: dict[str, Any], rule: str, message: str) -> None:
    schema.setdefault("x-kubernetes-validations", []).append({"rule": rule, "message": message})


def _column(name: str, path: str, description: str, *, kind: str = "string", wide: bool = False) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return column | ({"priority": 1} if wide else {})
