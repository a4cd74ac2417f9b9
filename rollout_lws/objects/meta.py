"""Metadata common to all Kubernetes objects, as frozen partial structs: unused fields are dropped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

import msgspec

#: What the API server takes as the value of a label, and as its key.
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
LABEL_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


class Struct(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True, gc=False):
    """Base of all partial structs: camelCase on the wire, unknown fields dropped, never changed in place.

    They form no reference cycles, so they are exempt from garbage collection, which saves 16 bytes in each.
    """


class OwnerReference(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(Struct, frozen=True):
    """metadata; times are aware datetimes in UTC, absent ones None."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def terminating(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The controlling owner of this object, None without one."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    def controlled_by(self, uid: str) -> bool:
        owner = self.controller
        return owner is not None and owner.uid == uid


class ManagedField(Struct, frozen=True):
    """One field manager's entry of metadata.managedFields; ``fields`` stays JSON bytes."""

    manager: str = ""
    operation: str = ""
    time: datetime | None = None
    fields: msgspec.Raw = msgspec.field(name="fieldsV1", default=msgspec.Raw(b"{}"))


class OwnedMeta(Meta, frozen=True):
    """metadata with managedFields, for objects whose field managers matter."""

    managed_fields: tuple[ManagedField, ...] = ()


class Condition(Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


def selects(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether a label selector of the terms ``key`` (exists), ``!key`` and ``key=value``, joined by commas, matches
    these labels; "" matches all.
    """
    return all(_meets(term, labels) for term in selector.split(",") if term)


def _meets(term: str, labels: Mapping[str, str]) -> bool:
    if term.startswith("!"):
        return term[1:] not in labels
    key, equals, value = term.partition("=")
    return labels.get(key) == value if equals else key in labels
