"""The controller of all Gateways of any class: it accepts routes shortly after they were written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from rollout_lws.objects.resources import GRPC_ROUTES, HTTP_ROUTES, INFERENCE_POOLS, SERVICES, Resource
from rollout_lws.objects.writes import Patch
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.base import NOTHING, Change, Key, Object, Outcome, View, key_of
from rollout_lws.sandbox.behaviours.network import gateway_status
from rollout_lws.sandbox.behaviours.network.gateway_status import Reference

_Told: TypeAlias = list[gateway_status.Entry]

_ROUTES = (HTTP_ROUTES, GRPC_ROUTES)
_OURS = {resource.kind: resource for resource in (GATEWAYS, *_ROUTES, INFERENCE_POOLS)}


class Gateways:
    """Reconciles Gateways, routes and pools; a Service triggers them when created, deleted or given other ports.

    ``lag`` is the number of seconds between a change and the status update for it; a further change within that time
    restarts it if it changes the new status.
    """

    name = "gateway"

    def __init__(self, lag: float) -> None:
        self._lag = lag
        self._users: dict[Reference, dict[Key, None]] = {}
        self._due: dict[Key, tuple[_Told, float]] = {}

    def wakes(self, change: Change, view: View) -> Iterable[Key]:
        resource = change.resource
        if resource == SERVICES:
            return self._using(change) if _moved(change) else ()
        if resource == GATEWAYS:
            return dict.fromkeys((_key(resource, change.object), *self._below(change, view)))
        if resource not in (*_ROUTES, INFERENCE_POOLS):
            return ()
        self._relate(change)
        own = _key(resource, change.object)
        if resource == INFERENCE_POOLS:
            return dict.fromkeys((own, *self._using(change)))
        versions = [item for item in (change.object, change.previous) if item is not None]
        return dict.fromkeys((own, *(key for route in versions for key in _pools(route))))

    def _relate(self, change: Change) -> None:
        """Index references by target, so that a change leads to the objects that refer to it."""
        key = _key(change.resource, change.object)
        for reference in _references(change.resource, change.previous):
            self._users.get(reference, {}).pop(key, None)
        for reference in _references(change.resource, None if change.deleted else change.object):
            self._users.setdefault(reference, {})[key] = None

    def _using(self, change: Change) -> list[Key]:
        return list(self._users.get((change.resource, *key_of(change.object)), ()))

    def _below(self, change: Change, view: View) -> Iterator[Key]:
        """A Gateway's routes and their pools."""
        for key in self._using(change):
            yield key
            route = view.get(_OURS[key[0]], *key[1:])
            yield from _pools(route) if route is not None else ()

    def decide(self, key: Key, view: View, now: float) -> Outcome:
        resource = _OURS[key[0]]
        found = view.get(resource, *key[1:])
        if found is None or (resource == GATEWAYS and gateway_status.silent(found)):
            self._due.pop(key, None)
            return NOTHING
        known = _told(resource, found)
        wanted = self._wanted(resource, found, view)
        if _timeless(resource, known) == _timeless(resource, wanted):
            self._due.pop(key, None)
            return NOTHING
        planned, due = self._due.get(key, (None, 0.0))
        if planned != wanted:
            due = now + self._lag
            self._due[key] = wanted, due
        if now < due:
            return Outcome(wake_at=due)
        status: dict[str, Any]
        if resource == GATEWAYS:
            status = {"conditions": gateway_status.timed(wanted, known, now)}
        else:
            status = {"parents": gateway_status.timed_entries(wanted, known, now)}
        return Outcome((Patch(resource, key[1], key[2], {"status": status}, "seen by the Gateway", None, "status"),))

    def _wanted(self, resource: Resource, found: Object, view: View) -> _Told:
        if resource == GATEWAYS:
            return gateway_status.of_gateway(found)
        if resource in _ROUTES:
            return gateway_status.of_route(found, view)
        users = self._users.get((INFERENCE_POOLS, *key_of(found)), ())
        routes = (view.get(_OURS[key[0]], *key[1:]) for key in users)
        return gateway_status.of_pool(found, [route for route in routes if route is not None], view)


def _key(resource: Resource, obj: Object) -> Key:
    return (resource.kind, *key_of(obj))


def _references(resource: Resource, obj: Object | None) -> Iterator[Reference]:
    if obj is None:
        return
    if resource == INFERENCE_POOLS:
        service = gateway_status.picker(obj)
        yield from () if service is None else (service,)
        return
    yield from (gateway for _, gateway in gateway_status.parents(obj))
    for ref in gateway_status.backend_refs(obj):
        meant = gateway_status.backend(ref, key_of(obj)[0])
        yield from () if meant is None else (meant,)


def _pools(route: Object) -> Iterator[Key]:
    for resource, namespace, name in _references(HTTP_ROUTES, route):
        if resource == INFERENCE_POOLS:
            yield resource.kind, namespace, name


def _moved(change: Change) -> bool:
    """Whether a change of a Service can change the status of objects that refer to it."""
    if change.deleted or change.previous is None:
        return True
    return bool(change.object["spec"].get("ports") != change.previous["spec"].get("ports"))


def _told(resource: Resource, obj: Object) -> _Told:
    return list((obj.get("status") or {}).get("conditions" if resource == GATEWAYS else "parents") or ())


def _timeless(resource: Resource, told: _Told) -> _Told:
    if resource != GATEWAYS:
        return gateway_status.without_times(told)
    # Only these conditions of a Gateway are this controller's own.
    mine = [condition for condition in told if condition["type"] in ("Accepted", "Programmed")]
    return [{key: value for key, value in condition.items() if key != "lastTransitionTime"} for condition in mine]
