"""What routes requests: written, asked whether it is in use, and given back by the same words, whatever its kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from rollout_lws.api.resources import Keys
from rollout_lws.objects.merge import merge_patch
from rollout_lws.objects.resources import ObjectRef, Resource
from rollout_lws.objects.writes import Delete, Patch, Write
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.registry import RouterSpec
from rollout_lws.traffic.split import Object, Split
from rollout_lws.workload.copies import copy_name

#: Longest name of an object of any kind that a router copies.
NAME_BUDGET = 253


@dataclass(frozen=True, slots=True)
class Problem:
    """``message`` is a sentence that says what to do, ``ref`` the object that a person would change or make, ``path``
    the member of it, "" for the object itself.
    """

    message: str
    ref: ObjectRef
    path: str = "spec.rules"


#: Path of a problem with an object that stands in the place of one that a release makes.
NAME_TAKEN = "metadata.name"


@dataclass(frozen=True, slots=True)
class Written:
    """An object that a release writes, as it stands. ``modified``: the release has written something into it that is
    still there. ``drifted``: another writer has changed or removed a part of that, the note of it apart.
    """

    ref: ObjectRef
    live: Object | None
    modified: bool = False
    drifted: bool = False


@dataclass(frozen=True, slots=True)
class RouteState:
    """How one routing object stands: the user's own, ``users``, and the ``objects`` that a release writes for it.

    ``weight`` is the percentage of requests that the release has it send to the new version, 0 to 100, matches apart;
    ``reaches_canary`` says whether any are sent there. What is missing is said in sentences that say what to do, ""
    where nothing is: ``missing`` is the user's object that does not exist, ``cut_off`` why it sends the stable version
    no request that could be shared, where that does harm, ``unused`` why no weight counts as routed, whatever is
    written, and ``unaccepted`` why it is not in use as it stands.
    """

    users: ObjectRef
    objects: tuple[Written, ...]
    reaches_canary: bool = False
    weight: int = 0
    missing: str = ""
    cut_off: str = ""
    unused: str = ""
    unaccepted: str = ""

    @property
    def modified(self) -> bool:
        """Whether a release has written anything that is still there."""
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
    def state(self) -> RouteState: ...

    def apply(self, split: Split, reason: str, *, checked: bool) -> tuple[Write, ...]:
        """What makes it share requests like this; () when it does, and where nothing was given that could be taken.

        ``checked`` says whether ``check`` and the spec were asked just now: without that nothing is written that a
        release has not written before.
        """
        ...

    @classmethod
    def restore(cls, live: Object, by: str, keys: Keys) -> Object:
        """The user's own object of the kind: without anything that the Rollout with UID ``by`` has written into it."""
        ...

    def check(self, split: Split | None = None, *, begun: bool = False) -> Problem | None:
        """Why it cannot share requests as the split says, or, without one, why it cannot share any; None when it can. A
        release that has ``begun`` may have written it before, though the object has lost the note of that since.
        """
        ...


def written_name(spec: RouterSpec, name: str) -> str:
    """Name of the object that a release writes where the user's has this one."""
    return copy_name(name, NAME_BUDGET) if spec.copies else name


def patched(resource: Resource, live: Object, after: Object, reason: str) -> tuple[Write, ...]:
    """The patch of what differs, on condition that nobody has written meanwhile; () when nothing does."""
    changes = merge_patch(live, after)
    meta = live["metadata"]
    if not changes:
        return ()
    return (Patch(resource, meta["namespace"], meta["name"], changes, reason, meta["resourceVersion"]),)


def deleted(resource: Resource, live: Object, reason: str) -> tuple[Write, ...]:
    """The deletion of this very object; () when it is being deleted already."""
    meta = live["metadata"]
    if "deletionTimestamp" in meta:
        return ()
    return (Delete(resource, meta["namespace"], meta["name"], meta["uid"], reason),)


def does_not_exist(facts: RoutingFacts, resource: Resource, ref: ObjectRef) -> str:
    """That the user's object is missing, as a sentence that says what to do."""
    if resource in facts.absent:
        return (
            f"this cluster does not serve {resource}, so there is no {ref}: install its CustomResourceDefinition, or"
            " route by another kind"
        )
    return f"{ref} does not exist in namespace {facts.namespace}: create it, or name another one in trafficRoutings"
