"""The router protocol: writes a traffic split, reports whether it is in use, restores the user's object."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol

from rollout_lws.api.resources import Keys
from rollout_lws.objects.json_patch import merge_patch
from rollout_lws.objects.resources import ObjectRef, Resource
from rollout_lws.objects.writes import Delete, Patch, Write
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.registry import RouterSpec
from rollout_lws.traffic.split import Object, Split


@dataclass(frozen=True, slots=True)
class Problem:
    """``message`` is a sentence that says what to do, ``ref`` the object that the user has to change or create,
    ``path`` the member of it, "" for the object itself.
    """

    message: str
    ref: ObjectRef
    path: str = "spec.rules"


#: Path of a problem with a foreign object that has the name of one that a release creates.
NAME_TAKEN = "metadata.name"


@dataclass(frozen=True, slots=True)
class Written:
    """The live state of an object that a release writes. ``modified``: a change by the release is still in it.
    ``drifted``: another writer has changed or removed part of that change, our annotation aside.
    """

    ref: ObjectRef
    live: Object | None
    modified: bool = False
    drifted: bool = False


@dataclass(frozen=True, slots=True)
class RouteState:
    """State of one routing object: the user's own, ``users``, and the ``objects`` that a release writes for it.

    ``weight`` is the percentage of requests that the release has the router send to the new version, 0 to 100, without
    matches; ``reaches_canary`` says whether it sends any there, and ``carried`` whether it has in this release.
    ``unmarked``: it names the new version's backend, but another writer removed our annotation from it. ``unlisted``:
    the object does not name the new version's backend, and has to before it gives it requests;
    ``listed_at`` is since when it does, None once it has given it some; ``withdrawn``: the release itself has taken it
    out. The other fields are sentences that say what to
    do, "" when all is well: ``missing`` is the user's object that does not exist, ``cut_off`` why the object sends the
    stable version no requests to split, where that does harm, ``unused`` why no weight counts as routed, whatever is
    written, and ``unaccepted`` why the object as it stands is not in use.
    """

    users: ObjectRef
    objects: tuple[Written, ...]
    reaches_canary: bool = False
    weight: int = 0
    carried: bool = False
    unmarked: bool = False
    unlisted: bool = False
    listed_at: datetime | None = None
    withdrawn: bool = False
    missing: str = ""
    cut_off: str = ""
    unused: str = ""
    unaccepted: str = ""

    @property
    def modified(self) -> bool:
        """Whether any change by a release is still there."""
        return any(each.modified for each in self.objects)

    @property
    def ref(self) -> ObjectRef:
        """The object that messages are about: the first that a release writes."""
        return self.objects[0].ref


class Router(Protocol):
    """One routing object that a Rollout names. All answers are about the objects as they stand."""

    spec: ClassVar[RouterSpec]

    def __init__(self, facts: RoutingFacts, name: str) -> None: ...

    @property
    def resource(self) -> Resource:
        """The kind of the user's object."""
        ...

    @property
    def state(self) -> RouteState: ...

    def apply(self, split: Split, reason: str, *, checked: bool) -> tuple[Write, ...]:
        """The writes that set this split; () when it is set already or there is no object to write.

        ``checked`` says whether ``check`` and the spec were evaluated just now. Without that, only objects that the
        release has already modified are written.
        """
        ...

    @classmethod
    def restore(cls, live: Object, by: str, keys: Keys) -> Object:
        """The user's own object of the kind: without anything that the Rollout with UID ``by`` has written into it."""
        ...

    def check(self, split: Split | None = None, *, begun: bool = False) -> Problem | None:
        """Why the router cannot express the split or, without one, cannot split requests at all; None when it can. A
        release that has ``begun`` may have modified the object even if our annotation on it is lost.
        """
        ...


def patched(resource: Resource, live: Object, after: Object, reason: str) -> tuple[Write, ...]:
    """The patch of the differences, conditional on the resourceVersion that was read; () when there are none."""
    changes = merge_patch(live, after)
    meta = live["metadata"]
    if not changes:
        return ()
    return (Patch(resource, meta["namespace"], meta["name"], changes, reason, meta["resourceVersion"]),)


def deleted(resource: Resource, live: Object, reason: str) -> tuple[Write, ...]:
    """The deletion of exactly this object (by UID); () when it is already terminating."""
    meta = live["metadata"]
    if "deletionTimestamp" in meta:
        return ()
    return (Delete(resource, meta["namespace"], meta["name"], meta["uid"], reason),)


def does_not_exist(facts: RoutingFacts, resource: Resource, ref: ObjectRef) -> str:
    """Message for a user's object that is missing, as a sentence that says what to do."""
    if resource in facts.absent:
        return (
            f"this cluster does not serve {resource}, so there is no {ref}: install its CustomResourceDefinition, or"
            " route by another kind"
        )
    return f"{ref} does not exist in namespace {facts.namespace}: create it, or name another one in trafficRoutings"
