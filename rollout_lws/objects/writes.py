"""Writes as values: the API requests that a decision asks for.

Tests compare them, logs print them, a dry run shows them; only ``kube`` (or the sandbox) sends them. Bodies are plain
JSON values and are never changed after creation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from rollout_lws.objects.meta import Struct
from rollout_lws.objects.resources import Resource


class _LiveMeta(Struct, frozen=True):
    uid: str
    resource_version: str


class Live(Struct, frozen=True):
    """The members of a live object that decide whether a patch of its status can be renewed."""

    metadata: _LiveMeta
    status: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Whole:
    """A write of a whole object, which names itself."""

    resource: Resource
    body: Mapping[str, Any]
    reason: str

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"].get("namespace", ""))

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Create(_Whole):
    """Create ``body`` (with metadata.name and, for namespaced kinds, metadata.namespace)."""


@dataclass(frozen=True, slots=True)
class Patch:
    """JSON merge patch of one object, or of its ``subresource`` ("status", "scale").

    ``resource_version``, when given, makes it conditional: a stale one is answered with 409 Conflict. So does
    ``generation``, but it becomes stale only by a change of the spec: it is for objects whose status other controllers
    write at the same time. It requires the ``uid``, and that the objects merged into and the members removed exist.

    ``if_invalid`` is for annotations that must not block a decision: if the API server finds the patched object invalid
    (422), this is created instead, and the decision goes on even if that fails too. None ends the decision, as any
    other rejection does.

    ``over`` is the object (metadata.uid and status) from which a patch of a status was made: see ``renewed``.
    """

    resource: Resource
    namespace: str
    name: str
    body: Mapping[str, Any]
    reason: str
    resource_version: str | None = None
    subresource: str = ""
    uid: str | None = None
    generation: int | None = None
    if_invalid: Create | None = None
    over: Mapping[str, Any] | None = None

    def renewed(self, live: Live) -> Patch | None:
        """The same status patch for ``live``, the object after another writer's change; None if a new decision is
        needed, because it is another object, or the change touched a member of this patch.
        """
        if self.over is None or live.metadata.uid != self.over["metadata"]["uid"]:
            return None
        seen, status = self.over["status"], live.status or {}
        if any(seen.get(member) != status.get(member) for member in self.body["status"]):
            return None
        return replace(self, resource_version=live.metadata.resource_version)


@dataclass(frozen=True, slots=True)
class Replace(_Whole):
    """Full replacement (PUT) by ``body``, conditional on its metadata.resourceVersion when that is set."""

    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete one object, if it still has this ``uid`` (and ``resource_version`` when given).

    ``propagation`` is Background, Foreground or Orphan; ``grace_seconds`` None keeps the object's own grace period.
    """

    resource: Resource
    namespace: str
    name: str
    uid: str
    reason: str
    resource_version: str | None = None
    propagation: str = "Background"
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Confirm:
    """Precondition without a write: reads one object past the cache, and ends the decision like a conflict if it has
    changed since it was observed.

    ``uid`` and ``generation`` must equal the observed ones.
    """

    resource: Resource
    namespace: str
    name: str
    uid: str
    generation: int
    reason: str


Write: TypeAlias = Create | Patch | Replace | Delete | Confirm
