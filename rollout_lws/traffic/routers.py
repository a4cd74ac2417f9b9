"""What routes requests, whatever its kind: written, asked whether it is in use, and given back by the same few words.

A release may share requests by an HTTPRoute, an Ingress, or both; it asks each for the same split.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from rollout_lws.objects.merge import merge_patch
from rollout_lws.objects.resources import HTTP_ROUTES, INFERENCE_POOLS, INGRESSES, Resource
from rollout_lws.objects.writes import Create, Delete, Patch, Write
from rollout_lws.traffic import http_route, ingress, marks
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.split import Backend, Backends, Object, Split


class Router(Protocol):
    """One routing object that a Rollout names. All answers are about the objects as they stand."""

    @property
    def what(self) -> str:
        """Kind and name, as people say them."""
        ...

    @property
    def ignore(self) -> str:
        """What a GitOps tool that writes over it is to be told."""
        ...

    @property
    def live(self) -> Object | None:
        """The object that a release writes."""
        ...

    @property
    def missing(self) -> str:
        """Kind and name of the user's object when it does not exist, "" when it does."""
        ...

    @property
    def cut_off(self) -> str:
        """Why the user's object sends the stable version no request that could be shared, as a sentence that says what
        to do; "" when it does, and where a share harms nobody then.
        """
        ...

    @property
    def given(self) -> bool:
        """Whether a release has written anything that is still there."""
        ...

    @property
    def reaches_new(self) -> bool:
        """Whether it sends any request to the new version, as written by the release."""
        ...

    @property
    def written_over(self) -> bool:
        """Whether somebody has changed or removed a part of what the release wrote, its note apart."""
        ...

    @property
    def unaccepted(self) -> str:
        """Why it is not in use as it stands, "" when it is."""
        ...

    @property
    def nobody_accepts(self) -> str:
        """Why no share counts as routed, whatever is written; "" when something uses the object."""
        ...

    def writes(self, split: Split, reason: str) -> tuple[Write, ...]:
        """What makes it share requests like this; () when it does, and where nothing was given that could be taken."""
        ...

    def give_back(self, reason: str) -> tuple[Write, ...]:
        """What makes it the user's own again; () when it is."""
        ...

    def inexpressible(self, split: Split) -> str:
        """Why it would not share requests as the split says, as a sentence that says what to do; "" when it would."""
        ...

    def problem(self, splits: Iterable[Split]) -> str:
        """Why no release can share requests by it, as a sentence that says what to do; "" when it can. ``splits`` are
        those that the steps will want.
        """
        ...


def patched(resource: Resource, live: Object, after: Object, reason: str) -> tuple[Write, ...]:
    """The patch of what differs, on condition that nobody has written meanwhile; () when nothing does."""
    changes = merge_patch(live, after)
    meta = live["metadata"]
    if not changes:
        return ()
    return (Patch(resource, meta["namespace"], meta["name"], changes, reason, meta["resourceVersion"]),)


def backends(facts: RoutingFacts) -> Backends:
    """What the rules of a route call the two versions: pools where the Rollout names them, else Services."""
    names = facts.names
    if names.stable_pool and names.canary_pool:
        group, kind = INFERENCE_POOLS.group, INFERENCE_POOLS.kind
        return Backends(Backend(names.stable_pool, group, kind), Backend(names.canary_pool, group, kind))
    return Backends(Backend(names.service), Backend(facts.canary_service_name))


def routers(facts: RoutingFacts, class_type: str = "") -> tuple[Router, ...]:
    """All that the Rollout names; ``class_type`` is the Ingress class that it vouches for."""
    found: list[Router] = []
    if facts.names.http_route:
        found.append(_HttpRoute(facts, facts.names.http_route))
    if facts.names.ingress:
        found.append(_Ingress(facts, facts.names.ingress, class_type))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _HttpRoute:
    """The user's own route, with the share written into it."""

    facts: RoutingFacts
    name: str

    @property
    def what(self) -> str:
        return f"HTTPRoute {self.name}"

    @property
    def ignore(self) -> str:
        return "let it ignore the rules of the route"

    @property
    def live(self) -> Object | None:
        return self.facts.find(HTTP_ROUTES, self.name)

    @property
    def missing(self) -> str:
        return "" if self.live else self.what

    @property
    def cut_off(self) -> str:
        """A share stands in the very rules that send requests to the stable version, and goes with these."""
        return ""

    @property
    def given(self) -> bool:
        live = self.live
        return live is not None and marks.read(live, self.facts.by, self.facts.keys) is not None

    @property
    def reaches_new(self) -> bool:
        live = self.live
        return live is not None and http_route.reaches_new(live, self.facts.by, self.facts.keys)

    @property
    def written_over(self) -> bool:
        live = self.live
        return live is not None and bool(http_route.drifted(live, self.facts.by, self.facts.keys))

    @property
    def unaccepted(self) -> str:
        live = self.live
        if live is None:
            return ""
        return http_route.unaccepted(live, http_route.parents(live, self.facts.by, self.facts.keys))

    @property
    def nobody_accepts(self) -> str:
        live = self.live
        if live is None or http_route.accepting_parents(live):
            return ""
        return f"no Gateway accepts {self.what} as it is: correct what its status.parents says"

    def writes(self, split: Split, reason: str) -> tuple[Write, ...]:
        live = self.live
        if live is None or not (split.reaches_new or self.given):
            return ()
        after = http_route.routed(live, self.facts.by, self.facts.keys, backends(self.facts), split)
        return patched(HTTP_ROUTES, live, after, reason)

    def give_back(self, reason: str) -> tuple[Write, ...]:
        live = self.live
        if live is None:
            return ()
        return patched(HTTP_ROUTES, live, http_route.own(live, self.facts.by, self.facts.keys), reason)

    def inexpressible(self, split: Split) -> str:
        live = self.live
        if live is None or not split.matches:
            # Weights alone fit every route.
            return ""
        own = http_route.own(live, self.facts.by, self.facts.keys)
        return http_route.split_problem(own, backends(self.facts), split)

    def problem(self, splits: Iterable[Split]) -> str:
        live = self.live
        if live is None:
            return _does_not_exist(self.facts, HTTP_ROUTES, self.what)
        own = http_route.own(live, self.facts.by, self.facts.keys)
        found = http_route.route_problem(own, backends(self.facts), splits)
        if not found and self.nobody_accepts:
            found = f"{self.nobody_accepts}, or name another one in trafficRoutings"
        return found


@dataclass(frozen=True, slots=True)
class _Ingress:
    """A second Ingress beside the user's, which stays as it is."""

    facts: RoutingFacts
    name: str
    class_type: str

    @property
    def what(self) -> str:
        return f"Ingress {self.canary_name}"

    @property
    def ignore(self) -> str:
        return "let it leave that Ingress alone, which the release has made"

    @property
    def canary_name(self) -> str:
        return ingress.canary_ingress_name(self.name)

    @property
    def main(self) -> Object | None:
        return self.facts.find(INGRESSES, self.name)

    @property
    def live(self) -> Object | None:
        found = self.facts.find(INGRESSES, self.canary_name)
        return found if found is not None and self.facts.is_ours(found) else None

    @property
    def missing(self) -> str:
        return "" if self.main else f"Ingress {self.name}"

    @property
    def cut_off(self) -> str:
        """The second Ingress would go on taking its part of a path that now leads to another Service."""
        main = self.main
        return ingress.no_path(main, self.facts.names.service) if main else ""

    @property
    def given(self) -> bool:
        return self.live is not None

    @property
    def reaches_new(self) -> bool:
        live = self.live
        return live is not None and ingress.reaches_new(live)

    @property
    def written_over(self) -> bool:
        live = self.live
        return live is not None and ingress.drifted(live, self.facts.by, self.facts.keys)

    @property
    def unaccepted(self) -> str:
        """Nothing says when ingress-nginx has taken up a change: the grace period has to do."""
        return ""

    @property
    def nobody_accepts(self) -> str:
        return ""

    def writes(self, split: Split, reason: str) -> tuple[Write, ...]:
        main, live = self.main, self.live
        wanted = main and ingress.canary_ingress(
            main,
            self.facts.keys,
            name=self.canary_name,
            service=self.facts.names.service,
            canary_service=self.facts.canary_service_name,
            split=split,
            owner=self.facts.owner,
        )
        if not wanted:
            return self.give_back(reason)
        noted = ingress.noted(wanted, self.facts.by, self.facts.keys)
        if live is None:
            return (Create(INGRESSES, noted, reason),)
        return patched(INGRESSES, live, ingress.updated(live, noted), reason)

    def give_back(self, reason: str) -> tuple[Write, ...]:
        live = self.live
        if live is None or "deletionTimestamp" in live["metadata"]:
            return ()
        meta: Any = live["metadata"]
        return (Delete(INGRESSES, meta["namespace"], meta["name"], meta["uid"], reason),)

    def inexpressible(self, split: Split) -> str:
        return ingress.split_problem(split)

    def problem(self, splits: Iterable[Split]) -> str:
        main = self.main
        if main is None:
            return _does_not_exist(self.facts, INGRESSES, self.missing)
        every = self.facts.objects.get(INGRESSES, {})
        if self.canary_name in every and not self.given:
            return (
                f"{self.what} exists and is not ours, but the new version's needs its name: delete it, or make it anew"
                " under another name"
            )
        others = [each for name, each in sorted(every.items()) if name not in (self.name, self.canary_name)]
        service = self.facts.names.service
        said = (ingress.ingress_problem(main, service, self.class_type, split) for split in splits)
        return next(filter(None, said), "") or ingress.rival_problem(main, service, others)


def _does_not_exist(facts: RoutingFacts, resource: Resource, what: str) -> str:
    if resource in facts.absent:
        return (
            f"this cluster does not serve {resource}, so there is no {what}: install its CustomResourceDefinition, or"
            " route by another kind"
        )
    return f"{what} does not exist in namespace {facts.namespace}: create it, or name another one in trafficRoutings"
