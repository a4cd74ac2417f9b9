"""Warnings about a release that is possible all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.batches import makes_no_groups
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.cli.durations import short
from rollout_lws.cli.plan import companions, gates, pair, swap
from rollout_lws.cli.plan.model import Plan
from rollout_lws.forecast.cautions import claims_that_stay, kueue_ends_first, leaders_first
from rollout_lws.forecast.forecast import forecast, much_extra
from rollout_lws.forecast.model import Forecast
from rollout_lws.objects.resources import POD_DISRUPTION_BUDGETS
from rollout_lws.rollout.autoscaling import hpa_bounds
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.health import deadline_seconds
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.routing.unmanaged_backends import Reach, covers, unlisted
from rollout_lws.rollout.routing.weights import settings, share_of_step
from rollout_lws.targets.target import takers
from rollout_lws.targets.version import Version
from rollout_lws.workload.hold import resolved_unavailable, users_strategy
from rollout_lws.workload.queueing import TIMEOUT_SECONDS, queue_of

#: Peak load of a group, relative to normal, above which it is worth a warning.
_MUCH = 1.005


def cautions(d: Draft, plan: Plan, found_by: Reach, old: Version, before: Observation) -> Iterator[str]:
    """Warnings, a sentence each: the effect, the object that it concerns, and the remedy. ``found_by`` tells which
    versions the Services select, ``old`` is the version that runs, and ``before`` what stands.
    """
    yield from _state(d, plan)
    found = plan.forecast
    if d.paired:
        yield from _of_pair(d, plan, old, before)
        return
    if found is not None:
        yield from _room(d, plan, found)
        yield from _steps(d, found.strategy)
        yield from _load(found) if not found.strategy.shifts else ()
        yield from _end(d, plan, found, old)
        yield from _without_pre_stop(d, found, old)
        yield from _deadline(d, plan)
        yield from _ordered(d, found)
        yield from gates.cautions(plan.gates, found.given.rate, d.o.rollout.spec.strategy.source)
        routed = settings(d) is not None or found_by.both or found_by.old
        yield from _told(leaders_first(d.stable.workload, d.version) if routed else None)
    yield from _kueue(d)
    yield from _others(d)
    if settings(d) is None:
        yield from _unrouted(found_by, takers(d.stable.workload))
    yield from _autoscalers(d)


def _end(d: Draft, plan: Plan, found: Forecast, old: Version) -> Iterator[str]:
    """What the promotion does, and what is left of groups that go."""
    workload, there = d.stable.workload, plan.sides
    if there is None:
        yield from _promotion(d, found)
        yield from _told(claims_that_stay(workload, d.version, found.strategy, found.extra))
        return
    yield from swap.cautions(d, found, there)
    yield from pair.unasked(d, there) if there.is_back and not (plan.refusals or found.given.kept) else ()
    yield from _told(claims_that_stay(workload, old, found.strategy, d.replicas, deleted=there.is_back))


def _of_pair(d: Draft, plan: Plan, old: Version, before: Observation) -> Iterator[str]:
    """Those of a release that moves requests from one workload to the other, by whichever of both that concerns."""
    found, workload = plan.forecast, d.edited.workload
    if plan.sides is not None and found is not None:
        if d.scales_sides:
            yield from _room(d, plan, found)
            yield from _steps(d, found.strategy)
            yield from _load(found) if not found.strategy.shifts else ()
            yield from _told(claims_that_stay(d.stable.workload, old, found.strategy, d.replicas))
            yield from pair.unasked(d, plan.sides) if not plan.refusals else ()
        yield from pair.cautions(d, found, plan.sides)
        yield from companions.cautions(d, found, plan, before)
        yield from _deadline(d, plan)
        yield from _ordered(d, found) if d.scales_sides else ()
        yield from gates.cautions(plan.gates, found.given.rate, d.o.rollout.spec.strategy.source)
    yield from _told(leaders_first(workload, d.version), kueue_ends_first(workload, deadline_seconds(d)))
    yield from pair.others(d)


def _told(*cautions: str | None) -> Iterator[str]:
    return (each for each in cautions if each is not None)


def _state(d: Draft, plan: Plan) -> Iterator[str]:
    name = f"rollout/{plan.rollout}"
    if d.o.rollout.spec.disabled and d.swapped:
        yield (
            f"{name} is disabled, and {d.name} serves on: {d.edited.called} gets the requests back by"
            f" {d.command('home')}, and releases go on when the Rollout is not disabled"
        )
    elif d.o.rollout.spec.disabled and d.paired and d.scales_sides:
        yield (
            f"{name} is disabled: requests and groups stay where they are, and each side rolls another template by"
            " itself, until it is not"
        )
    elif d.o.rollout.spec.disabled and d.paired:
        yield f"{name} is disabled: requests stay where they are, whatever is applied, until it is not"
    elif d.o.rollout.spec.disabled:
        yield f"{name} is disabled: {d.kind} rolls a new version by itself, without these steps, until it is not"
    if d.paused:
        yield f"{name} is paused: a new version waits at its first step until it is not"
    if plan.at == "going back":
        yield "a release is on its way back: a new one begins with step 1 when that is done"
    elif plan.at and d.version.template_hash != d.status.observed_template_hash:
        yield (
            f"a release of another version is on ({plan.at}): it goes back first, and this one begins with step 1 when"
            " that is done"
        )


def _room(d: Draft, plan: Plan, found: Forecast) -> Iterator[str]:
    warned = much_extra(d.strategy, d.replicas) if not found.strategy.full_set else ""
    if warned:
        yield warned
    more = {name: count - plan.now.get(name, 0) for name, count in plan.peak.items()}
    asked = ", ".join(f"{count} more {name}" for name, count in more.items() if count > 0)
    if not asked and found.extra:
        asked = f"{found.extra} more group{'s' if found.extra > 1 else ''}"
    if not asked:
        return
    queue = queue_of(d.edited.workload)
    waits = "groups without room wait, and are reported as waiting"
    if queue:
        yield f"Kueue admits groups by queue {queue}: whether it has quota for {asked} is not known here; {waits}"
    else:
        yield f"whether the cluster has room for {asked} is known only when groups are scheduled; {waits}"


def _steps(d: Draft, capacity: CapacityStrategy) -> Iterator[str]:
    style, replicas, sharing = d.strategy, d.replicas, strategy_of_plan(d.strategy).sharing
    wanted = [d.wanted(index) for index in range(1, len(style.steps) + 1)]
    for index, step in enumerate(style.steps, 1):
        idle = makes_no_groups(style, index) or index == 1 or wanted[index - 1] != wanted[index - 2]
        if not idle and step.replicas != style.steps[index - 2].replicas and not capacity.takes_places:
            yield (
                f"step {index} ({step.replicas}) makes no further group: of {replicas}, it is as many as step"
                f" {index - 1} ({style.steps[index - 2].replicas})"
            )
        leaves_one = capacity.takes_places and replicas > 1
        if step.replicas == "100%" and leaves_one and not makes_no_groups(style, index):
            does = "replaces" if capacity.shifts else "renews"
            yield f"step {index} {does} {replicas - 1} of {replicas} groups: the last one belongs to the promotion"
        if step.traffic == "auto" and (leaves_one or not capacity.shifts):
            exact = Fraction(100 * wanted[index - 1], sharing(wanted[index - 1], d.own_size))
            weight = share_of_step(d, index).weight
            if abs(exact - weight) >= Fraction(1, 4):
                yield f"step {index}: auto is {weight}%, the nearest that a weight can say to {float(exact):.1f}%"


def _load(found: Forecast) -> Iterator[str]:
    if not found.ready:
        yield (
            "in the promotion there are moments in which no group that gets requests is ready, and they fail: give the"
            " Rollout trafficRoutings, or let the Service select groups of both versions"
        )
    row = max(found.rows, key=lambda each: each.peak_load)
    if row.peak_load > _MUCH:
        where = "the promotion" if row.step is None else f"step {row.step}"
        yield (
            f"in {where} a group carries up to {row.peak_load:.2f} times what it has at rest: release when there are"
            " few requests, or make the steps smaller"
        )


def _promotion(d: Draft, found: Forecast) -> Iterator[str]:
    asked, last = settings(d), found.rows[-1]
    unavailable = resolved_unavailable(users_strategy(d.stable.workload, d.keys), d.replicas)
    if unavailable < 1 and not found.strategy.surges:
        yield "maxUnavailable is 0 groups, and the hold has no surge: groups are renewed one at a time all the same"
    if found.strategy.one_workload:
        return
    many = last.new >= d.replicas
    if many and asked is not None and not found.given.unlisted:
        return
    allowed = 1 if d.stable.workload.ordered else max(1, unavailable)
    at_once = found.strategy.batch_size(allowed, last.new, d.replicas)
    told = (
        f"the promotion renews {at_once} of {d.replicas} groups at a time, in {last.windows} windows, while they still"
        " get requests: what runs on one ends as its preStop and terminationGracePeriodSeconds allow"
    )
    if many and asked is not None:
        told += "; a Service that trafficRoutings does not name leads to them, else they were renewed all at once"
    elif asked is not None:
        told += "; a last step of 100% with traffic 100% empties them first and renews them all at once"
    yield told


def _without_pre_stop(d: Draft, found: Forecast, old: Version) -> Iterator[str]:
    """What clients lose by groups that are deleted if the pods that take requests have no preStop."""
    lack = not old.leaders_have_pre_stop or (found.strategy.surges and not d.version.leaders_have_pre_stop)
    if not lack:
        return
    asked, pods = settings(d), takers(d.stable.workload)
    if found.disrupted:
        known = f" ({asked.grace_period_seconds} s, as gracePeriodSeconds says)" if asked else ""
        each = f"{found.disrupted} groups that are" if found.disrupted > 1 else "the group that is"
        yield (
            f"{pods} have no preStop, and {each} deleted while they get requests lose what runs there, up to"
            f" {found.disrupted_load:.2f} times the requests that run at one moment, and what is sent there until"
            f" routers know{known}: give the container a lifecycle.preStop that sleeps for longer, unless the server"
            " ends only when its requests have ended"
        )
    if asked:
        yield (
            f"{pods} have no preStop, and a connection that a client keeps to Service {asked.service}, past the route,"
            f" stays at its group and is cut when that is deleted, up to {_times(found.cuts)} in this release"
        )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _deadline(d: Draft, plan: Plan) -> Iterator[str]:
    limit = deadline_seconds(d)
    if plan.loads.typical > limit:
        yield (
            f"a group loads for {short(plan.loads.typical)}, longer than progressDeadlineSeconds ({limit:.0f} s): each"
            " step would be reported as failed; raise it"
        )


def _ordered(d: Draft, found: Forecast) -> Iterator[str]:
    """That groups which a release makes together load one after the other."""
    if found.given.order is None:
        return
    parallel = forecast(d.strategy, replace(found.given, order=None))
    if parallel.rounds < found.rounds:
        yield (
            f"podManagementPolicy of {d.edited.called} is OrderedReady, so that each group loads when the one before is"
            f" ready: {found.rounds} loads one after the other, with Parallel {parallel.rounds}. It cannot be changed"
            f" later: make the {d.kind} anew with it between two releases"
        )


def _kueue(d: Draft) -> Iterator[str]:
    """Effects of Kueue's own timeout on a release, and on groups that are recreated while a version waits."""
    if not queue_of(d.stable.workload):
        return
    minutes = TIMEOUT_SECONDS // 60
    yield (
        f"keep the release shorter than Kueue's waitForPodsReady ({minutes} min by default), or have that switched off"
        " (feature gate DisableWaitForPodsReady, or recoveryTimeout 0s): while a version waits, Kueue lets leaders of"
        " the old one that are recreated go outside its quota, and evicts them after that time though they are ready"
    )
    yield from _told(kueue_ends_first(d.stable.workload, deadline_seconds(d)))


def _others(d: Draft) -> Iterator[str]:
    """Other objects that route requests to groups, or limit disruptions of them."""
    leaders = [leader.metadata.labels for leader in d.stable.leaders]
    facts = d.o.routing
    if facts is not None:
        for resource, name in unlisted(facts, leaders):
            yield (
                f"{resource.kind} {name} leads to groups of {d.stable.name} too: its clients get no share of a step"
                + (", and lose what runs on a group each time that one goes" if d.capacity.shifts else "")
            )
        for name, live in facts.objects.get(POD_DISRUPTION_BUDGETS, {}).items():
            if any(covers(live, each) for each in leaders):
                yield f"PodDisruptionBudget {name} covers groups: it limits evictions, and a release makes none"


def _unrouted(found: Reach, pods: str) -> Iterator[str]:
    """Without trafficRoutings, the Services' selectors determine which version gets requests."""
    for name in found.both:
        yield f"there are no trafficRoutings: Service {name} shares requests evenly among {pods} of both versions"
    for name in found.old:
        yield (
            f"there are no trafficRoutings, and Service {name} selects no group of the new version: it gets no request"
            " by it before the promotion"
        )


def _autoscalers(d: Draft) -> Iterator[str]:
    for live in d.o.autoscalers.objects:
        if hpa_bounds.scaled_workload(live) == d.stable.name and d.replicas:
            name = live["metadata"]["name"]
            how = "at this number of groups" if d.capacity.pins_replicas else "so that it takes no group away"
            yield f"HorizontalPodAutoscaler {name} is held {how} while the release is on"
