"""What routes requests: written, asked whether it is in use, and given back by the same words, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable
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
    """``message`` is a sentence that says what to do, ``ref`` the object that a person would change or make."""

    message: str
    ref: ObjectRef


class Router(Protocol):
    """One routing object that a Rollout names. All answers are about the objects as they stand."""

    spec: ClassVar[RouterSpec]

    def __init__(self, facts: RoutingFacts, name: str) -> None: ...

    @property
    def name(self) -> str:
        """Name of the user's object."""
        ...

    @property
    def resource(self) -> Resource:
        """Kind of the user's object."""
        ...

    @staticmethod
    def restore(live: Object, by: str, keys: Keys) -> Object:
        """The user's own object of the kind: without anything that the Rollout with UID ``by`` has written into it."""
        ...

    @property
    def ref(self) -> ObjectRef:
        """The object that a release writes."""
        ...

    @property
    def ignore(self) -> str:
        """What a GitOps tool that writes over it is to be told."""
        ...

    @property
    def live(self) -> Object | None:
        """The object that a release writes."""
        ...

    @property
    def missing(self) -> str:
        """Kind and name of the user's object when it does not exist, "" when it does."""
        ...

    @property
    def taken(self) -> str:
        """What stands in the place of an object that a release makes, as a sentence that says what to do; "" when
        nothing does, and where it makes none.
        """
        ...

    @property
    def cut_off(self) -> str:
        """Why the user's object sends the stable version no request that could be shared, as a sentence that says what
        to do; "" when it does, and where a share harms nobody then.
        """
        ...

    @property
    def given(self) -> bool:
        """Whether a release has written anything that is still there."""
        ...

    @property
    def reaches_new(self) -> bool:
        """Whether it sends any request to the new version, as written by the release."""
        ...

    @property
    def weight(self) -> int:
        """Percentage of requests that the release has it send to the new version, 0 to 100, matches apart."""
        ...

    @property
    def written_over(self) -> bool:
        """Whether somebody has changed or removed a part of what the release wrote, its note apart."""
        ...

    @property
    def unaccepted(self) -> str:
        """Why it is not in use as it stands, "" when it is."""
        ...

    @property
    def nobody_accepts(self) -> str:
        """Why no share counts as routed, whatever is written; "" when something uses the object."""
        ...

    def writes(self, split: Split, reason: str, *, checked: bool) -> tuple[Write, ...]:
        """What makes it share requests like this; () when it does, and where nothing was given that could be taken.

        ``checked`` says whether ``problem`` and the spec were asked just now: without that nothing is written that a
        release has not written before.
        """
        ...

    def inexpressible(self, split: Split) -> str:
        """Why it would not share requests as the split says, as a sentence that says what to do; "" when it would."""
        ...

    def problem(self, splits: Iterable[Split], *, begun: bool = False) -> Problem | None:
        """Why no release can share requests by it; None when it can. ``splits`` are those that the steps will want. A
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
