"""Snapshot of a namespace on the cluster, from a few lists: the objects that a release of an LWS may involve."""

from __future__ import annotations

from collections.abc import Iterable

from rollout_lws.api.resources import Keys, batch_releases, rollouts
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.errors import ApiError
from rollout_lws.objects.released import RELEASED, WITH_WORKERS
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    CUSTOM_RESOURCE_DEFINITIONS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    RESOURCE_QUOTAS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.observe.capabilities import CRD_NAME, of_objects, of_schema, schema_of
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.traffic.registry import ROUTING_KINDS

#: Kinds that every release needs; without them the snapshot is useless.
_NEEDED = (LEADER_WORKER_SETS, PODS, STATEFUL_SETS, CONTROLLER_REVISIONS, SERVICES)
#: Kinds that a cluster may not serve, or that the user may not be allowed to list.
_BESIDES = (
    *ROUTING_KINDS,
    POD_DISRUPTION_BUDGETS,
    HORIZONTAL_POD_AUTOSCALERS,
    RESOURCE_QUOTAS,
)


def look(transport: Transport, keys: Keys, workloads: Iterable[str] = ()) -> Snapshot:
    """Snapshot of the transport's namespace, with the pods that take requests, and with all pods of the workloads in
    ``workloads``.

    ApiError when a required kind cannot be listed; the snapshot records optional kinds that cannot.
    """
    objects: dict[Resource, list[Object]] = {}
    absent, refused = set(), {}
    for resource in (rollouts(keys.group), batch_releases(keys.group), *_NEEDED, *_BESIDES):
        try:
            objects[resource] = _list(transport, resource, ",".join(workloads), keys.history)
        except ApiError as error:
            if resource in _NEEDED or (error.code != 403 and not error.is_unserved):
                raise
            if error.is_unserved:
                absent.add(resource)
            else:
                refused[resource] = error.message
    schema = _workload_schema(transport)
    known = of_schema(schema) if schema else of_objects(objects[LEADER_WORKER_SETS])
    return Snapshot(keys, objects, known, schema, absent=absent, refused=refused)


def _list(transport: Transport, resource: Resource, workloads: str, history: str) -> list[Object]:
    path = resource.path(transport.namespace)
    selectors = [""]
    if resource is CONTROLLER_REVISIONS:
        # Skip the many revisions that DaemonSets own.
        selectors = [*(each.records for each in RELEASED.values()), history]
    elif resource is PODS:
        selectors = [each.leaders for each in RELEASED.values()]
        if workloads and WITH_WORKERS.leader is not None:
            # Worker pods show how long groups took to start up.
            key, value = WITH_WORKERS.leader
            selectors.append(f"{WITH_WORKERS.workload} in ({workloads}),{key}!={value}")
    queries = ({"labelSelector": each} if each else {} for each in selectors)
    return [each for query in queries for each in transport.get(path, **query).get("items") or ()]


def _workload_schema(transport: Transport) -> Object:
    """The cluster's schema of LeaderWorkerSet; {} when the user may not read CRDs."""
    try:
        return schema_of(transport.get(CUSTOM_RESOURCE_DEFINITIONS.path(name=CRD_NAME)))
    except ApiError:
        return {}
