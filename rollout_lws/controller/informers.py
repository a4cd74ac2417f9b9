"""The watched kinds, and the mapping from each change to the Rollouts to reconcile.

Names of workloads are the key: a pod, StatefulSet, revision or Service says to which workload it belongs. A workload is
named by Rollouts, or has the name that the canary of a named one would have. So one rule turns any change into keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from rollout_lws.api import resources
from rollout_lws.api.resources import Keys
from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.meta import Meta
from rollout_lws.objects.released import RELEASED
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.workloads import ControllerRevision, Pod, StatefulSet
from rollout_lws.observe.cache_types import TRIMMED, StoredObject, StoredRollout, stored_object, stored_rollout
from rollout_lws.rollout.autoscaling.hpa_bounds import scaled_rollout, scaled_workload
from rollout_lws.targets.target import Target
from rollout_lws.traffic import marks
from rollout_lws.workload.canary import canary_name, stable_of

#: Called with each Rollout that a change concerns, as (namespace, name).
Wake = Callable[[tuple[str, str]], None]

#: Indexes: objects of an LWS, by that LWS; LWSs, by the name of their canary;
#: owned objects, by their owner's UID; Rollouts that route requests, by namespace; Services with our annotation, by
#: namespace; Rollouts, by their UID.
OF_LWS, BY_CANARY, BY_OWNER, ROUTING = "lws", "canary", "owner", "routing"
MARKED, BY_UID = "marked", "uid"


class _Object(Protocol):
    @property
    def metadata(self) -> Meta: ...


class _Belonging(_Object, Protocol):
    @property
    def workload(self) -> str:
        """The name of the workload that it belongs to; "" for none."""
        ...


_T = TypeVar("_T", bound=_Object)
_B = TypeVar("_B", bound=_Belonging)


def place(namespace: str, name: str) -> str:
    """An index entry; entries of all namespaces share one table."""
    return f"{namespace}/{name}"


def _belongs(each: _Belonging) -> Iterable[str]:
    return (place(each.metadata.namespace, each.workload),) if each.workload else ()


class Belonging(Generic[_B]):
    """Objects that belong to workloads: one informer for each kind of workload."""

    def __init__(self, informers: Iterable[Informer[_B]]) -> None:
        self.informers = tuple(informers)

    def get(self, namespace: str, name: str) -> _B | None:
        """The object of this name, None when there is none."""
        return next((found for each in self.informers if (found := each.get(namespace, name)) is not None), None)

    def of(self, workload: str) -> Iterator[_B]:
        """Those of the workload, or workloads, at this place."""
        return (found for each in self.informers for found in each.by_index(OF_LWS, workload))

    def all(self, namespace: str) -> Iterator[_B]:
        return (found for each in self.informers for found in each.all(namespace))

    def on_change(self, listener: Callable[[_B | None, _B | None], None]) -> None:
        """Has ``listener`` called with each object before and after a change, as ``Informer`` does."""
        for each in self.informers:
            each.on_change(listener)

    @property
    def is_synced(self) -> bool:
        return all(each.is_synced for each in self.informers)


class Informers:
    """The watches of one namespace, or of all when ``namespace`` is ""; ``wake`` is called per affected Rollout."""

    def __init__(self, client: Client, keys: Keys, namespace: str, wake: Wake) -> None:
        self._keys = keys
        self._wake = wake

        def informer(
            resource: Resource,
            decode: Callable[[bytes], _T],
            selector: str = "",
            **indexes: Callable[[Any], Iterable[str]],
        ) -> Informer[_T]:
            return Informer(client, resource, decode, namespace=namespace, label_selector=selector, indexes=indexes)

        self.rollouts: Informer[StoredRollout] = informer(
            resources.rollouts(keys.group), stored_rollout, lws=_named, routing=_routing, uid=_uid
        )
        self.batch_releases: Informer[StoredObject] = informer(resources.batch_releases(keys.group), stored_object)
        self.workloads: dict[Resource, Informer[Target]] = {
            kind: informer(kind, decode, RELEASED[kind].workloads, canary=_place_of_canary)
            for kind, decode in TRIMMED.workloads.items()
        }
        kinds = RELEASED.values()
        self.leaders: Belonging[Pod] = Belonging(
            informer(PODS, TRIMMED.leader, each.leaders, lws=_belongs) for each in kinds
        )
        self.stateful_sets: Belonging[StatefulSet] = Belonging(
            informer(STATEFUL_SETS, TRIMMED.stateful_set, each.stateful_sets, lws=_belongs)
            for each in kinds
            if each.stateful_sets is not None
        )
        self.revisions: Belonging[ControllerRevision] = Belonging(
            informer(CONTROLLER_REVISIONS, TRIMMED.revision, each.records, lws=_belongs) for each in kinds
        )
        self.history: Informer[ControllerRevision] = informer(
            CONTROLLER_REVISIONS, TRIMMED.history, keys.history, owner=_owners
        )
        # All Services: those that select a new version's leaders must be known, and no selector can query selectors.
        self.services: Informer[StoredObject] = informer(
            SERVICES, stored_object, lws=_belongs, owner=_owners, marked=self._noted
        )
        self.rollouts.on_change(self._rollout_changed)
        self.batch_releases.on_change(self._same_name)
        self.history.on_change(self._owned_by_rollout)
        for workloads in self.workloads.values():
            workloads.on_change(self._workload_changed)
        for belonging in (self.leaders, self.stateful_sets, self.revisions, self.services):
            belonging.on_change(self.belonging_changed)
        self.services.on_change(self.routing_changed)

    @property
    def all(self) -> tuple[Informer[Any], ...]:
        return (
            self.rollouts,
            self.batch_releases,
            *self.workloads.values(),
            *self.leaders.informers,
            *self.stateful_sets.informers,
            *self.revisions.informers,
            self.history,
            self.services,
        )

    def stable_of(self, canary: str) -> Iterator[Target]:
        """Workloads whose canary has, had or would have this place."""
        for workloads in self.workloads.values():
            yield from workloads.by_index(BY_CANARY, canary)

    def absorb(self, resource: Resource, answer: bytes) -> None:
        """Put the server's answer to a write into the caches of that kind."""
        for informer in self.all:
            if informer.resource == resource:
                informer.absorb(answer)

    def belonging_changed(self, before: _Belonging | None, after: _Belonging | None) -> None:
        """Wake the Rollouts of the workload that an object belongs to, before and after the change."""
        for each in (before, after):
            if each is not None and each.workload:
                self._wake_rollouts_around(each.metadata.namespace, each.workload)

    def routing_changed(self, before: _Object | None, after: _Object | None) -> None:
        """Wake the namespace's Rollouts that route requests, or release a version that a route or Service may reach."""
        each = after or before
        assert each is not None
        for rollout in self.rollouts.by_index(ROUTING, each.metadata.namespace):
            self._wake((rollout.metadata.namespace, rollout.metadata.name))
        self._wake_noted(before, after)

    def autoscaler_changed(self, before: StoredObject | None, after: StoredObject | None) -> None:
        """Wake the Rollout that an autoscaler scales, or those of the LWS, before and after the change."""
        for each in (before, after):
            if each is None:
                continue
            scaling = msgspec.json.decode(each.body)
            if lws := scaled_workload(scaling):
                self._wake_rollouts_of(place(each.metadata.namespace, lws))
            if rollout := scaled_rollout(scaling, self._keys.group):
                self._wake((each.metadata.namespace, rollout))
        self._wake_noted(before, after)

    def _noted(self, service: StoredObject) -> Iterable[str]:
        return (service.metadata.namespace,) if self._keys.original.encode() in service.body else ()

    def _wake_noted(self, before: _Object | None, after: _Object | None) -> None:
        """Wake the Rollouts with entries in the object's annotation, whatever their specs name now."""
        for each in (before, after):
            if isinstance(each, StoredObject) and self._keys.original.encode() in each.body:
                for uid in marks.others(msgspec.json.decode(each.body), "", self._keys):
                    for rollout in self.rollouts.by_index(BY_UID, uid):
                        self._wake((rollout.metadata.namespace, rollout.metadata.name))

    def _marked(self, lws: Target) -> Iterable[str]:
        stable = stable_of(lws.metadata.labels, self._keys)
        return (place(lws.metadata.namespace, stable),) if stable else ()

    def _rollout_changed(self, before: StoredRollout | None, after: StoredRollout | None) -> None:
        """Wakes this Rollout and others of the same LWS, since what one may do depends on the others. A deleted one
        whose annotation entries remain on Services wakes all of its namespace: any Rollout at rest restores them.
        """
        for each in (before, after):
            if each is not None:
                self._wake((each.metadata.namespace, each.metadata.name))
                if before is None or after is None or before.workloads != after.workloads:
                    for workload in each.workloads:
                        self._wake_rollouts_of(place(each.metadata.namespace, workload))
        if before is not None and (after is None or after.metadata.uid != before.metadata.uid):
            self._rollout_gone(before.metadata)

    def _rollout_gone(self, gone: Meta) -> None:
        if any(gone.uid.encode() in each.body for each in self.services.by_index(MARKED, gone.namespace)):
            for rollout in self.rollouts.all(gone.namespace):
                self._wake((rollout.metadata.namespace, rollout.metadata.name))

    def _same_name(self, before: StoredObject | None, after: StoredObject | None) -> None:
        each = after or before
        assert each is not None
        self._wake((each.metadata.namespace, each.metadata.name))

    def _owned_by_rollout(self, before: ControllerRevision | None, after: ControllerRevision | None) -> None:
        for each in (before, after):
            if each is not None and (name := each.metadata.labels.get(self._keys.history)):
                self._wake((each.metadata.namespace, name))

    def _workload_changed(self, before: Target | None, after: Target | None) -> None:
        for each in (before, after):
            if each is not None:
                self._wake_rollouts_around(each.metadata.namespace, each.metadata.name)
                for stable in self._marked(each):
                    self._wake_rollouts_of(stable)

    def _wake_rollouts_around(self, namespace: str, lws: str) -> None:
        """Wake the Rollouts that name this LWS, and those whose canary has, had or would have this name."""
        here = place(namespace, lws)
        self._wake_rollouts_of(here)
        for stable in self.stable_of(here):
            self._wake_rollouts_of(place(namespace, stable.metadata.name))

    def _wake_rollouts_of(self, workload: str) -> None:
        for each in self.rollouts.by_index(OF_LWS, workload):
            self._wake((each.metadata.namespace, each.metadata.name))


def _named(rollout: StoredRollout) -> Iterable[str]:
    return tuple(place(rollout.metadata.namespace, each) for each in rollout.workloads)


def _routing(rollout: StoredRollout) -> Iterable[str]:
    return (rollout.metadata.namespace,) if rollout.routes else ()


def _place_of_canary(lws: Target) -> Iterable[str]:
    return (place(lws.metadata.namespace, canary_name(lws)),)


def _owners(each: _Object) -> Iterable[str]:
    return tuple(owner.uid for owner in each.metadata.owner_references)


def _uid(rollout: StoredRollout) -> Iterable[str]:
    return (rollout.metadata.uid,)
