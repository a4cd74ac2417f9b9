"""Which version a namespace's Services reach during a release without trafficRoutings: selectors decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.routing.unmanaged_backends import labels_of_new, made_by_lws
from rollout_lws.rollout.routing.weights import settings
from rollout_lws.traffic import services
from rollout_lws.traffic.split import Object


@dataclass(frozen=True, slots=True)
class Reach:
    """Names of Services that select leaders of the LWS: ``both`` also those of the new version, ``old`` do not."""

    both: tuple[str, ...] = ()
    old: tuple[str, ...] = ()

    @property
    def new(self) -> bool:
        """True if the new version gets requests, or no Service is known to select either version."""
        return bool(self.both) or not self.old


def reached_by(every: Iterable[Object], leaders: Iterable[Mapping[str, str]], new: Mapping[str, str]) -> Reach:
    """The reach of these Services, except those that LWS creates for discovery within a group: ``leaders`` are the
    labels of running leaders, ``new`` those of the new version's.
    """
    labels = tuple(leaders)
    leading = {
        live["metadata"]["name"]: services.selects(live, new)
        for live in every
        if not made_by_lws(live) and any(services.selects(live, each) for each in labels)
    }
    both = tuple(sorted(name for name, also in leading.items() if also))
    return Reach(both, tuple(sorted(leading.keys() - {*both})))


def reach(d: Draft, every: Mapping[str, Object]) -> Reach:
    """The reach of all Services of the namespace, by name."""
    return reached_by(every.values(), (leader.metadata.labels for leader in d.stable.leaders), labels_of_new(d))


def and_requests(d: Draft, told: str) -> str:
    """``told``, and a warning for the user who judges the new version if it receives no requests at all."""
    return ". ".join(filter(None, (told, _no_requests(d))))


def _no_requests(d: Draft) -> str:
    """That no Service selects the new version; "" if one does, if trafficRoutings split traffic, or if no Service
    selects the old version either.
    """
    if settings(d) is not None:
        return ""
    found = reach(d, d.o.services)
    if found.new:
        return ""
    listed = ", ".join(found.old)
    who = f"Services {listed} select" if len(found.old) > 1 else f"Service {listed} selects"
    return f"The new version gets no requests before the promotion: {who} none of its groups"
