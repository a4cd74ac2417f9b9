"""What carries the notes of Rollouts, whatever its name: by these alone it is known what a release has changed.

A name that stands in a status can be written by everybody who may decide on releases. A note stands on the very object
that it is about, so who can forge it can write that object anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import HTTP_ROUTES, INFERENCE_POOLS, INGRESSES, SERVICES, Resource
from rollout_lws.objects.writes import Write
from rollout_lws.traffic import http_route, marks, pools, services
from rollout_lws.traffic.names import Names
from rollout_lws.traffic.router import deleted, patched
from rollout_lws.traffic.selectors import Pin
from rollout_lws.traffic.split import Object

#: Kinds besides Services of which a release changes objects, or makes some; they are watched on demand.
ON_DEMAND = (HTTP_ROUTES, INGRESSES, INFERENCE_POOLS)

#: Kind → what makes an object of it the user's own again. The Services come last: as long as one of them is marked, it
#: is looked for the others.
_OWN: Mapping[Resource, Callable[[Object, str, Keys], Object]] = {
    HTTP_ROUTES: http_route.own,
    INFERENCE_POOLS: pools.unpinned,
    INGRESSES: marks.without,
    SERVICES: services.unpinned,
}


@dataclass(frozen=True, slots=True, eq=False)
class Marked:
    """Objects of one namespace that carry notes of any Rollout, or that the one with UID ``by`` has made, by kind.

    ``living`` are the UIDs of all Rollouts of the namespace. ``waits`` says what has to be listed before all of them
    are known, "" when nothing has.
    """

    by: str = ""
    keys: Keys = field(default_factory=lambda: Keys(""))
    objects: Mapping[Resource, tuple[Object, ...]] = field(default_factory=dict)
    living: frozenset[str] = frozenset()
    waits: str = ""

    @property
    def any_own(self) -> bool:
        """Whether the Rollout has left anything to give back, as far as that is known."""
        return any(self._is_own(live) for lives in self.objects.values() for live in lives)

    @property
    def ghost(self) -> str | None:
        """UID of a Rollout that is gone and has left notes, None without one."""
        found = (uid for lives in self.objects.values() for live in lives for uid in self._others(live))
        return next((uid for uid in found if uid not in self.living), None)

    def give_back(self, reason: str) -> Iterator[Write]:
        """What gives everything back that this Rollout has changed, and removes what it has made."""
        for resource, own in _OWN.items():
            for live in self.objects.get(resource, ()):
                if self._made(live):
                    yield from deleted(resource, live, reason)
                else:
                    yield from patched(resource, live, own(live, self.by, self.keys), reason)

    def take_back(self, ghost: str, reason: str) -> Iterator[Write]:
        """What gives back all that the Rollout with UID ``ghost`` has changed; the garbage collector takes the rest."""
        for resource, own in _OWN.items():
            for live in self.objects.get(resource, ()):
                if not self._made(live):
                    yield from patched(resource, live, own(live, ghost, self.keys), reason)

    def _is_own(self, live: Object) -> bool:
        return self._made(live) or marks.read(live, self.by, self.keys) is not None

    def _made(self, live: Object) -> bool:
        return marks.made_by(live, self.by)

    def _others(self, live: Object) -> tuple[str, ...]:
        return () if self._made(live) else marks.others(live, self.by, self.keys)


UNMARKED = Marked()


def noted_names(live: Object, by: str, keys: Keys) -> Names | None:
    """What a release that has pinned this Service shares requests by; None where it has not."""
    mark = marks.read_as(Pin, live, by, keys)
    if mark is None:
        return None
    # An earlier version noted none.
    return mark.names or Names(service=str(live["metadata"]["name"]))
