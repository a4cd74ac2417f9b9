"""Whom the Services of a namespace lead to in a release, where it has no trafficRoutings: selectors decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.unlisted import labels_of_new, made_by_lws
from rollout_lws.traffic import services
from rollout_lws.traffic.split import Object


@dataclass(frozen=True, slots=True)
class Reach:
    """Names of Services that lead to leaders of the LWS: ``both`` to those of the new version as well, ``old`` not."""

    both: tuple[str, ...] = ()
    old: tuple[str, ...] = ()

    @property
    def new(self) -> bool:
        """Whether the new version gets requests, as far as anything is known to lead to either."""
        return bool(self.both) or not self.old


def reach(d: Draft, every: Mapping[str, Object]) -> Reach:
    """Of all Services of the namespace, by name; those that LWS makes for the pods of a group apart."""
    leaders, new = [leader.metadata.labels for leader in d.stable.leaders], labels_of_new(d)
    leading = [
        (name, live)
        for name, live in sorted(every.items())
        if not made_by_lws(live) and any(services.selects(live, each) for each in leaders)
    ]
    both = tuple(name for name, live in leading if services.selects(live, new))
    return Reach(both, tuple(name for name, _ in leading if name not in both))
