"""The two sides of a pair: which one is active, and what the route says of them at rest.

The route carries the role: our annotation on it, which names the active workload, else the labels of workloads that
releases scale, else its weights. A client that may write those can move all requests anyway, which a writer of the
status cannot. The status decides only where both sides have weight and annotation and labels are gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rollout_lws.api.words import DrainUntil
from rollout_lws.rollout.decision import FieldRef
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.history import stored_as
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.selector_pinning import answer_conflict
from rollout_lws.rollout.routing.serving import SHORTEST_BAN_SECONDS, keeps_shares, new_serves, stable_serves
from rollout_lws.rollout.routing.versions import new_endpoints, stable_endpoints
from rollout_lws.rollout.routing.weights import settings
from rollout_lws.rollout.write_conflicts import COOL_DOWN_SECONDS
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.routers.of_rollout import PAIR_ROUTERS, pair_routers
from rollout_lws.traffic.routers.pair import PairRouter
from rollout_lws.traffic.split import Split
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups

#: What a label says of a workload's role, if releases scale both workloads of its pair, or those of a swap.
ACTIVE, PARKED = "active", "parked"
#: Reason of writes at rest.
AT_REST = "all requests to the active side"


@dataclass(frozen=True, slots=True)
class Side:
    """One workload of a pair: its ``name``, its ``facts`` (None: it does not exist), the sum of its weights in the
    route, whether its label says that it is the active one, and whether its number of groups is the Rollout's.
    """

    name: str
    facts: Facts | None
    weight: int = 0
    labelled: bool = False
    scaled: bool = False

    def can_serve(self, now: datetime) -> bool:
        return self.facts is not None and any(group.ready(now) for group in groups(self.facts))

    @property
    def is_going(self) -> bool:
        return self.facts is not None and self.facts.workload.metadata.terminating

    @property
    def is_empty(self) -> bool:
        return self.facts is None or self.facts.workload.replicas == 0

    @property
    def is_given_up(self) -> bool:
        """Whether its owner has deleted it or scaled it to zero. A number that is the Rollout's is put back."""
        return self.facts is None if self.scaled else self.is_empty


def active_side(
    one: Side, other: Side, *, on_record: str, asked: str | None, now: datetime, stable: str | None = None
) -> str:
    """Name of the side that requests go to at rest; "" if nothing says so.

    That is the one ``on_record`` in the route, unless its owner has given it up while the other one can serve. Of a
    route without a record it is the only one that is labelled so, else the one with all the weight, else the one whose
    workload has the UID ``stable``, as the status says, else the one that the Rollout ``asked`` for, else the only one
    that has groups or can serve; the other one if only that can serve.
    """
    sides = {one.name: one, other.name: other}
    if on_record in sides:
        active, inactive = _and_other(sides, on_record)
        # A record that contradicts the labels may be of a manifest of long ago.
        outdated = inactive.labelled and not active.labelled
        gone = active.is_given_up or ((outdated or active.is_going) and not active.can_serve(now))
        return inactive.name if gone and inactive.can_serve(now) else active.name
    candidates = (
        [each.name for each in (one, other) if each.labelled],
        [each.name for each in (one, other) if each.weight],
        [each.name for each in (one, other) if each.facts and each.facts.workload.metadata.uid == stable],
        [name for name in (asked,) if name in sides],
        [each.name for each in (one, other) if not each.is_empty],
        [each.name for each in (one, other) if each.can_serve(now)],
    )
    found = next((names[0] for names in candidates if len(names) == 1), None)
    if not found:
        return ""
    active, inactive = _and_other(sides, found)
    return inactive.name if inactive.can_serve(now) and not active.can_serve(now) else active.name


def _and_other(sides: dict[str, Side], name: str) -> tuple[Side, Side]:
    return sides[name], next(each for each in sides.values() if each.name != name)


# At rest


def rest(d: Draft, reason: str = AT_REST) -> tuple[Draft, Routed]:
    """Has the route give the active side all requests, whatever it says now; done when nothing has to be written. A
    side that serves keeps them while the active one does not.
    """
    facts = d.o.routing
    if facts is None:
        return d, DONE
    if facts.waits:
        return d, Routed(False, facts.waits)
    kept = only_new_serves_whole(d)
    if kept:
        return d, Routed(True, kept)
    d, instead = _instead(d, facts)
    if instead is not None:
        return d, instead
    found = DONE
    for each in pair_routers(facts):
        writes = each.rest(reason, now=d.now, living=d.o.marked.living or None)
        d = d.write(writes)
        found = Routed(False, f"{each.state.ref} is being written: {reason}") if writes else found
    for each in _left(d, facts) if is_on_record(d) else ():
        d = d.write(each.forget("it is not named in trafficRoutings any more"))
    return d, found


def keep(d: Draft) -> tuple[Draft, Routed]:
    """Puts the route back that others changed at rest: at once if they send requests to a side that does not serve,
    else with a wait that grows, so that a tool that insists is not answered without end.
    """
    facts = d.o.routing
    if facts is None or facts.waits:
        return d, DONE
    insisted = [each for each in pair_routers(facts) if each.state.objects[0].drifted]
    both_may = new_serves(d, facts) and stable_serves(d, facts) and may_serve(d)
    for each in insisted if both_may else ():
        written = each.state.objects[0]
        d, waits = answer_conflict(d, written.live, written.ref, _advice(each))
        if waits is not None:
            return d, waits
    return rest(d)


def _instead(d: Draft, facts: RoutingFacts) -> tuple[Draft, Routed | None]:
    """What the route says at rest while only the inactive side serves: it gets all requests if it has some already, or
    has the version that was there before; None while the active side is to have them.
    """
    if stable_serves(d, facts):
        gone_over = any(each.mark is not None and each.mark.share == 100 for each in pair_routers(facts))
        if not (gone_over and new_serves(d, facts)):
            return d, None
        ready = stable_endpoints(d).ready_since
        needed = min(d.stable.workload.replicas, len(new_endpoints(d).ready_since))
        if len(ready) < needed:
            return d, Routed(True, f"{d.name} gets its requests back when {needed} of its groups are ready")
        since = sorted(ready)[max(needed, 1) - 1] if ready else d.now
        until = d.yet_to_come(since, max(d.minimum, SHORTEST_BAN_SECONDS))
        if until is None:
            return d, None
        told = f"{d.name} gets its requests back at {until:%H:%M:%S} UTC, as it stopped serving before"
        return d.wake(until), Routed(True, told)
    known = may_serve(d)
    if not new_serves(d, facts):
        return d, None
    told = f"no group of {d.name} is ready, so {d.edited.name} has all requests until one is"
    before = len(d.writes)
    for each in pair_routers(facts):
        if not (known or each.reaches_new):
            return d, Routed(
                True,
                f"no group of {d.name} is ready, and {d.edited.name} has a version that was not released: to send"
                f" requests there: {d.command('start')}",
            )
        d = d.write(each.apply(Split(100), told, checked=True))
    return d, Routed(len(d.writes) == before, told)


def is_reached(d: Draft) -> bool:
    """True if the Service of the active side leads to a ready pod: what is left of a workload that was deleted."""
    facts = d.o.routing
    return facts is None or bool(facts.waits or facts.endpoints.get(facts.names.service))


def only_new_serves(d: Draft) -> bool:
    """True if the inactive side of a pair serves and the active one does not."""
    facts = d.o.routing
    if not d.paired or d.o.stable is None or facts is None or facts.waits:
        return False
    return new_serves(d, facts) and not stable_serves(d, facts)


def only_new_serves_whole(d: Draft) -> str:
    """Why the inactive side of a pair keeps its requests: the active one serves without its companions. "" if not."""
    facts = d.o.routing
    if not d.paired or d.o.stable is None or facts is None or facts.waits or not stable_serves(d, facts):
        return ""
    return keeps_shares(d, facts)


def is_down(d: Draft) -> bool:
    """True if no side of a pair that has requests serves."""
    facts = d.o.routing
    if not d.paired or facts is None or facts.waits or stable_serves(d, facts):
        return False
    return not (shares(d) and new_serves(d, facts))


def forget_conflicts(d: Draft) -> Draft:
    """Drops the record of writes of others at rest once it is outdated."""
    record = d.status.traffic
    if record is None:
        return d
    last = max((each.at for each in record.conflicts if each.at is not None), default=None)
    until = d.yet_to_come(last, COOL_DOWN_SECONDS) if last is not None else None
    return d.wake(until) if until is not None else d.set(traffic=None)


def may_serve(d: Draft) -> bool:
    """True if the inactive side has the version that was there before: it has served, or was there at adoption. One
    that a release has to scale up has been released before.
    """
    known = d.o.canary is not None and d.status.inactive_hash == d.version.template_hash and not _is_aborted(d)
    if not known or not d.scales_sides:
        return known
    stored = stored_as(d, d.version.template_hash)
    return stored is not None and d.keys.rollback_reason not in stored.metadata.annotations


def _is_aborted(d: Draft) -> bool:
    aborted = d.status.aborted
    return aborted is not None and aborted.template_hash == d.version.template_hash


def _left(d: Draft, facts: RoutingFacts) -> Iterator[PairRouter]:
    """Routes that the Rollout has named before and names no more."""
    named = {(ref.kind, ref.name) for ref in facts.names.refs}
    for kind in PAIR_ROUTERS:
        for live in d.o.marked.objects.get(kind.spec.resource, ()):
            router = kind(facts, live["metadata"]["name"])
            if (kind.spec.resource.kind, router.name) not in named and router.mark is not None:
                yield router


# The change of roles


def is_ready_to_turn(d: Draft) -> bool:
    """True if the route gives the new side all requests by our own write, and that side serves."""
    facts = d.o.routing
    if facts is None or facts.waits or not new_serves(d, facts):
        return False
    every = pair_routers(facts)
    return bool(every) and all(
        each.mark is not None
        and each.mark.active == d.name
        and each.mark.share == 100
        and not each.state.objects[0].drifted
        and not each.state.unaccepted
        for each in every
    )


def have_turned(d: Draft) -> bool:
    """True if the route has the active side on record, at rest."""
    facts = d.o.routing
    every = pair_routers(facts) if facts is not None else ()
    return bool(every) and all(
        each.mark is not None and each.mark.active == d.name and not each.mark.begun for each in every
    )


def turn(d: Draft) -> Draft:
    """Puts the other side on record as the active one, in the one write that changes the roles."""
    facts, other = d.o.routing, d.o.canary
    if facts is None or other is None:
        return d
    turned = replace(facts, names=facts.names.turned(other.name))
    for each in pair_routers(turned):
        d = d.write(each.rest(f"{other.name} is the active side"))
    return d


# What is told


def shares(d: Draft) -> bool:
    """True if the route, as it stands, sends the inactive side any request."""
    facts = d.o.routing
    return facts is not None and any(each.reaches_new for each in pair_routers(facts))


def weight_of_new(d: Draft) -> int:
    """The least percentage of requests that a route, as it stands, sends the inactive side."""
    facts = d.o.routing
    return min((each.state.weight for each in pair_routers(facts)), default=0) if facts is not None else 0


def is_on_record(d: Draft) -> bool:
    """True if a route says which side is active."""
    facts = d.o.routing
    return facts is not None and any(each.mark is not None for each in pair_routers(facts))


def field_of_route(d: Draft) -> FieldRef | None:
    """The field to look at when the route cannot be used."""
    facts = d.o.routing
    refs = [each.state.users for each in pair_routers(facts)] if facts is not None else []
    return FieldRef("spec.rules", refs[0].kind, refs[0].name) if refs else None


def still_serves(d: Draft, *, withdrawn: bool = False) -> Routed:
    """Done if the inactive side gets no requests, routers have accepted that, and those that ran had their time.
    ``withdrawn``: a release that ends has judged whether routers have accepted it, or need not.
    """
    facts, asked = d.o.routing, settings(d)
    if facts is None or asked is None or facts.waits:
        return Routed(False, facts.waits if facts is not None else "")
    for each in pair_routers(facts):
        if each.state.missing and withdrawn:
            continue
        if each.state.missing:
            return Routed(False, f"{each.state.missing} does not exist")
        if each.reaches_new:
            return Routed(False, f"{each.state.ref} sends it requests")
        if (each.state.unused or each.state.unaccepted) and not withdrawn:
            return Routed(False, each.state.unused or each.state.unaccepted)
        since = each.mark.rested_at if each.mark is not None else None
        idle = asked.draining.until is DrainUntil.IDLE
        seconds = asked.grace_period_seconds + (asked.draining.longest if idle else asked.drain_seconds)
        until = since + timedelta(seconds=seconds) if since is not None else d.now
        if until > d.now:
            return Routed(False, f"requests that run on it get until {until:%H:%M:%S} UTC", until=until)
    return DONE


def _advice(router: PairRouter) -> str:
    return f"{router.spec.advice}, whose weights are the Rollout's"
