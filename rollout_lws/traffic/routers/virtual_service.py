"""Router for Istio: writes weights into the user's VirtualService, and makes a copy of its DestinationRule.

Istio reports no acceptance of either, unless it is told to, so the grace period covers the time that proxies take. The
copy is there before the VirtualService names the new version's Service, which has no requests for a grace period then:
proxies fail requests to a subset that they do not know yet.
"""

from __future__ import annotations

from dataclasses import replace

from rollout_lws.objects.resources import DESTINATION_RULES, VIRTUAL_SERVICES, ObjectRef
from rollout_lws.objects.writes import Create, Write
from rollout_lws.traffic.copies import copied, destination_rule
from rollout_lws.traffic.copy_names import written_name
from rollout_lws.traffic.registry import DESTINATION_RULE, VIRTUAL_SERVICE
from rollout_lws.traffic.route import istio
from rollout_lws.traffic.route.kinds import PAIR_RULES, VIRTUAL_SERVICE_RULES
from rollout_lws.traffic.route.state import references, refers
from rollout_lws.traffic.route.weighted import namespace_of
from rollout_lws.traffic.router import Problem, RouteState, Written, does_not_exist, patched
from rollout_lws.traffic.routers.weighted import WeightedRouter
from rollout_lws.traffic.services import backends
from rollout_lws.traffic.split import Object, Split


class VirtualServiceRouter(WeightedRouter):
    """The user's own VirtualService, and the DestinationRule of its Service if the Rollout names that."""

    spec, rules, pair = VIRTUAL_SERVICE, VIRTUAL_SERVICE_RULES, PAIR_RULES[VIRTUAL_SERVICES]

    @property
    def _policy(self) -> str:
        """Name of the user's DestinationRule; "" where none is named."""
        return self.facts.names.policy(DESTINATION_RULES.kind)

    def _state(self, ref: ObjectRef, live: Object) -> RouteState:
        found = super()._state(ref, live)
        if not self._policy:
            return found
        copy = copied.own(self.facts, DESTINATION_RULE, self._policy)
        drifted = copy is not None and destination_rule.drifted(copy, self.facts.by, self.facts.keys)
        name = ObjectRef(DESTINATION_RULES.kind, written_name(DESTINATION_RULE, self._policy))
        return replace(found, objects=(*found.objects, Written(name, copy, copy is not None, drifted)))

    def apply(self, split: Split, reason: str, *, checked: bool) -> tuple[Write, ...]:
        state = self.state
        names_new = state.objects[0].modified or (checked and split.names_new)
        return (*(self._copied(reason) if names_new else ()), *super().apply(split, reason, checked=checked))

    def _copied(self, reason: str) -> tuple[Write, ...]:
        """The write after which the new version's Service has the DestinationRule of the stable one's."""
        main = self.facts.find(DESTINATION_RULES, self._policy)
        if main is None:
            return ()
        made = destination_rule.annotated(
            destination_rule.canary_rule(
                main,
                self.facts.keys,
                name=written_name(DESTINATION_RULE, self._policy),
                canary_service=self.facts.canary_service_name,
                owner=self.facts.owner,
            ),
            self.facts.by,
            self.facts.keys,
        )
        live = copied.own(self.facts, DESTINATION_RULE, self._policy)
        if live is None:
            return (Create(DESTINATION_RULES, made, reason),)
        return patched(DESTINATION_RULES, live, destination_rule.updated(live, made), reason)

    def check(self, split: Split | None = None, *, begun: bool = False) -> Problem | None:
        found = super().check(split, begun=begun)
        live = self._live
        if found is not None or split is not None or live is None:
            return found
        return self._policy_problem(live) or copied.taken(self.facts, DESTINATION_RULE, self._policy)

    def _policy_problem(self, live: Object) -> Problem | None:
        main = self.facts.find(DESTINATION_RULES, self._policy)
        ref = ObjectRef(DESTINATION_RULES.kind, self._policy)
        if self._policy and main is None:
            return Problem(does_not_exist(self.facts, DESTINATION_RULES, ref), ref, "")
        if main is not None and (said := destination_rule.rule_problem(main, self.facts.names.service)):
            return Problem(said, ref, "spec.host")
        known = destination_rule.subsets(main) if main is not None else frozenset()
        stable, namespace = backends(self.facts.names).stable, namespace_of(live)
        for rule in self.rules.read(self._own(live)):
            for reference in references(rule):
                subset = istio.subset(reference)
                if subset and subset not in known and refers(reference, stable, namespace):
                    return Problem(self._unknown(subset), self._ref, "spec.http")
        return None

    def _unknown(self, subset: str) -> str:
        """That nothing says what a subset is, as a sentence that says what to do."""
        sends = f"{self._ref} sends requests to subset {subset} of {self.facts.names.service}"
        if not self._policy:
            return f"{sends}: name the DestinationRule that says what it is in istio.destinationRuleName"
        return f"{sends}, which DestinationRule {self._policy} does not have: add it there, or name the one that has it"
