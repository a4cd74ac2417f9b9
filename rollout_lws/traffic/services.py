"""Services of the two versions: the user's Service is pinned to one of them, its copy serves the other.

Routers send requests to Services, so a Service's selector decides which version serves. The user's Service keeps its
addresses and keeps serving its clients; the copy exists only during the release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import INFERENCE_POOLS, SERVICES
from rollout_lws.targets.target import Target, called
from rollout_lws.traffic import marks, selectors
from rollout_lws.traffic.copy_names import canary_service_name
from rollout_lws.traffic.names import Names
from rollout_lws.traffic.selectors import Changes, Selecting
from rollout_lws.traffic.split import Backend, Backends, Object
from rollout_lws.workload.canary import copied_marks

#: Members of spec that are an address, or make sense only for a Service that is reachable from outside the cluster.
_NOT_COPIED = frozenset(
    {
        "allocateLoadBalancerNodePorts",
        "clusterIP",
        "clusterIPs",
        "externalIPs",
        "externalName",
        "externalTrafficPolicy",
        "healthCheckNodePort",
        "loadBalancerClass",
        "loadBalancerIP",
        "loadBalancerSourceRanges",
        "type",
    }
)
#: Annotations that claim an external name or address, or report one.
_ANNOTATIONS_NOT_COPIED = re.compile(r"^(external-dns\.alpha\.kubernetes\.io/|cloud\.google\.com/neg-status$)")


SELECTING = Selecting(SERVICES, ("spec", "selector"))
pin, unpinned, drifted, selects = SELECTING.pin, SELECTING.unpinned, SELECTING.drifted, SELECTING.selects


def new_service_name(names: Names) -> str:
    """Name of the new version's Service: the user's own of a pair ("" where pools lead to its versions), else that of
    the copy that a release makes.
    """
    return names.canary_service if names.is_pair else canary_service_name(names.service)


def backends(names: Names) -> Backends:
    """The backends of the two versions in a route: InferencePools where the Rollout names them, otherwise Services."""
    if names.stable_pool and names.canary_pool:
        group, kind = INFERENCE_POOLS.group, INFERENCE_POOLS.kind
        return Backends(Backend(names.stable_pool, group, kind), Backend(names.canary_pool, group, kind))
    return Backends(Backend(names.service), Backend(new_service_name(names)))


def canary_service(
    stable: Object, by: str, keys: Keys, *, name: str, changes: Changes, owner: Mapping[str, Any]
) -> Object:
    """The manifest of a copy of the user's Service for the other version, with these selector changes and our
    annotation that says the release created it.

    The copy takes nothing that can exist only once: no address, no node port, no load balancer. It keeps the address
    families, and a headless Service stays headless.
    """
    users = unpinned(stable, by, keys)
    metadata, spec = users["metadata"], users["spec"]
    copy: dict[str, Any] = {member: value for member, value in spec.items() if member not in _NOT_COPIED}
    copy["type"] = "ClusterIP"
    if spec.get("clusterIP") == "None":
        copy["clusterIP"] = "None"
    copy["ports"] = [
        {member: value for member, value in port.items() if member != "nodePort"} for port in spec.get("ports") or ()
    ]
    annotations = copied_marks(metadata.get("annotations") or {}, keys)
    selected = {**SELECTING.selector(users), **changes}
    copy["selector"] = {key: value for key, value in selected.items() if value is not None}
    made = {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {
            "name": name,
            "namespace": metadata.get("namespace", ""),
            "labels": copied_marks(metadata.get("labels") or {}, keys),
            "annotations": {key: value for key, value in annotations.items() if not _ANNOTATIONS_NOT_COPIED.match(key)},
            "ownerReferences": [dict(owner)],
        },
        "spec": copy,
    }
    return marks.put_made(made, by, keys)


def is_headless(service: Object) -> bool:
    """Whether the Service only gives names to its pods."""
    return bool((service.get("spec") or {}).get("clusterIP") == "None")


def service_problem(
    service: Object,
    by: str,
    keys: Keys,
    *,
    workload: Target,
    leaders: Mapping[str, Sequence[Mapping[str, str]]],
    pinned: bool = True,
) -> str:
    """Why no release of ``workload`` can use this Service, as a sentence that says what to do; "" when it can.
    ``leaders`` are label sets of leader pods by the name of their workload.
    """
    name = service["metadata"]["name"]
    what = f"Service {name}"
    if name == workload.discovery_service and (workload.leader_set is None or is_headless(service)):
        return (
            f"{what} is the one by which pods of {called(workload)} find each other;"
            " make another Service for requests and name that in trafficRoutings"
        )
    if (service.get("spec") or {}).get("type") == "ExternalName":
        return f"{what} is of type ExternalName and selects no pods; name one of type ClusterIP in trafficRoutings"
    return selectors.selector_problem(
        SELECTING.selector(unpinned(service, by, keys)),
        what=what,
        workload=workload,
        leaders=leaders,
        borrowers=marks.others(service, by, keys),
        pinned=pinned,
    )
