"""A namespace as the cluster has it now, by a few lists: what a release of one of its LWSs may have to do with."""

from __future__ import annotations

from collections.abc import Iterable

from rollout_lws.api.resources import Keys, batch_releases, rollouts
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    CUSTOM_RESOURCE_DEFINITIONS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
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

#: Kinds without which nothing can be told of a release.
_NEEDED = (LEADER_WORKER_SETS, PODS, STATEFUL_SETS, CONTROLLER_REVISIONS, SERVICES)
#: Kinds that a cluster may lack, or that not everybody may list.
_BESIDES = (
    *ROUTING_KINDS,
    POD_DISRUPTION_BUDGETS,
    HORIZONTAL_POD_AUTOSCALERS,
    RESOURCE_QUOTAS,
)


def look(transport: Transport, keys: Keys, workloads: Iterable[str] = ()) -> Snapshot:
    """The transport's namespace; pods are leaders, and all pods of the LWSs ``workloads``.

    ApiError when what every release needs may not be listed; what may be missing besides is noted in the snapshot.
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
    if resource is CONTROLLER_REVISIONS:
        # Those of DaemonSets and StatefulSets of other people are many.
        return [
            each
            for label in (LWS_NAME, history)
            for each in transport.get(path, labelSelector=label).get("items") or ()
        ]
    if resource is PODS:
        found = transport.get(path, labelSelector=f"{LWS_WORKER_INDEX}=0").get("items") or []
        if workloads:
            # Workers tell how long groups took to load.
            selector = f"{LWS_NAME} in ({workloads}),{LWS_WORKER_INDEX}!=0"
            found += transport.get(path, labelSelector=selector).get("items") or []
        return list(found)
    # Those of StatefulSets that are no LWS's concern nobody here.
    query = {"labelSelector": LWS_NAME} if resource is STATEFUL_SETS else {}
    return list(transport.get(path, **query).get("items") or ())


def _workload_schema(transport: Transport) -> Object:
    """What the cluster knows of LeaderWorkerSets; {} for a person who may not read definitions."""
    try:
        return schema_of(transport.get(CUSTOM_RESOURCE_DEFINITIONS.path(name=CRD_NAME)))
    except ApiError:
        return {}
