"""The kinds of objects that scripts change: which of them the cluster serves is known once a release asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from rollout_lws.objects.resources import Resource
from rollout_lws.traffic.names import ManagedRef
from rollout_lws.traffic.registry import ROUTING_KINDS


@dataclass(frozen=True, slots=True)
class CustomKinds:
    """Kinds by apiVersion and kind. ``served`` are those that are known, None for one that the cluster does not serve;
    ``unknown`` says why the others are not, "" before the cluster was asked. It has to be asked for those in ``asked``,
    which may be fewer: not for kinds for which there may be no script.
    """

    served: Mapping[tuple[str, str], Resource | None] = field(default_factory=dict)
    unknown: Mapping[tuple[str, str], str] = field(default_factory=dict)
    asked: tuple[tuple[str, str], ...] = ()

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Those that the cluster serves."""
        return tuple(each for each in self.served.values() if each is not None)

    def of(self, refs: Iterable[ManagedRef]) -> CustomKinds:
        """Those of these objects."""
        kinds = {ref.custom_kind for ref in refs}
        return CustomKinds(
            {kind: resource for kind, resource in self.served.items() if kind in kinds},
            {kind: why for kind, why in self.unknown.items() if kind in kinds},
            tuple(kind for kind in self.asked if kind in kinds),
        )


NO_CUSTOM_KINDS = CustomKinds()


class ServedKind(msgspec.Struct):
    """One entry of the API server's discovery; ``name`` is the plural, with a slash for a subresource."""

    name: str
    kind: str
    namespaced: bool = False


class ServedKinds(msgspec.Struct):
    """The API server's discovery of one group and version."""

    resources: list[ServedKind] = []


def served_as(found: ServedKinds, api_version: str, kind: str) -> tuple[Resource | None, str | None]:
    """The kind as discovery of its group and version has it, None where it does not; and why it cannot be used."""
    each = next((one for one in found.resources if one.kind == kind and "/" not in one.name), None)
    if each is None:
        return None, None
    if not each.namespaced:
        return None, f"objects of {api_version} {kind} are in no namespace: name one of the Rollout's own namespace"
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, kind, each.name), None


def by_name(api_version: str, kind: str) -> Resource:
    """The kind by what a Rollout says of it. The plural of one that is not known ahead is the cluster's to say: it has
    its singular, which kubectl takes as well.
    """
    known = (each for each in ROUTING_KINDS if (each.api_version, each.kind) == (api_version, kind))
    group, _, version = api_version.rpartition("/")
    return next(known, None) or Resource(group, version, kind, kind.lower())
