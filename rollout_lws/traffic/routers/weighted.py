"""Routers for routes with weighted rules (the Gateway API's): the weight is written into the user's object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import GRPC_ROUTES, HTTP_ROUTES, ObjectRef, Resource
from rollout_lws.objects.writes import Write
from rollout_lws.traffic import marks
from rollout_lws.traffic.custom import marked_object
from rollout_lws.traffic.custom.marked_object import changed_by_script
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.registry import GRPC_ROUTE, HTTP_ROUTE, RouterSpec
from rollout_lws.traffic.route import weighted
from rollout_lws.traffic.route.kinds import GRPC_RULES, HTTP_RULES, PAIR_RULES
from rollout_lws.traffic.route.pair import PairRules
from rollout_lws.traffic.route.weighted import WeightedRules
from rollout_lws.traffic.router import Problem, RouteState, Written, does_not_exist, patched
from rollout_lws.traffic.services import backends
from rollout_lws.traffic.split import Object, Split


@dataclass(frozen=True)
class RuleRouter(ABC):
    """One routing object with ``rules``; of a ``pair``, weight is only moved between backends that these name."""

    spec: ClassVar[RouterSpec]
    rules: ClassVar[WeightedRules]
    pair: ClassVar[PairRules]
    facts: RoutingFacts
    name: str

    @property
    def resource(self) -> Resource:
        return self.spec.resource

    @property
    def _ref(self) -> ObjectRef:
        return ObjectRef(self.spec.resource.kind, self.name)

    @property
    def _live(self) -> Object | None:
        return self.facts.find(self.spec.resource, self.name)

    @cached_property
    def state(self) -> RouteState:
        live, ref = self._live, self._ref
        return RouteState(ref, (Written(ref, None),), missing=str(ref)) if live is None else self._state(ref, live)

    @abstractmethod
    def _state(self, ref: ObjectRef, live: Object) -> RouteState: ...

    @classmethod
    def restore(cls, live: Object, by: str, keys: Keys) -> Object:
        """Objects are found by their annotation, whose entry may be of either form."""
        return cls.pair.own(live, by, keys)

    def check(self, split: Split | None = None, *, begun: bool = False) -> Problem | None:
        live = self._live
        if live is None:
            absent = does_not_exist(self.facts, self.spec.resource, self._ref)
            return Problem(absent, self._ref, "") if split is None else None
        if split is not None and not split.matches:
            # Weights alone fit every route.
            return None
        own, both = self._own(live), backends(self.facts.names)
        rules = self._written
        if split is None:
            by_script = marked_object.scripted(live, self.facts.by, self.facts.keys)
            found = changed_by_script(self._ref) if by_script else rules.route_problem(own, both, begun=begun)
        else:
            found = rules.split_problem(own, both, split)
        return Problem(found, self._ref, f"spec.{self.spec.members[0]}") if found else None

    def _own(self, live: Object) -> Object:
        """The user's own route."""
        return self.restore(live, self.facts.by, self.facts.keys)

    @property
    @abstractmethod
    def _written(self) -> WeightedRules | PairRules:
        """What writes the rules, and so knows which it cannot write."""


class WeightedRouter(RuleRouter):
    """Adds the new version's backend beside the stable one's; each kind is a subclass that supplies how its ``rules``
    are read and written.
    """

    @property
    def _written(self) -> WeightedRules:
        return self.rules

    def _state(self, ref: ObjectRef, live: Object) -> RouteState:
        by, keys = self.facts.by, self.facts.keys
        modified = marks.read(live, by, keys) is not None
        return RouteState(
            ref,
            (Written(ref, live, modified, bool(self.rules.drifted(live, by, keys))),),
            weighted.reaches_new(live, by, keys),
            weighted.weight(live, by, keys),
            carried=weighted.carried(live, by, keys),
            unmarked=self.rules.unmarked(live, by, keys, backends(self.facts.names)),
            unlisted=self.rules.unlisted(live, by, keys, backends(self.facts.names)),
            listed_at=weighted.listed_at(live, by, keys),
            unused=self.rules.unused(live),
            unaccepted=self.rules.unaccepted(live, weighted.parents(live, by, keys)),
        )

    def apply(self, split: Split, reason: str, *, checked: bool) -> tuple[Write, ...]:
        live, by, keys = self._live, self.facts.by, self.facts.keys
        both = backends(self.facts.names)
        if live is None:
            return ()
        if marks.read(live, by, keys) is not None or (checked and split.names_new):
            after = self.rules.routed(live, by, keys, both, split)
        elif checked and self.rules.unmarked(live, by, keys, both):
            # Restored for good: an entry that is put back could be removed again, without end.
            after = self.rules.own(live, by, keys, both)
        else:
            return ()
        return patched(self.spec.resource, live, after, reason)


class HttpRouter(WeightedRouter):
    """The user's own HTTPRoute."""

    spec, rules, pair = HTTP_ROUTE, HTTP_RULES, PAIR_RULES[HTTP_ROUTES]


class GrpcRouter(WeightedRouter):
    """The user's own GRPCRoute."""

    spec, rules, pair = GRPC_ROUTE, GRPC_RULES, PAIR_RULES[GRPC_ROUTES]
