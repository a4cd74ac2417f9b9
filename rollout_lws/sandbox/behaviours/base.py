"""The interface of all behaviours (the sandbox's controllers): a read-only view and the time in, writes as values out.

Nothing here depends on where the objects come from, so the same controllers run inside the sandbox and as ordinary
clients of any API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias, runtime_checkable

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import Resource
from rollout_lws.objects.writes import Write
from rollout_lws.sandbox.index import Index

Object: TypeAlias = Mapping[str, Any]
#: What a behaviour reads: objects by name, owner and labels, always in the same order.
View: TypeAlias = Index
#: The work queue key of one decision: namespace and name, or any other identity that the behaviour uses.
Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a decision: writes in order, and the epoch second of the next decision without a change."""

    writes: tuple[Write, ...] = ()
    wake_at: float | None = None


NOTHING = Outcome()


@dataclass(frozen=True, slots=True)
class Change:
    """One object now (if ``deleted``, its last state) and before the change; ``previous`` is None for a new object."""

    resource: Resource
    object: Object
    previous: Object | None
    deleted: bool = False


class Behaviour(Protocol):
    """One controller. ``wakes`` maps a change to keys, ``decide`` reconciles one of them."""

    @property
    def name(self) -> str: ...

    def wakes(self, change: Change, view: View) -> Iterable[Key]: ...

    def decide(self, key: Key, view: View, now: float) -> Outcome: ...


@runtime_checkable
class Complaining(Protocol):
    """A behaviour that records an event when the API server refuses one of its writes."""

    def complaint(self, key: Key, view: View, write: Write, error: ApiError, now: float) -> Write | None: ...


def micro_time(now: float) -> str:
    """Epoch seconds as a Kubernetes MicroTime."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def labels_of(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or {}


def terminating(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def key_of(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def controller_of(obj: Object) -> Mapping[str, Any] | None:
    """The ownerReference with ``controller: true``."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return dict(owner)
    return None


def controlled_by(obj: Object, uid: str) -> bool:
    owner = controller_of(obj)
    return owner is not None and owner["uid"] == uid


def owner_reference(resource: Resource, owner: Object) -> dict[str, Any]:
    """An ownerReference to ``owner`` with controller and blockOwnerDeletion set."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def within(part: Any, whole: Any) -> bool:
    """Whether ``whole`` contains all that ``part`` sets; fields that an API server adds by default do not matter."""
    # Most parts are the same, and Python compares them faster.
    if part == whole:
        return True
    if isinstance(part, Mapping) and isinstance(whole, Mapping):
        return all(within(value, whole.get(key)) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(within(a, b) for a, b in zip(part, whole, strict=True))
    return False


def has_condition(obj: Object, kind: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)


def condition_since(obj: Object, kind: str) -> float | None:
    """The epoch second since when a condition is as it is; None without one, or without a time."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    moment = next((each.get("lastTransitionTime") for each in conditions if each["type"] == kind), None)
    return datetime.fromisoformat(moment).timestamp() if moment else None


def running_and_ready(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running" and has_condition(pod, "Ready")
