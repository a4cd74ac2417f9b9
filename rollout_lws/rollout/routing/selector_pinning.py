"""Pins the user's Services, pools and routes to one version during a release, and restores them afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from rollout_lws.api import Phase, Rollout, RolloutStatus, TrafficRecord
from rollout_lws.objects.resources import SERVICES, ObjectRef, Resource
from rollout_lws.objects.writes import Create, Patch
from rollout_lws.rollout.decision import FieldRef
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.rollout.routing import draining
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.routing_preflight import barred
from rollout_lws.rollout.routing.serving import answers_for_stable
from rollout_lws.rollout.routing.versions import VersionEndpoints, new_endpoints, stable_endpoints
from rollout_lws.rollout.routing.weights import DEFAULT_GRACE_SECONDS, recorded, settings
from rollout_lws.rollout.write_conflicts import Managed, judged
from rollout_lws.traffic import pinned_selectors, services
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.pinned_selectors import Selector
from rollout_lws.traffic.registry import PAIR_KINDS, ROUTING_KINDS, WRITTEN_SPECS, looked_at_kinds
from rollout_lws.traffic.selectors import pinning_keys, selector_changes
from rollout_lws.traffic.split import ALL_STABLE, Object

_MANAGED = Managed(
    ("selector", *(member for spec in WRITTEN_SPECS for member in spec.members)),
    tuple(spec.annotations for spec in WRITTEN_SPECS if spec.annotations),
)


def looked_for(rollout: Rollout, status: RolloutStatus, workload: str | None, *, routes: bool) -> bool:
    """True if all objects that may carry annotations of a release must be known: a Service carries some that have to be
    restored (``routes``), or the status says that traffic may have been routed. Not while a release goes on.
    ``workload`` is the UID of the LWS, None without one.
    """
    leaves = rollout.metadata.deletion_timestamp is not None or bool(rollout.spec.disabled)
    kept = status.stable is not None and workload in (None, status.stable.workload_uid)
    goes_on = status.phase == Phase.PROGRESSING and status.finalising is None and kept and not leaves
    return (routes or status.traffic is not None) and not goes_on


def watched(d: Draft) -> tuple[tuple[str, ...], tuple[Resource, ...]]:
    """Services whose endpoints to watch, and kinds to watch in the whole namespace, while something is or may be routed
    or has to be restored.
    """
    facts, annotated = d.o.routing, d.o.marked
    routes = annotated.any_own or bool(annotated.deleted_uids)
    workload = d.o.stable.workload.metadata.uid if d.o.stable is not None else None
    searched = looked_for(d.o.rollout, d.status, workload, routes=routes)
    noting = (*ROUTING_KINDS, *annotated.custom.resources) if searched else ()
    if d.paired:
        # Its weights are ours at rest, too.
        names = looked_at_kinds(facts.names) if facts is not None else ()
        return (*facts.endpoints,) if facts is not None else (), (*PAIR_KINDS, *names, *noting)
    if facts is None:
        return (), noting
    waits = d.o.stable is not None and d.pending
    releases = d.status.phase == Phase.PROGRESSING or d.status.traffic is not None
    if not (waits or releases or routes or d.o.canary is not None):
        return (), noting
    own = annotated.custom.of(facts.names.custom).resources
    return (*facts.endpoints,), (*looked_at_kinds(facts.names), *own, *noting)


def withdraw_annotated(d: Draft) -> tuple[Draft, Routed]:
    """Removes all weights by the routes' own annotations, once nothing names the routes any more; done when no route
    carries an annotation.
    """
    annotated, before = d.o.marked, d.o.rollout.status or RolloutStatus()
    workload = d.o.stable.workload.metadata.uid if d.o.stable is not None else None
    wanted, known = (looked_for(d.o.rollout, each, workload, routes=annotated.any_own) for each in (d.status, before))
    if annotated.waits or (wanted and not known):
        return d, Routed(False, annotated.waits or "routes that carry notes of this release are being looked for")
    writes = [*annotated.withdraw_weights("no request to the new version")]
    d = d.write(writes)
    if not writes:
        return d, DONE
    what = ", ".join(f"{each.resource.kind} {each.name}" for each in writes)
    return d, Routed(False, f"{what}: the new version's share is taken back")


def prepare(d: Draft) -> tuple[Draft, Routed]:
    """Pins the selectors and creates the canary Service, before any pod exists that the stable Service would select."""
    facts = d.o.routing
    if settings(d) is None or facts is None or not (facts.service is not None or d.paired):
        return d, DONE
    if d.status.traffic is None and facts.waits:
        # What is listed may be an obstacle to a share that is asked for in mid-release.
        return d, Routed(False, facts.waits)
    # From now on the status records that the named objects may be pinned.
    d = d.set(traffic=d.status.traffic or TrafficRecord(desired=recorded(ALL_STABLE)))
    if not d.on_record:
        return d, Routed(False, "the release is put on record first")
    if facts.service is None or d.paired:
        return d, DONE
    new = new_endpoints(d)
    d, pinned = answer(d, facts)
    d, pinned_new = point(d, pinned_selectors.of_new(facts), new)
    return make_copy(d, facts), pinned if not pinned.done else pinned_new


def make_copy(d: Draft, facts: RoutingFacts, endpoints: VersionEndpoints | None = None) -> Draft:
    """Creates the new version's Service, where there is none, which leads to it or to these ``endpoints``. One that
    another client has had lead elsewhere leads there again.
    """
    copy = facts.canary_service
    if copy is not None and facts.is_ours(copy):
        leads = (endpoints or new_endpoints(d)).selects
        led = _led(d, copy, leads, "another client has had it lead elsewhere")
        if not led:
            return d
        advice = "its selector is that of the release, and it goes with it: leave it alone"
        d, waits = answer_conflict(d, copy, ObjectRef(SERVICES.kind, copy["metadata"]["name"]), advice)
        return d.write(led) if waits is None else d
    unpinned = any(barred(d, each) for each in pinned_selectors.of_stable(facts))
    if facts.service is not None and facts.canary_service is None and not unpinned:
        new = endpoints or new_endpoints(d)
        body = services.canary_service(
            facts.service,
            d.uid,
            d.keys,
            name=facts.canary_service_name,
            changes=selector_changes(new.selects, target(d)),
            owner=facts.owner,
        )
        d = d.write((Create(SERVICES, body, "the new version's groups"),))
    return d


def _led(d: Draft, copy: Object, leads: Mapping[str, str], why: str) -> tuple[Patch, ...]:
    """The write that has the new version's Service select pods with these labels, and with no others by which versions
    are told apart; () if it does.
    """
    now, apart = services.SELECTING.selector(copy), {*pinning_keys(d.keys)}
    others = (now.keys() & apart) - leads.keys()
    if not others and leads.items() <= now.items():
        return ()
    body = {"spec": {"selector": {**dict.fromkeys(others), **leads}}}
    meta = copy["metadata"]
    return (Patch(SERVICES, meta["namespace"], meta["name"], body, why),)


def turn_copy(d: Draft) -> Draft:
    """After a change of roles: has what led to the new version lead to the groups that gave up the requests, which may
    get them back.
    """
    facts = d.o.routing
    if facts is None:
        return d
    copy, new = facts.canary_service, new_endpoints(d)
    if copy is not None and facts.is_ours(copy):
        d = d.write(_led(d, copy, new.selects, f"the groups of {new.name} stay for a while"))
    return point(d, pinned_selectors.of_new(facts), new)[0]


def answer(d: Draft, facts: RoutingFacts) -> tuple[Draft, Routed]:
    """Points the stable Service and pool at stable, or at the canary while no stable group can answer."""
    answers, until = answers_for_stable(d, facts)
    d, endpoints = d.wake(until), new_endpoints(d) if answers else stable_endpoints(d)
    return (
        point(d, pinned_selectors.of_stable(facts), endpoints)
        if endpoints.exists or d.o.stable is not None
        else (d, DONE)
    )


def keep_pinned(d: Draft) -> Draft:
    """During a pause prepares nothing new, but restores pins that others remove."""
    if _pinned_before(d):
        d, _ = prepare(d)
    return d


def target(d: Draft) -> str:
    """Which pods of a group receive requests."""
    asked = settings(d)
    return asked.target if asked else "AsSelected"


def point(d: Draft, selectors: Iterable[Selector], endpoints: VersionEndpoints) -> tuple[Draft, Routed]:
    """Pins the selectors to one version's groups; done when all are pinned and no router rejects one of them."""
    found = DONE
    for each in selectors:
        live = each.live
        if any((write.resource, write.name) == (each.selecting.resource, each.name) for write in d.writes):
            # Another rule of this decision has pinned it already.
            found = Routed(False, f"{each.ref} is pinned to groups of {endpoints.name}") if found.done else found
            continue
        refusal = barred(d, each)
        if refusal:
            found = Routed(False, refusal, refused=True)
            continue
        if live is not None and _pinned_before(d) and (each.drifted or not each.given):
            d, waits = answer_conflict(d, live, each.ref, each.ignore)
            if waits is not None:
                found = waits
                continue
        writes = each.pin(endpoints.selects, endpoints.name, target(d), checked=True)
        d = d.write(writes)
        said = f"{each.ref} is pinned to groups of {endpoints.name}" if writes else each.unaccepted
        if said and found.done:
            found = Routed(False, said)
    return d, found


def _pinned_before(d: Draft) -> bool:
    """True if an earlier decision of this release pinned the named objects: the BatchRelease is created after that."""
    before = d.o.rollout.status
    if before is None or before.traffic is None or d.o.batch_release is None:
        return False
    # One decision may end a release, with everything restored, and start the next.
    return before.finalising is None or d.status.finalising is not None


def restore(d: Draft) -> tuple[Draft, Routed]:
    """Restores everything that carries our annotation and removes what the release created, as soon as no request could
    reach a version that is being removed; done when nothing is left. A user's object that is gone counts as restored.
    """
    annotated = d.o.marked
    if annotated.waits:
        return d, Routed(False, annotated.waits)
    if annotated.any_own or d.status.traffic is not None:
        d, waits = await_unreached(d)
        if not waits.done:
            return d, waits
    writes = [*annotated.give_back("the release is over")]
    d = d.write(writes)
    return d, Routed(False, "giving Services and routes back") if writes else DONE


def await_unreached(d: Draft) -> tuple[Draft, Routed]:
    """Waits for ``unreached``: records since when the last pod is gone, and wakes when time alone may change the
    result.
    """
    answer, record = unreached(d), d.status.traffic
    if answer.timed and record is not None and record.last_pod_gone_at is None:
        d = d.set(traffic=record.model_copy(update={"last_pod_gone_at": d.now}))
    return d.wake(answer.until), answer


def unreached(d: Draft) -> Routed:
    """Done if no request could reach a version that is being removed after a restore now; ``timed`` while only endpoint
    pickers have not noticed.
    """
    facts = d.o.routing
    if facts is None:
        return DONE
    if not facts.synced:
        return Routed(False, facts.waits)
    reached = draining.reached(d, facts)
    return _pickers_know(d, facts) if reached.done else reached


def _pickers_know(d: Draft, facts: RoutingFacts) -> Routed:
    """Done if endpoint pickers have had time to notice that the last pod that could get requests is gone."""
    record = d.status.traffic
    if record is None or not facts.names.stable_pool or not draining.leaves(d):
        return DONE
    asked, gone = settings(d), record.last_pod_gone_at or d.now
    until = gone + timedelta(seconds=asked.grace_period_seconds if asked else DEFAULT_GRACE_SECONDS)
    if until <= d.now:
        return DONE
    message = f"endpoint pickers get until {until:%H:%M:%S} UTC to hear that the last pod is gone"
    return Routed(False, message, timed=True, until=until)


def answer_conflict(d: Draft, live: Object | None, ref: ObjectRef, advice: str) -> tuple[Draft, Routed | None]:
    """Records that the object was overwritten or deleted (``live`` is None then); None to restore it now, else why that
    waits.
    """
    record = d.status.traffic or TrafficRecord()
    d, conflicts, wait = judged(d, record.conflicts, live, ref, _MANAGED, advice, EventReason.ROUTE_RESET)
    if wait is not None:
        return d, Routed(False, wait.message, contested=True, field=FieldRef("spec", ref.kind, ref.name))
    return d.set(traffic=record.model_copy(update={"conflicts": conflicts})), None
