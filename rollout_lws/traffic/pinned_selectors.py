"""What requests are sent to: Services and InferencePools of the user's, whose selectors decide which version serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout_lws.objects.resources import INFERENCE_POOLS, ObjectRef, Resource
from rollout_lws.objects.workloads import Pod
from rollout_lws.objects.writes import Write
from rollout_lws.traffic import marks, pools, services
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.router import patched
from rollout_lws.traffic.selectors import Pin, Selecting, selector_changes
from rollout_lws.traffic.split import Object


@dataclass(frozen=True, slots=True)
class Selector:
    """One of them, as it stands; ``selecting`` says of which kind it is."""

    facts: RoutingFacts
    selecting: Selecting
    name: str

    @property
    def resource(self) -> Resource:
        return self.selecting.resource

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(self.selecting.resource.kind, self.name)

    @property
    def ignore(self) -> str:
        """What a GitOps tool that writes over it is to be told."""
        return f"let it ignore the selector of the {self.selecting.resource.kind}"

    @property
    def live(self) -> Object | None:
        return self.facts.find(self.selecting.resource, self.name)

    @property
    def given(self) -> bool:
        """Whether a release has written anything that is still there."""
        live = self.live
        return live is not None and marks.read_as(Pin, live, self.facts.by, self.facts.keys) is not None

    @property
    def drifted(self) -> bool:
        """Whether somebody has changed what a release wrote into the selector."""
        live = self.live
        return live is not None and bool(self.selecting.drifted(live, self.facts.by, self.facts.keys))

    @property
    def unaccepted(self) -> str:
        """Why routers do not use it as it stands, as far as it tells; "" when they do."""
        live = self.live
        if live is None or self.selecting.resource != INFERENCE_POOLS:
            return ""
        return pools.unaccepted(live, pools.parents(live, self.facts.by, self.facts.keys))

    def sends_to_unpinned(self, pod: Pod) -> bool:
        """Whether it would send requests to this pod if a release had not pinned it."""
        live = self.live
        if live is None:
            return False
        return self.selecting.sends_to(self.selecting.unpinned(live, self.facts.by, self.facts.keys), pod)

    def pin(self, labels: Mapping[str, str], whose: str, target: str, *, checked: bool) -> tuple[Write, ...]:
        """What makes it select pods with ``labels`` only, those of groups of ``whose``; ``target`` says which pods of a
        group. () when it does. ``checked`` says whether everything that forbids the first write was looked at just now:
        without that nothing is written that a release has not written before.
        """
        live = self.live
        if live is None or not (checked or self.given):
            return ()
        changes, by, keys = selector_changes(labels, target), self.facts.by, self.facts.keys
        if self.selecting.resource == INFERENCE_POOLS:
            after = pools.pin(live, by, keys, changes)
        else:
            names = self.facts.names if self.facts.names.any_router else None
            after = services.pin(live, by, keys, changes, names=names)
        return patched(self.selecting.resource, live, after, f"only groups of {whose} behind {self.ref}")


def of_stable(facts: RoutingFacts) -> tuple[Selector, ...]:
    """What selects groups of the stable version, before and after a release those of whatever version."""
    service = Selector(facts, services.SELECTING, facts.names.service)
    pool = facts.names.stable_pool
    return (service, Selector(facts, pools.SELECTING, pool)) if pool else (service,)


def of_new(facts: RoutingFacts) -> tuple[Selector, ...]:
    """What the user has made for groups of the new version; its Service is made by the release."""
    pool = facts.names.canary_pool
    return (Selector(facts, pools.SELECTING, pool),) if pool else ()
