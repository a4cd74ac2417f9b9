"""The user's own HTTPRoute as a router: the share is written into it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import HTTP_ROUTES, ObjectRef, Resource
from rollout_lws.objects.writes import Write
from rollout_lws.traffic import http_route, marks
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.registry import HTTP_ROUTE
from rollout_lws.traffic.route import weighted
from rollout_lws.traffic.router import Problem, does_not_exist, patched
from rollout_lws.traffic.services import backends
from rollout_lws.traffic.split import Object, Split


@dataclass(frozen=True, slots=True)
class HttpRouter:
    """The user's own route, with the share written into it."""

    spec: ClassVar = HTTP_ROUTE
    facts: RoutingFacts
    name: str

    @staticmethod
    def restore(live: Object, by: str, keys: Keys) -> Object:
        return http_route.own(live, by, keys)

    @property
    def resource(self) -> Resource:
        return HTTP_ROUTES

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(HTTP_ROUTES.kind, self.name)

    @property
    def ignore(self) -> str:
        return "let it ignore the rules of the route"

    @property
    def live(self) -> Object | None:
        return self.facts.find(HTTP_ROUTES, self.name)

    @property
    def missing(self) -> str:
        return "" if self.live else str(self.ref)

    @property
    def taken(self) -> str:
        return ""

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
        return live is not None and weighted.reaches_new(live, self.facts.by, self.facts.keys)

    @property
    def weight(self) -> int:
        live = self.live
        return weighted.weight(live, self.facts.by, self.facts.keys) if live is not None else 0

    @property
    def written_over(self) -> bool:
        live = self.live
        return live is not None and bool(http_route.drifted(live, self.facts.by, self.facts.keys))

    @property
    def unaccepted(self) -> str:
        live = self.live
        if live is None:
            return ""
        return http_route.unaccepted(live, weighted.parents(live, self.facts.by, self.facts.keys))

    @property
    def nobody_accepts(self) -> str:
        live = self.live
        if live is None or http_route.accepting_parents(live):
            return ""
        return f"no Gateway accepts {self.ref} as it is: correct what its status.parents says"

    def writes(self, split: Split, reason: str, *, checked: bool) -> tuple[Write, ...]:
        live = self.live
        if live is None or not (self.given or (checked and split.reaches_new)):
            return ()
        after = http_route.routed(live, self.facts.by, self.facts.keys, backends(self.facts.names), split)
        return patched(HTTP_ROUTES, live, after, reason)

    def inexpressible(self, split: Split) -> str:
        live = self.live
        if live is None or not split.matches:
            # Weights alone fit every route.
            return ""
        own = http_route.own(live, self.facts.by, self.facts.keys)
        return http_route.split_problem(own, backends(self.facts.names), split)

    def problem(self, splits: Iterable[Split], *, begun: bool = False) -> Problem | None:
        live = self.live
        if live is None:
            return Problem(does_not_exist(self.facts, HTTP_ROUTES, self.ref), self.ref)
        own = http_route.own(live, self.facts.by, self.facts.keys)
        found = http_route.route_problem(own, backends(self.facts.names), splits, begun=begun)
        if not found and self.nobody_accepts:
            found = f"{self.nobody_accepts}, or name another one in trafficRoutings"
        return Problem(found, self.ref) if found else None
