"""Computes the plan of a release: runs the controller's own functions on a release that has not begun. Pure:
observations in, a plan out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from rollout_lws.api import Phase, RolloutStatus, StableRecord
from rollout_lws.api.validation import problems
from rollout_lws.capacity.batches import is_last_full
from rollout_lws.cli.changes import changed
from rollout_lws.cli.plan import companions, pair, swap
from rollout_lws.cli.plan.cautions import cautions
from rollout_lws.cli.plan.model import Amounts, Beside, Part, Plan, most, summed, times
from rollout_lws.cli.plan.scripted import written
from rollout_lws.cli.plan.startups import load_times
from rollout_lws.cli.plan.written import planned
from rollout_lws.forecast.forecast import forecast
from rollout_lws.forecast.gates import demands
from rollout_lws.forecast.model import Forecast, Given, Row, order_of
from rollout_lws.forecast.two_workloads import strategy_of
from rollout_lws.rollout.decision import Verdict
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.history import stable_version
from rollout_lws.rollout.lifecycle import adoption
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.preflight import all_refusals
from rollout_lws.rollout.roles import kept_groups
from rollout_lws.rollout.routing.traffic_shift import reached_by_others
from rollout_lws.rollout.routing.unmanaged_backends import Reach, reach
from rollout_lws.targets.version import Version
from rollout_lws.traffic.split import Object
from rollout_lws.workload.accelerators import held
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.hold import resolved_unavailable, users_strategy
from rollout_lws.workload.revisions import current_revision


def _as_asked(o: Observation) -> Observation:
    """``o`` with as many groups as the Rollout asks for, of a pair on its active side."""
    spec, status, facts = o.rollout.spec, o.rollout.status, o.stable
    releasing = status is not None and status.phase == Phase.PROGRESSING
    waits = status is not None and status.scaling is not None and status.scaling.waiting is not None
    others = pair.is_pair(o) and not spec.scales_sides
    if facts is None or spec.replicas is None or releasing or waits or spec.disabled or others:
        return o
    return replace(o, stable=replace(facts, workload=facts.workload.with_replicas(spec.replicas)))


def at_rest(o: Observation, running: Version) -> Observation:
    """``o`` as if the Rollout already managed the workload, with ``running`` as its stable version and the groups that
    the Rollout asks for.
    """
    o = _as_asked(o)
    status, facts = o.rollout.status, o.stable
    if facts is None or (status and status.stable and status.stable.workload_uid == facts.workload.metadata.uid):
        return o
    stable = StableRecord(
        template_hash=running.template_hash,
        revision=current_revision(facts),
        workload_uid=facts.workload.metadata.uid,
    )
    adopted = RolloutStatus(phase=Phase.HEALTHY, stable=stable)
    return replace(o, rollout=o.rollout.model_copy(update={"status": adopted}))


def make(
    after: Observation,
    before: Observation | None = None,
    load_seconds: float | None = None,
    told: Iterable[str] = (),
    services: Mapping[str, Object] = MappingProxyType({}),
    rate: float | None = None,
) -> Plan:
    """The release of the version in ``after``, when ``before`` shows what runs (None: the same).

    ``load_seconds`` is a group's startup time, None: as measured now. ``told`` are the caller's warnings, ``services``
    all Services of the namespace by name, ``rate`` requests a second of both versions, None where that is not known.
    """
    before = before or after
    if after.stable is None:
        raise LookupError("the workload does not exist")
    # The roles of a pair hang on the route, which may change with what is applied.
    seen = pair.named(before, after.stable.name) or after.stable
    paired, running = pair.is_pair(after), seen.workload.version
    d = Draft.of(pair.at_rest(_as_asked(after), before) if paired else at_rest(after, running))
    old = stable_version(d) or seen.workload.version
    style = d.o.rollout.spec.strategy.style
    meta = d.o.rollout.metadata
    loads = load_times(before, load_seconds)
    same = old.template_hash == d.version.template_hash
    goes_home = d.swapped and d.pending and same
    is_new = pair.releases(d) if paired else goes_home or not same
    unnamed = f"none: the version that runs, on {d.edited.name}" if goes_home else "the template"
    beside = companions.beside(d, after, before, load_seconds, releases=is_new)
    found_by = reach(d, services) if style is not None and not paired else Reach()
    given = Given(
        replicas=d.replicas,
        unavailable=resolved_unavailable(users_strategy(d.stable.workload, d.keys), d.replicas),
        load_seconds=loads.typical,
        min_ready_seconds=d.minimum,
        unlisted=not paired and reached_by_others(d),
        reached=found_by.new,
        named=d.labels.workload is not None,
        rate=rate or 0.0,
        # In a release that shifts the active side has given up groups.
        active=d.own_size if paired else None,
        scales_sides=d.scales_sides,
        companions=companions.given(beside, loads.typical),
        swapped=d.swapped,
        kept=_kept(before, d),
        order=order_of(d.edited.workload) or order_of(d.stable.workload),
    )
    taken = _adopted(before)
    stalled = (taken.message,) if taken is not None and taken.condition == "Stalled" else ()
    refusals = tuple(dict.fromkeys((*stalled, *_refusals(d))))
    found: Forecast | None = None
    cannot = ""
    if style is not None and not problems(d.o.rollout.spec):
        try:
            found = forecast(style, given)
        except ValueError as error:
            cannot = str(error)
    swaps = not paired and (found.strategy if found is not None else d.capacity).swaps
    plan = Plan(
        rollout=meta.name,
        namespace=meta.namespace,
        workload=d.stable.name,
        kind=d.kind,
        replicas=d.replicas,
        size=d.version.size,
        strategy=strategy_of(style, given) if style is not None else None,
        change=(_change(old, d.version, beside) or unnamed) if is_new else "",
        at=_at(d),
        given=given,
        engine=d.o.rollout.spec.strategy.source.engine,
        loads=loads,
        now=_now(before, old, d.version),
        requested=_requested(before, old, d.version),
        afterwards=summed(
            _of_sides(d, old, found)
            if paired and not d.scales_sides
            else times(d.version.accelerators_by_name, d.replicas),
            *companions.left(d, beside),
        ),
        old=old.accelerators_by_name,
        new=d.version.accelerators_by_name,
        parts=_parts(d, found, old, beside) if found else (),
        forecast=found,
        writes=planned(d, found) if found else (),
        scripted=written(d) if found and not refusals else (),
        refusals=refusals,
        sides=pair.sides(d, after, beside) if paired else swap.sides(d) if swaps else None,
        begins=companions.beginning(d, releases=is_new) if not refusals else None,
    )
    told = (*told, *pair.edited_while_active(d, before, after))
    zero = (cannot,) if cannot and not refusals else ()
    waits = (taken.message,) if taken is not None and taken.condition == "Reconciling" else ()
    return replace(plan, cautions=(*told, *zero, *waits, *cautions(d, plan, found_by, old, before)))


def _kept(before: Observation, d: Draft) -> int:
    """Groups of the version that is to be released which have stayed since it served."""
    now = Draft.of(before)
    if before.stable is None or before.canary is None or not kept_groups.are_kept(now):
        return 0
    stays = kept_groups.until(now) is not None and kept_groups.are_of(now, d.version.template_hash)
    return before.canary.workload.replicas if stays else 0


def _change(old: Version, new: Version, beside: tuple[Beside, ...]) -> str:
    told = (changed(old.meaning, new.meaning), *(f"{each.inactive}: {each.change}" for each in beside if each.change))
    return "; ".join(filter(None, told))


def _adopted(before: Observation) -> Verdict | None:
    """The verdict of adopting the workload as it is; None when it can be, or is already, adopted."""
    if before.stable is None or before.stable.leader_set is None:
        return None
    d = Draft.of(before)
    if d.paired:
        return pair.hindrance(d)
    return None if d.adopted else adoption.adopt(d).verdict


def _refusals(d: Draft) -> Iterable[str]:
    found = problems(d.o.rollout.spec)
    if found:
        return (f"{each.path}: {each.message}" for each in found)
    refused = [*companions.refusals(d), *(each.message for each in all_refusals(d))]
    aborted = d.status.aborted
    if aborted is not None and aborted.template_hash == d.version.template_hash:
        refused.append(
            f"this version was aborted ({aborted.message or aborted.reason}): apply another one, or start it again with"
            f" {d.command('retry')}"
        )
    return refused


def _at(d: Draft) -> str:
    if d.status.phase != Phase.PROGRESSING:
        return ""
    if d.status.finalising is None:
        return f"step {d.status.current_step_index or d.sub.current_step_index}"
    return "promotion" if d.status.finalising.reason == "Success" else "going back"


def _now(o: Observation, old: Version, new: Version) -> Amounts:
    """Accelerators that existing groups hold."""
    return summed(*(held(facts, group, version) for facts, group, version in _standing(o, old, new)))


def _requested(o: Observation, old: Version, new: Version) -> Amounts:
    """Accelerators that existing groups request, whether or not they are scheduled."""
    return summed(*(version.accelerators_by_name for _, _, version in _standing(o, old, new)))


def _standing(o: Observation, old: Version, new: Version) -> Iterator[tuple[Facts, Group, Version]]:
    revision = o.rollout.status.stable.revision if o.rollout.status and o.rollout.status.stable else None
    if o.stable is not None:
        for group in groups(o.stable):
            is_new = revision is not None and group.revision != revision
            yield o.stable, group, new if is_new and not pair.is_pair(o) else old
    if o.canary is not None:
        # Before it is applied, a pair's inactive side runs another version than the new one.
        version = o.canary.workload.version if pair.is_pair(o) else new
        yield from ((o.canary, group, version) for group in groups(o.canary))
    for facts in (facts for each in o.companions for facts in each.both):
        yield from ((facts, group, facts.workload.version) for group in groups(facts))


def _parts(d: Draft, found: Forecast, running: Version, beside: tuple[Beside, ...]) -> tuple[Part, ...]:
    """The parts with accelerators of both versions, since a new version may use other kinds of them."""
    replicas, in_place = found.given.replicas, found.strategy.takes_places
    # The last group of a pair that shifts stays until the roles change.
    fewest = 1 if found.strategy.shifts else 0
    old, new = running.accelerators_by_name, d.version.accelerators_by_name
    parts, renewed = [], 0
    for row in found.rows:
        last = row.step is None
        end = replicas if last else min(row.new, replicas - fewest) if in_place else 0
        if d.paired and not d.scales_sides:
            held = [_of_sides(d, running, found, row)]
        elif row.standing:
            held = [summed(times(old, groups), times(new, others)) for groups, others in row.standing]
        elif found.strategy.swaps:
            # Both stay whole.
            held = [summed(times(old, replicas), times(new, row.new))]
        else:
            # The composition changes monotonically, so its ends are the extremes.
            counts = (renewed, end)
            held = [summed(times(old, replicas - count), times(new, count + row.extra)) for count in counts]
        with_companions = summed(most(*held), *companions.taken(d, beside, row))
        asks = row.step is not None and not is_last_full(d.strategy, row.step)
        pause = d.strategy.steps[row.step - 1].pause.duration if row.step is not None and asks else None
        gates = demands(d.strategy, row.step, row.share) if row.step is not None else ()
        staying = d.stable.workload.replicas if d.paired and not d.scales_sides else replicas - end
        parts.append(Part(row, staying, with_companions, pause or None, gates))
        renewed = end
    return tuple(parts)


def _of_sides(d: Draft, running: Version, found: Forecast | None, row: Row | None = None) -> Amounts:
    """Accelerators of both workloads of a pair that their owner scales, which stand before, in and after a release; the
    inactive one has been scaled up by ``row`` (None: the last one) where a step waits for more groups than it has.
    """
    rows = found.rows if found is not None else ()
    until = rows[: rows.index(row) + 1] if row is not None else rows
    inactive = max(d.replicas, *(each.new for each in until), 0) if d.o.canary is not None else 0
    active = times(running.accelerators_by_name, d.stable.workload.replicas)
    return summed(active, times(d.version.accelerators_by_name, inactive))
