"""Services and InferencePools whose selectors a release pins to one version."""

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
    """One pinned object as it stands; ``selecting`` is its kind."""

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
        """Advice for configuring a GitOps tool that overwrites the selector."""
        return f"let it ignore the selector of the {self.selecting.resource.kind}"

    @property
    def live(self) -> Object | None:
        return self.facts.find(self.selecting.resource, self.name)

    @property
    def given(self) -> bool:
        """Whether a change by a release is still there."""
        live = self.live
        return live is not None and marks.read_as(Pin, live, self.facts.by, self.facts.keys) is not None

    @property
    def drifted(self) -> bool:
        """Whether another writer has changed what a release wrote into the selector."""
        live = self.live
        return live is not None and bool(self.selecting.drifted(live, self.facts.by, self.facts.keys))

    @property
    def unaccepted(self) -> str:
        """Why routers do not use the object as it stands, if it reports that; "" when they do."""
        live = self.live
        if live is None or self.selecting.resource != INFERENCE_POOLS:
            return ""
        return pools.unaccepted(live, pools.parents(live, self.facts.by, self.facts.keys))

    @property
    def users(self) -> Mapping[str, str]:
        """The selector as the user has it, without what a release has pinned; {} if there is none."""
        live = self.live
        if live is None:
            return {}
        return self.selecting.selector(self.selecting.unpinned(live, self.facts.by, self.facts.keys))

    def sends_to_unpinned(self, pod: Pod) -> bool:
        """Whether the object would send requests to this pod if a release had not pinned it."""
        live = self.live
        if live is None:
            return False
        return self.selecting.sends_to(self.selecting.unpinned(live, self.facts.by, self.facts.keys), pod)

    def pin(self, labels: Mapping[str, str], whose: str, target: str, *, checked: bool) -> tuple[Write, ...]:
        """The writes that make it select only pods with ``labels``, those of groups of ``whose``; ``target`` says which
        pods of a group. () when it does already. ``checked`` says whether the checks that forbid a first write ran just
        now; without that, only objects that a release has already modified are written.
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
    """The objects that select the stable version's groups; outside a release they select groups of any version. ()
    for a pair, whose backends each lead to one version anyway.
    """
    if facts.names.is_pair:
        return ()
    service = Selector(facts, services.SELECTING, facts.names.service)
    pool = facts.names.stable_pool
    return (service, Selector(facts, pools.SELECTING, pool)) if pool else (service,)


def of_new(facts: RoutingFacts) -> tuple[Selector, ...]:
    """The user's objects that select the new version's groups; the release creates the new version's Service itself. ()
    for a pair.
    """
    pool = facts.names.canary_pool if not facts.names.is_pair else None
    return (Selector(facts, pools.SELECTING, pool),) if pool else ()


def leading(facts: RoutingFacts) -> tuple[Selector, ...]:
    """The user's objects that lead requests to groups of either version, pinned or not."""
    names = facts.names
    services_of = dict.fromkeys(each for each in (names.service, names.canary_service) if each)
    pools_of = (each for each in (names.stable_pool, names.canary_pool) if each)
    return (
        *(Selector(facts, services.SELECTING, each) for each in services_of),
        *(Selector(facts, pools.SELECTING, each) for each in pools_of),
    )
