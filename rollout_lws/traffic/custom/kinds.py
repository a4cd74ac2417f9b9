"""The kinds of objects that scripts change: which of them the cluster serves is known once a release asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rollout_lws.objects.resources import Resource
from rollout_lws.traffic.names import ManagedRef


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
