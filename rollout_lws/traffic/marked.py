"""Finds the objects that releases have changed or created, by the annotations on them instead of by name.

Any user with the right to decide on releases can write a name into a status. The annotation is on the changed object
itself, so forging it needs the right to write that object anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from rollout_lws.api.resources import Keys
from rollout_lws.objects.released import POD_REVISION
from rollout_lws.objects.resources import INFERENCE_POOLS, SERVICES, ObjectRef, Resource
from rollout_lws.objects.workloads import Pod
from rollout_lws.objects.writes import Write
from rollout_lws.traffic import marks, pools, services
from rollout_lws.traffic.copy_names import canary_service_name, written_name
from rollout_lws.traffic.custom import marked_object
from rollout_lws.traffic.custom.kinds import NO_CUSTOM_KINDS, CustomKinds
from rollout_lws.traffic.names import ManagedRef, Names
from rollout_lws.traffic.registry import DESTINATION_RULE, WRITTEN_SPECS, resources_of
from rollout_lws.traffic.router import deleted, patched
from rollout_lws.traffic.routers.of_rollout import ROUTERS
from rollout_lws.traffic.selectors import Changes, Pin, Selecting, pinned_workload, pinning_keys
from rollout_lws.traffic.split import Object
from rollout_lws.workload.canary import name_of_canary

#: Kind → function that restores an object of it. The Services come last: as long as one of them has the annotation, the
#: other kinds are searched as well.
_OWN: Mapping[Resource, Callable[[Object, str, Keys], Object]] = {
    **{router.spec.resource: router.restore for router in ROUTERS},
    DESTINATION_RULE.resource: marks.without,
    INFERENCE_POOLS: pools.unpinned,
    SERVICES: services.unpinned,
}

#: Kinds that a release creates → name of the object that it creates for the user's object of this name.
_MADE: Mapping[Resource, Callable[[str], str]] = {
    **{spec.resource: partial(written_name, spec) for spec in WRITTEN_SPECS if spec.copies},
    SERVICES: canary_service_name,
}

#: Kinds that a release pins to the groups of one version.
_SELECTING: Mapping[Resource, Selecting] = {INFERENCE_POOLS: pools.SELECTING, SERVICES: services.SELECTING}


@dataclass(frozen=True, slots=True)
class Kept:
    """An object that stays pinned to LWS ``workload``, as ``written``; unpinned, it would also select ``pods``."""

    selecting: Selecting
    name: str
    workload: str
    written: Changes
    pods: tuple[Pod, ...]

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(self.selecting.resource.kind, self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Marked:
    """Objects of one namespace, by kind, that carry any Rollout's annotation or that the Rollout with UID ``by``
    created.

    ``living`` are the UIDs of all Rollouts of the namespace, ``names`` the objects that this one routes requests with,
    None when nothing names any. ``waits`` says what has to be listed before all objects are known, "" when nothing has.
    ``workloads`` are the LWSs to which deleted Rollouts have pinned objects, ``pods`` all their pods. ``unknown_pods``
    has LWSs whose pods are not all known: why, "" during the first list. ``foreign`` are LWSs only named like a canary,
    ``custom`` the kinds of objects that scripts may have changed for any Rollout.
    """

    by: str = ""
    keys: Keys = field(default_factory=lambda: Keys(""))
    objects: Mapping[Resource, tuple[Object, ...]] = field(default_factory=dict)
    living: frozenset[str] = frozenset()
    waits: str = ""
    names: Names | None = None
    workloads: tuple[str, ...] = ()
    pods: tuple[Pod, ...] = ()
    unknown_pods: Mapping[str, str] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset()
    custom: CustomKinds = NO_CUSTOM_KINDS

    @property
    def _kinds(self) -> tuple[Resource, ...]:
        """The kinds that may have been changed, in the order in which their objects are restored: those that only
        scripts change come first.
        """
        return (*(each for each in self.objects if each not in _OWN), *_OWN)

    @property
    def any_own(self) -> bool:
        """Whether the Rollout has left anything to restore, as far as that is known."""
        return any(self._is_own(resource, live) for resource, lives in self.objects.items() for live in lives)

    @property
    def deleted_uids(self) -> tuple[str, ...]:
        """UIDs of deleted Rollouts whose annotation entries are still there."""
        found = (
            uid for resource, lives in self.objects.items() for live in lives for uid in self._others(resource, live)
        )
        return tuple(dict.fromkeys(uid for uid in found if uid not in self.living))

    @property
    def pinned_workloads(self) -> tuple[str, ...]:
        """LWSs to whose groups deleted Rollouts have pinned an object."""
        deleted_uids = self.deleted_uids
        named = (
            pinned_workload(selecting.written(live, uid, self.keys), self.keys)
            for resource, selecting in _SELECTING.items()
            for live in self.objects.get(resource, ())
            for uid in deleted_uids
        )
        return tuple(dict.fromkeys(name for name in named if name))

    def give_back(self, reason: str) -> Iterator[Write]:
        """The writes that restore every object that this Rollout has changed and delete those that it created."""
        for resource in self._kinds:
            yield from self._give_back(resource, reason)

    def withdraw_weights(self, reason: str) -> Iterator[Write]:
        """The writes that restore the user's routes and delete the created ones, so no weights are left."""
        for resource in self._kinds:
            if resource not in _SELECTING:
                yield from self._give_back(resource, reason)

    def take_back(self, deleted_uid: str, workload: str, reason: str) -> Iterator[Write]:
        """The writes that restore everything that the deleted Rollout with UID ``deleted_uid`` changed, and pin what is
        ``kept``. Services lose the annotation only when no other kind is left, since the others are searched because of
        it. The garbage collector deletes the objects that the Rollout created.
        """
        kept = {(each.selecting.resource, each.name): each for each in self.kept(deleted_uid, workload)}
        others_left, others_kept = False, any(resource != SERVICES for resource, _ in kept)
        for resource in self._kinds:
            if resource == SERVICES and others_left:
                return
            for live in self.objects.get(resource, ()):
                if self._made(resource, live, self.by) or self._made(resource, live, deleted_uid):
                    continue
                stays = kept.get((resource, live["metadata"]["name"]))
                if stays is None and resource == SERVICES and others_kept:
                    yield from patched(resource, live, services.SELECTING.pin(live, deleted_uid, self.keys, {}), reason)
                elif stays is None:
                    writes = patched(resource, live, _restored(resource, live, deleted_uid, self.keys), reason)
                    others_left = others_left or bool(writes)
                    yield from writes
                elif stays.written != stays.selecting.written(live, deleted_uid, self.keys):
                    after = stays.selecting.pin(live, deleted_uid, self.keys, stays.written)
                    yield from patched(resource, live, after, f"only groups of {stays.workload}")

    def kept(self, deleted_uid: str, workload: str) -> Iterator[Kept]:
        """Objects that Rollout UID ``deleted_uid`` has pinned and that would select several versions if unpinned. One
        that selects the canary of LWS ``workload`` is pinned to that LWS instead, since its canary is deleted. A pool
        whose pods are all terminating is not kept while the workload's own rolling update replaces them.
        """
        for resource, selecting in _SELECTING.items():
            for live in self.objects.get(resource, ()):
                written = {**selecting.written(live, deleted_uid, self.keys)}
                home = pinned_workload(written, self.keys)
                if not home or self._made(resource, live, deleted_uid):
                    continue
                if self.is_of(workload, home):
                    written, home = self._turned(written, home, workload), workload
                apart = {key: value for key, value in written.items() if key in pinning_keys(self.keys) and value}
                own = selecting.unpinned(live, deleted_uid, self.keys)
                near = [pod for pod in self.pods if self._beside(home, pod.workload) and selecting.sends_to(own, pod)]
                lead = [pod for pod in near if apart.items() <= pod.metadata.labels.items()]
                rolls = all(pod.workload == home for pod in near) and not self.unknown_pods
                if rolls and lead and all(pod.metadata.terminating or pod.has_ended for pod in lead):
                    # Soon nothing would answer behind it.
                    continue
                if len({tuple(map(pod.metadata.labels.get, apart)) for pod in near}) > 1 or self.unknown_pods:
                    others = (pod for pod in near if pod not in lead)
                    yield Kept(selecting, live["metadata"]["name"], home, written, tuple(others))

    def _turned(self, written: Mapping[str, str | None], home: str, workload: str) -> dict[str, str | None]:
        """What pins an object to ``workload`` instead of to ``home``, which may be the same. Of a kind whose pods do
        not carry its name, nothing does while its pods have several versions.
        """
        if home == workload:
            return {**written}
        if self.keys.made not in written and POD_REVISION not in written:
            return {key: workload if value == home else value for key, value in written.items()}
        kept = {key: value for key, value in written.items() if key not in pinning_keys(self.keys)}
        revisions = {pod.revision for pod in self.pods if pod.workload == workload}
        return kept | ({POD_REVISION: revisions.pop()} if len(revisions) == 1 else {})

    def concerns(self, deleted_uid: str, workload: str) -> bool:
        """Whether the Rollout with UID ``deleted_uid`` has left an object that may carry requests for this Rollout's
        groups, those of LWS ``workload`` and of its canary.
        """
        ours = self.named
        for resource, lives in self.objects.items():
            selecting = _SELECTING.get(resource)
            for live in lives:
                if marks.read(live, deleted_uid, self.keys) is None:
                    continue
                written = selecting.written(live, deleted_uid, self.keys) if selecting is not None else {}
                if (resource, live["metadata"]["name"]) in ours or self.is_of(
                    workload, pinned_workload(written, self.keys)
                ):
                    return True
        return False

    def is_of(self, workload: str, other: str) -> bool:
        """Whether LWS ``other`` is ``workload`` or its canary, even a deleted one."""
        return other == workload or (other == name_of_canary(workload) and other not in self.foreign)

    def _beside(self, workload: str, other: str) -> bool:
        """Whether these are the same LWS, or one is the other's canary."""
        return self.is_of(workload, other) or self.is_of(other, workload)

    @property
    def named(self) -> frozenset[tuple[Resource, str]]:
        """Resources and names of the user's objects that this Rollout routes requests with."""
        names = self.names or Names()
        custom = {(*ref.custom_kind, ref.name) for ref in names.custom}
        written = (
            (resource, live["metadata"]["name"])
            for resource, lives in self.objects.items()
            for live in lives
            if (resource.api_version, resource.kind, live["metadata"]["name"]) in custom
        )
        return frozenset((*(each for each in resources_of(names) if each[1]), *written))

    def _give_back(self, resource: Resource, reason: str) -> Iterator[Write]:
        for live in self.objects.get(resource, ()):
            if self._made(resource, live, self.by):
                yield from deleted(resource, live, reason)
            else:
                yield from patched(resource, live, _restored(resource, live, self.by, self.keys), reason)

    def _is_own(self, resource: Resource, live: Object) -> bool:
        return self._made(resource, live, self.by) or marks.read(live, self.by, self.keys) is not None

    def _made(self, resource: Resource, live: Object, by: str) -> bool:
        """Whether the Rollout with UID ``by`` created the object, so that it may be deleted. The annotation written at
        creation says so, whatever the spec names now; if another writer has removed it, the object's name decides.
        """
        called = _MADE.get(resource)
        if called is None or not marks.controlled_by(live, by, self.keys):
            return False
        # For a pair no release creates anything.
        beside = resources_of(self.names) if self.names is not None and not self.names.is_pair else ()
        known = (called(name) for kind, name in beside if kind == resource)
        return marks.says_made(live, by, self.keys) or live["metadata"]["name"] in known

    def _others(self, resource: Resource, live: Object) -> tuple[str, ...]:
        if self._made(resource, live, self.by):
            return ()
        return tuple(uid for uid in marks.others(live, self.by, self.keys) if not self._made(resource, live, uid))


def _restored(resource: Resource, live: Object, by: str, keys: Keys) -> Object:
    """The object as it was: by the entry on it if a script has changed it, whatever its kind, else as its kind is."""
    own = _OWN.get(resource)
    if own is None or marked_object.read(live, by, keys) is not None:
        return marked_object.restored(live, by, keys)
    return own(live, by, keys)


UNMARKED = Marked()


def annotated_names(live: Object, by: str, keys: Keys, asked: Names | None) -> Names | None:
    """The objects that a release routes requests with, from its pin on this Service; None without a pin. A pin without
    names falls back to ``asked``, the names in the spec, if these name this Service.
    """
    mark = marks.read_as(Pin, live, by, keys)
    if mark is None:
        return None
    # An earlier version stored no names.
    name = str(live["metadata"]["name"])
    return mark.names or (asked if asked is not None and asked.service == name else Names(service=name))


def custom_refs(services: Iterable[Object], keys: Keys) -> tuple[ManagedRef, ...]:
    """The objects that scripts may have changed for any Rollout, by the pins on these Services."""
    pins = (marks.read_as(Pin, live, uid, keys) for live in services for uid in marks.others(live, "", keys))
    names = (pin.names for pin in pins if pin is not None and pin.names is not None)
    return tuple(dict.fromkeys(ref for each in names for ref in each.custom))
