"""Writes as values: what a decision wants done to the API server, before anybody does it.

A test compares them, a log line prints them, a dry run shows them; only ``kube`` (or the sandbox) carries them out.
Bodies are plain JSON values and are never changed after they were put in here.
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
    """Of an object as it stands, what decides whether a patch of its status can be renewed."""

    metadata: _LiveMeta
    status: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """Create ``body`` (with metadata.name and, for namespaced kinds, metadata.namespace)."""

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
class Patch:
    """JSON merge patch of one object, or of its ``subresource`` ("status", "scale").

    ``resource_version``, when given, makes it conditional: a stale one is answered with 409 Conflict. So does
    ``generation``, but only a change of the spec makes that one stale: it is for objects whose status others write at
    the very moment at which we have to write. With it goes the ``uid``, whatever is merged into must be there, and what
    is removed too.

    ``if_invalid`` is for notes, which are not worth a stop: where the API server finds what the object would be invalid
    (422), this is created in its stead, and the decision goes on whether it can be or not. None ends the decision
    there, as any other refusal does.

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
        """The same patch of a status for ``live``, the object as somebody else has left it; None where it has to be
        decided anew, because it is another object, or they have changed a member that this patch changes.
        """
        if self.over is None or live.metadata.uid != self.over["metadata"]["uid"]:
            return None
        seen, status = self.over["status"], live.status or {}
        if any(seen.get(member) != status.get(member) for member in self.body["status"]):
            return None
        return replace(self, resource_version=live.metadata.resource_version)


@dataclass(frozen=True, slots=True)
class Replace:
    """Full replacement (PUT) by ``body``, conditional on its metadata.resourceVersion when that is set."""

    resource: Resource
    body: Mapping[str, Any]
    reason: str
    subresource: str = ""

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"].get("namespace", ""))

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete one object, provided it still is the one with ``uid`` (and ``resource_version`` when given).

    ``propagation`` is Background, Foreground or Orphan; ``grace_seconds`` None leaves the object's own grace.
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
    """Writes nothing: reads one object past the cache, and ends the decision like a conflict when it is no longer as
    decided from.

    ``uid`` and ``generation`` must be those that were observed.
    """

    resource: Resource
    namespace: str
    name: str
    uid: str
    generation: int
    reason: str


Write: TypeAlias = Create | Patch | Replace | Delete | Confirm
