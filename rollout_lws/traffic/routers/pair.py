"""Router for routes that name the backends of two workloads of the user: a release only moves weight between them."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime

from rollout_lws.objects.resources import ObjectRef
from rollout_lws.objects.writes import Write
from rollout_lws.traffic import marks
from rollout_lws.traffic.route.pair import PairMark, PairRules, mark_of
from rollout_lws.traffic.router import RouteState, Written, patched
from rollout_lws.traffic.routers.virtual_service import VirtualServiceRouter
from rollout_lws.traffic.routers.weighted import GrpcRouter, HttpRouter, RuleRouter
from rollout_lws.traffic.services import backends
from rollout_lws.traffic.split import Object, Split


class PairRouter(RuleRouter):
    """One routing object. Its entry is there from the first write on, at rest too, and says which workload is the
    active one; each kind is a subclass.
    """

    @property
    def _written(self) -> PairRules:
        return self.pair

    def _state(self, ref: ObjectRef, live: Object) -> RouteState:
        """Without an entry, or once others have moved weight, the weights that stand there count."""
        by, keys, both = self.facts.by, self.facts.keys, backends(self.facts.names)
        modified, mark = marks.read(live, by, keys) is not None, mark_of(live, by, keys)
        drifted = bool(self.pair.drifted(live, by, keys, both))
        own = self._own(live)
        return RouteState(
            ref,
            (Written(ref, live, modified, drifted),),
            reaches_canary=(mark is not None and mark.gives) or self.pair.reaches_new(live, both),
            weight=mark.share if mark is not None and not drifted else self.pair.percent(live, both),
            carried=mark.carried if mark is not None else modified,
            # No weight is moved in a rule from which another writer took a backend.
            unused=self.rules.unused(live) or self.pair.route_problem(own, both, begun=modified),
            unaccepted=self.rules.unaccepted(
                live, mark.parents if mark is not None and mark.begun else self.rules.accepting(live)
            ),
        )

    def _own(self, live: Object) -> Object:
        by, keys, both = self.facts.by, self.facts.keys, backends(self.facts.names)
        return self.restore(self.pair.without_lost(live, by, keys, both, self.facts.appending), by, keys)

    def apply(self, split: Split, reason: str, *, checked: bool) -> tuple[Write, ...]:
        live, by, keys, names = self._live, self.facts.by, self.facts.keys, self.facts.names
        if live is None or not (checked or marks.read(live, by, keys) is not None):
            return ()
        both, appending = backends(names), self.facts.appending
        after = self.pair.routed(live, by, keys, both, names.active, split, appending=appending)
        return patched(self.spec.resource, live, after, reason)

    @property
    def mark(self) -> PairMark | None:
        """The Rollout's entry on the route; None without one."""
        live = self._live
        return mark_of(live, self.facts.by, self.facts.keys) if live is not None else None

    @property
    def reaches_new(self) -> bool:
        """Whether the route, as it stands, sends the new version any request."""
        live = self._live
        return live is not None and self.pair.reaches_new(live, backends(self.facts.names))

    def rest(
        self,
        reason: str,
        *,
        now: datetime | None = None,
        living: Container[str] | None = None,
    ) -> tuple[Write, ...]:
        """The write after which the active workload has all requests and no release has given the other one any; ()
        when that is so already, or there is no object to write. It also restores what Rollouts left that are not among
        the ``living`` UIDs. ``now`` as in ``PairRules.rested``.
        """
        live, by, keys, names = self._live, self.facts.by, self.facts.keys, self.facts.names
        if live is None:
            return ()
        after = live
        for uid in marks.others(live, by, keys):
            if living is not None and uid not in living and mark_of(live, uid, keys) is not None:
                after = self.pair.own(after, uid, keys)
        after = self.pair.rested(
            after, by, keys, backends(names), names.active, appending=self.facts.appending, now=now
        )
        return patched(self.spec.resource, live, after, reason)

    def forget(self, reason: str) -> tuple[Write, ...]:
        """The write that takes the Rollout's entry from the route, which it does not name any more; () without one."""
        live = self._live
        if live is None:
            return ()
        return patched(self.spec.resource, live, self.restore(live, self.facts.by, self.facts.keys), reason)


class PairHttpRouter(PairRouter):
    """The user's own HTTPRoute."""

    spec, rules, pair = HttpRouter.spec, HttpRouter.rules, HttpRouter.pair


class PairGrpcRouter(PairRouter):
    """The user's own GRPCRoute."""

    spec, rules, pair = GrpcRouter.spec, GrpcRouter.rules, GrpcRouter.pair


class PairVirtualServiceRouter(PairRouter):
    """The user's own VirtualService."""

    spec, rules, pair = VirtualServiceRouter.spec, VirtualServiceRouter.rules, VirtualServiceRouter.pair
