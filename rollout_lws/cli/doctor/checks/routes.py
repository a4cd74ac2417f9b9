"""Routes and autoscalers: routes must be accepted by Gateways and match the release's traffic weights; autoscalers must
leave the groups alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, HTTP_ROUTES
from rollout_lws.rollout.autoscaling import hpa_bounds
from rollout_lws.rollout.routing.weights import settings, told, wanted_split
from rollout_lws.traffic import pools, weighted_router
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.pools import unanswered
from rollout_lws.traffic.route import weighted
from rollout_lws.traffic.router import Router, RouteState
from rollout_lws.traffic.routers import routers
from rollout_lws.traffic.split import ALL_STABLE, Object

#: Seconds within which a Gateway's controller processes a route change.
TAKEN_UP_SECONDS = 30


def links(case: Case) -> Iterator[Link]:
    """One link for each routing object of the Rollout."""
    asked, facts = settings(case.d), case.facts.observation.routing
    if asked is None or facts is None or case.facts.observation.stable is None:
        return
    every = routers(facts)
    if not every:
        return
    kind, users = every[0].spec.resource, every[0].state.users
    about = f"{kind.kind}/{users.name}"
    steps = (case.kubectl(f"get {kind} {users.name} -o yaml"),)
    found = case.unread(Name.ROUTE, about, kind) or case.complained(Name.ROUTE, about, steps)
    if found is not None:
        unaccepted = _gateways_say(facts) if found.state is State.BROKEN else ""
        text = f"{found.found} ({unaccepted})" if unaccepted and unaccepted not in found.found else found.found
        yield Link(found.name, found.state, found.about, text, found.by_itself, found.next)
        return
    for each in every:
        yield _route(case, facts, each)


def _route(case: Case, facts: RoutingFacts, router: Router) -> Link:
    state, written = router.state, router.state.objects[0]
    ref = state.users if written.live is None or state.missing else state.ref
    about = f"{ref.kind}/{ref.name}"
    steps = (case.kubectl(f"get {router.spec.resource} {ref.name} -o yaml"),)
    late = _late(case, state)
    broken = _broken(case, facts, state) or ("" if late else state.unaccepted)
    if broken:
        return Link(Name.ROUTE, State.BROKEN, about, broken, "the release goes on when it is fixed", steps)
    undone = next((each for each in case.undone if each.about == about), None)
    if undone is not None:
        text = f"does not say what the Rollout does: {undone.text} is pending"
        return Link(Name.ROUTE, State.BROKEN, about, text, "the controller writes it as soon as it acts", steps)
    if late:
        waits = case.facts.is_fresh(written.live or {}, TAKEN_UP_SECONDS)
        by_itself = "the release goes on when the Gateway has taken it up: does its controller run?"
        return Link(Name.ROUTE, State.WAITING if waits else State.BROKEN, about, late, by_itself, steps)
    record = case.d.status.traffic
    share = record.applied.text if record is not None and record.applied is not None else told(ALL_STABLE)
    return ok(Name.ROUTE, about, f"accepted, with {share} of requests to the new version")


def _broken(case: Case, facts: RoutingFacts, state: RouteState) -> str:
    """Why the route delivers no requests, or not those that it should; "" when it works."""
    if state.missing:
        return f"{state.missing} does not exist"
    if state.cut_off:
        return state.cut_off
    if state.unused:
        said = _gateways_say(facts)
        return state.unused + (f" ({said})" if said else "")
    if case.is_on and wanted_split(case.d).reaches_new:
        problem = unanswered(facts, facts.names.canary_pool) or pools.canary_denied(facts)
        if problem:
            return problem
    # Without access to endpoints, report nothing.
    return unanswered(facts, facts.names.stable_pool) if facts.synced else ""


def _late(case: Case, state: RouteState) -> str:
    """What Gateways have yet to report on the current route, if they accepted it before its last change."""
    live = state.objects[0].live
    if live is None or not state.unaccepted:
        return ""
    asked = weighted.parents(live, case.d.uid, case.d.keys)
    return state.unaccepted if set(asked) <= set(weighted_router.RULES.accepting(live)) else ""


def _gateways_say(facts: RoutingFacts) -> str:
    """The status message of the first Gateway that does not accept the HTTPRoute."""
    name = next((ref.name for ref in facts.names.refs if ref.kind == HTTP_ROUTES.kind), None)
    live: Object | None = facts.find(HTTP_ROUTES, name)
    if live is None:
        return ""
    parents = weighted.attached_to(live)
    return weighted_router.RULES.unaccepted(live, parents) if parents else f"HTTPRoute {name} names no parent"


def autoscaler(case: Case) -> Link | None:
    """Whether the rules refuse an autoscaler, or two scale the LWS; None without autoscalers."""
    known = case.facts.observation.autoscalers.objects
    about = f"LeaderWorkerSet/{case.workload_name}"
    if HORIZONTAL_POD_AUTOSCALERS in case.facts.refused:
        return case.unread(Name.AUTOSCALER, about, HORIZONTAL_POD_AUTOSCALERS)
    if not known or case.facts.observation.stable is None:
        return None
    about = f"{HORIZONTAL_POD_AUTOSCALERS.kind}/{known[0]['metadata']['name']}"
    steps = (case.kubectl(f"describe horizontalpodautoscaler {known[0]['metadata']['name']}"),)
    found = case.complained(Name.AUTOSCALER, about, steps)
    if found is not None:
        return found
    scaling = [each for each in known if hpa_bounds.scaled_workload(each) == case.workload_name]
    if len(scaling) > 1:
        names = " and ".join(sorted(f"HorizontalPodAutoscaler {each['metadata']['name']}" for each in scaling))
        text = f"{names} scale LeaderWorkerSet {case.workload_name} at the same time: delete all but one"
        return Link(Name.AUTOSCALER, State.BROKEN, about, text, "each undoes what the other does", steps)
    return ok(Name.AUTOSCALER, about, "is held for the release" if case.is_on else "scales as its owner says")
