"""Routes and autoscalers: routes must be accepted by Gateways and match the release's traffic weights; autoscalers must
leave the groups alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from rollout_lws.api import WriteConflict
from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.checks import pair, scripted
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, ObjectRef
from rollout_lws.rollout.autoscaling import hpa_bounds, replicas
from rollout_lws.rollout.routing.weights import settings, wanted_split
from rollout_lws.rollout.write_conflicts import COOL_DOWN_SECONDS
from rollout_lws.traffic import pools
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.pools import unanswered
from rollout_lws.traffic.registry import spec_of
from rollout_lws.traffic.route import weighted
from rollout_lws.traffic.router import Router
from rollout_lws.traffic.routers.custom import CustomRouter
from rollout_lws.traffic.routers.of_rollout import routers
from rollout_lws.traffic.routers.weighted import RuleRouter
from rollout_lws.traffic.split import Object

#: Seconds within which a Gateway's controller processes a route change.
TAKEN_UP_SECONDS = 30


def links(case: Case) -> Iterator[Link]:
    """One link for each routing object of the Rollout."""
    asked, facts = settings(case.d), case.facts.observation.routing
    if asked is None or facts is None or case.facts.observation.stable is None:
        return
    every = [(router, *_shown(case, router)) for router in routers(facts)]
    unread = [_unread(case, router, about) for router, about, _ in every]
    found = None if any(unread) or not every else case.complained(Name.ROUTE, *every[0][1:])
    if found is not None:
        said = (_gateways_say(router) for router, _, _ in every) if found.state is State.BROKEN else ()
        unaccepted = next(filter(None, said), "")
        text = f"{found.found} ({unaccepted})" if unaccepted and unaccepted not in found.found else found.found
        yield Link(found.name, found.state, found.about, text, found.by_itself, found.next)
        return
    for (router, about, steps), unknown in zip(every, unread, strict=True):
        yield unknown or _route(case, facts, router, about, steps)


def _unread(case: Case, router: Router, about: str) -> Link | None:
    found = scripted.unknown(case, router, about) if isinstance(router, CustomRouter) else None
    return found or case.unread(Name.ROUTE, about, router.resource)


def _shown(case: Case, router: Router) -> tuple[str, tuple[str, ...]]:
    """The object of a router's link, the user's until a release has written one, and the command that shows it."""
    state = router.state
    ref = state.users if state.objects[0].live is None or state.missing else state.ref
    return f"{ref.kind}/{ref.name}", (case.kubectl(f"get {router.resource} {ref.name} -o yaml"),)


def _route(case: Case, facts: RoutingFacts, router: Router, about: str, steps: tuple[str, ...]) -> Link:
    state = router.state
    late = _late(case, router)
    unusable = router.check() if isinstance(router, CustomRouter) else None
    broken = (unusable.message if unusable is not None else "") or _broken(case, facts, router)
    broken = broken or ("" if late else state.unaccepted)
    if broken:
        return Link(Name.ROUTE, State.BROKEN, about, broken, "the release goes on when it is fixed", steps)
    misled = _misled(case, facts, router, about, steps)
    if misled is not None:
        return misled
    drifted = next((each.ref for each in state.objects if each.drifted), None)
    if drifted is not None:
        advice = (spec_of(drifted.kind) or router.spec).advice
        text = f"another client has written over what the release wrote in {drifted}: {advice}"
        by_itself = "it is put back, each time later; nothing goes forward meanwhile"
        return Link(Name.ROUTE, State.BROKEN, about, text, by_itself, steps)
    undone = case.not_done(Name.ROUTE, about, (state.users, *(each.ref for each in state.objects)), steps)
    if undone is not None:
        return undone
    if late:
        waits = case.facts.is_fresh(state.objects[0].live or {}, TAKEN_UP_SECONDS)
        by_itself = "the release goes on when the Gateway has taken it up: does its controller run?"
        return Link(Name.ROUTE, State.WAITING if waits else State.BROKEN, about, late, by_itself, steps)
    if isinstance(router, CustomRouter):
        return scripted.link(case, about, steps)
    if case.d.paired and not case.is_on:
        whose = "" if case.facts.observation.undecided else f", with all requests to {case.workload_name}"
        return ok(Name.ROUTE, about, f"accepted{whose}")
    return ok(Name.ROUTE, about, f"accepted, with {case.share} of requests to the new version")


def _misled(case: Case, facts: RoutingFacts, router: Router, about: str, steps: tuple[str, ...]) -> Link | None:
    """Of a pair: whether requests go to a side that does not answer them, or should not get them."""
    if not case.d.paired:
        return None
    before = case.facts.before
    state = State.BROKEN if before is None or (Name.ROUTE, about) in before.amiss else State.WAITING
    found = pair.misled(case, facts, router)
    if found is not None:
        return Link(Name.ROUTE, State.WAITING if found.waits else state, about, found.text, found.by_itself, steps)
    text = pair.disagreement(case, facts)
    if not text:
        return None
    # The roles of a release change in the route first.
    return Link(Name.ROUTE, state, about, text, "a controller follows the route", steps)


def _broken(case: Case, facts: RoutingFacts, router: Router) -> str:
    """Why the route delivers no requests, or not those that it should; "" when it works."""
    state = router.state
    if state.missing:
        return f"{state.missing} does not exist"
    if state.cut_off:
        return state.cut_off
    if state.unused:
        said = _gateways_say(router)
        return state.unused + (f" ({said})" if said else "")
    if case.is_on and wanted_split(case.d).reaches_new:
        problem = unanswered(facts, facts.names.canary_pool) or pools.canary_denied(facts)
        if problem:
            return problem
    # Without access to endpoints, report nothing.
    return unanswered(facts, facts.names.stable_pool) if facts.synced else ""


def _late(case: Case, router: Router) -> str:
    """What Gateways have yet to report on the current route, if they accepted it before its last change."""
    state, live = router.state, router.state.objects[0].live
    if live is None or not state.unaccepted or not isinstance(router, RuleRouter):
        return ""
    paired = case.d.paired
    asked = pair.asked_parents(case, live) if paired else weighted.parents(live, case.d.uid, case.d.keys)
    return state.unaccepted if set(asked) <= set(router.rules.accepting(live)) else ""


def _gateways_say(router: Router) -> str:
    """The status message of the first Gateway that does not accept the route."""
    live = router.state.objects[0].live
    if live is None or not isinstance(router, RuleRouter):
        return ""
    parents = weighted.attached_to(live)
    return router.rules.unaccepted(live, parents) if parents else f"{router.state.users} names no parent"


def autoscaler(case: Case) -> Link | None:
    """Whether an autoscaler works against the release, or is still held after it; None without autoscalers."""
    known, d = case.facts.observation.autoscalers.objects, case.d
    about = case.named(case.workload_name)
    if HORIZONTAL_POD_AUTOSCALERS in case.facts.refused:
        return case.unread(Name.AUTOSCALER, about, HORIZONTAL_POD_AUTOSCALERS)
    known = (*known, *case.facts.observation.autoscalers.of_rollout)
    if d.paired and not d.scales_sides:
        return _of_pair(case, known)
    if not known or case.facts.observation.stable is None:
        return _number(case)
    about = f"{HORIZONTAL_POD_AUTOSCALERS.kind}/{known[0]['metadata']['name']}"
    steps = (case.kubectl(f"describe horizontalpodautoscaler {known[0]['metadata']['name']}"),)
    found = case.complained(Name.AUTOSCALER, about, steps)
    if found is not None:
        return found
    scaling = [each for each in known if hpa_bounds.scaled_workload(each) == case.workload_name]
    behind = _behind_the_rollout(case, scaling, steps)
    if behind is not None:
        return behind
    if len(scaling) > 1:
        names = " and ".join(sorted(f"HorizontalPodAutoscaler {each['metadata']['name']}" for each in scaling))
        text = f"{names} scale {case.d.called} at the same time: delete all but one"
        return Link(Name.AUTOSCALER, State.BROKEN, about, text, "each undoes what the other does", steps)
    held = [each for each in known if hpa_bounds.is_held(each, d.uid, d.keys)]
    drifted = [each for each in held if hpa_bounds.drifted(each, d.uid, d.keys)]
    recent = _overwritten(case)
    if drifted or recent:
        who, name = (recent[-1].manager, recent[-1].name) if recent else ("another client", _name(drifted[0]))
        text = f"{who} writes over the bounds that the release holds: have it leave minReplicas and maxReplicas alone"
        return _conflict(case, name, text, "the hold is put back, each time later")
    if held and not case.is_on and not d.pending:
        text = "is still held, though no release is in progress"
        return _conflict(case, _name(held[0]), text, "the controller restores it as soon as it acts")
    refs = [ObjectRef(HORIZONTAL_POD_AUTOSCALERS.kind, _name(each)) for each in known]
    undone = case.not_done(Name.AUTOSCALER, about, refs, steps) or _number(case)
    return undone or ok(Name.AUTOSCALER, about, "is held for the release" if held else "scales as its owner says")


def _of_pair(case: Case, known: Sequence[Object]) -> Link | None:
    """With touch RouteOnly the workloads of a pair are scaled by their owner's means, and its Rollout by none."""
    of_rollout = case.facts.observation.autoscalers.of_rollout
    if of_rollout:
        name = _name(of_rollout[0])
        text = f"cannot scale Rollout {case.name}, which scales no workload of its pair: let it scale the workload"
        about = f"{HORIZONTAL_POD_AUTOSCALERS.kind}/{name}"
        steps = (case.kubectl(f"describe horizontalpodautoscaler {name}"),)
        return Link(Name.AUTOSCALER, State.BROKEN, about, text, "nothing is scaled", steps)
    if not known:
        return None
    about = f"{HORIZONTAL_POD_AUTOSCALERS.kind}/{_name(known[0])}"
    return ok(Name.AUTOSCALER, about, "scales as its owner says, also in a release")


def _number(case: Case) -> Link | None:
    """Whether the workload does not get, or keep, the number of groups that the Rollout asks for."""
    told, about = replicas.told(case.d), case.named(case.workload_name)
    if told.contested:
        yaml = case.kubectl(f"get {case.target.resource} {case.workload_name} -o yaml --show-managed-fields")
        return Link(Name.AUTOSCALER, State.BROKEN, about, told.text, "it is tried again, each time later", (yaml,))
    by_itself = "it is written as soon as it may be"
    return Link(Name.AUTOSCALER, State.WAITING, about, told.text, by_itself, ()) if told.text else None


def _behind_the_rollout(case: Case, of_workload: Sequence[Object], steps: tuple[str, ...]) -> Link | None:
    """Whether an autoscaler cannot scale the Rollout, or scales the workload whose number the Rollout sets."""
    asked, of_rollout = case.facts.observation.rollout.spec.replicas, case.facts.observation.autoscalers.of_rollout
    if of_rollout and asked is None:
        text = f"cannot scale Rollout {case.name}, whose spec has no replicas: give it the number that there is"
        about = f"{HORIZONTAL_POD_AUTOSCALERS.kind}/{_name(of_rollout[0])}"
        scale = f"scale rollouts.{case.d.keys.group} {case.name} --replicas={case.d.replicas}"
        return Link(Name.AUTOSCALER, State.BROKEN, about, text, "nothing is scaled", (case.kubectl(scale), *steps))
    if of_workload and asked is not None:
        text = (
            f"scales {case.d.called}, for which Rollout {case.name} asks for {asked} groups: let it scale the Rollout"
        )
        return _conflict(case, _name(of_workload[0]), text, "the Rollout's number is put back, each time later")
    return None


def _overwritten(case: Case) -> list[WriteConflict]:
    """Times at which the controller found the bounds overwritten, as far as they still count."""
    record = case.d.status.autoscalers
    since = case.now - timedelta(seconds=COOL_DOWN_SECONDS)
    return [each for each in (record.conflicts if record else ()) if each.at is not None and each.at > since]


def _conflict(case: Case, name: str, text: str, by_itself: str) -> Link:
    about = f"{HORIZONTAL_POD_AUTOSCALERS.kind}/{name}"
    steps = (case.kubectl(f"get horizontalpodautoscaler {name} -o yaml --show-managed-fields"),)
    return Link(Name.AUTOSCALER, State.BROKEN, about, text, by_itself, steps)


def _name(live: Object) -> str:
    return str(live["metadata"]["name"])
