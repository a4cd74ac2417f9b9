"""Lists the objects that a release will write, by the controller's own rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rollout_lws.api import batch_releases, rollouts
from rollout_lws.forecast.model import Forecast
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    HORIZONTAL_POD_AUTOSCALERS,
    INFERENCE_POOLS,
    PODS,
    SERVICES,
    Resource,
)
from rollout_lws.rollout.autoscaling import hpa_bounds
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.routing.weights import settings
from rollout_lws.targets.target import takers
from rollout_lws.traffic.copy_names import canary_service_name, written_name
from rollout_lws.traffic.custom.kinds import by_name
from rollout_lws.traffic.registry import DESTINATION_RULE, resources_of, spec_of
from rollout_lws.traffic.routers.of_rollout import named
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.revisions import history_name


@dataclass(frozen=True, slots=True)
class Planned:
    """``verbs`` are create, patch and delete, in order of time; ``name`` is "" for pods, which are many."""

    resource: Resource
    name: str
    verbs: tuple[str, ...]
    why: str


_PATCH, _MADE = ("patch",), ("create", "patch", "delete")


def planned(d: Draft, found: Forecast) -> tuple[Planned, ...]:
    """Writes of a whole successful release from its beginning, without Events."""
    if d.paired:
        return (*_own(d), *_sides(d), *_weights(d))
    capacity = _swap(d) if found.strategy.swaps else _capacity(d, found)
    return (*_own(d), *capacity, *_traffic(d, found), *_autoscalers(d))


def _own(d: Draft) -> Iterator[Planned]:
    name, group = d.o.rollout.metadata.name, d.keys.group
    seeded = ", and the number of groups" if d.scales_sides and d.o.rollout.spec.replicas is None else ""
    yield Planned(rollouts(group), name, _PATCH, f"its status, and a finalizer until all is restored{seeded}")
    yield Planned(batch_releases(group), name, _MADE, "the record of the release; gone at its end")
    stable = d.status.stable.template_hash if d.status.stable else ""
    new = "<hash>" if d.version.template_hash == stable and not d.pending else d.version.template_hash
    versions = {
        stable: "the version that runs, to be able to go back to it",
        new: "the new version, to be able to go back to it later",
    }
    stored = {each.metadata.annotations.get(d.keys.template_hash) for each in d.o.history}
    for template_hash, why in versions.items():
        if template_hash not in stored:
            yield Planned(CONTROLLER_REVISIONS, history_name(name, template_hash), ("create",), why)


def _capacity(d: Draft, found: Forecast) -> Iterator[Planned]:
    lws = d.stable.workload
    opened = f"{found.windows} window{'s' if found.windows != 1 else ''}"
    why = f"its rolling update: held, but for {opened} in which groups are renewed"
    yield Planned(lws.resource, lws.metadata.name, _PATCH, why)
    if not found.strategy.one_workload:
        why = f"up to {found.extra} group{'s' if found.extra != 1 else ''} of the new version; gone at the end"
        yield Planned(lws.resource, canary_name(lws), _MADE, why)
    # Steps of a surge update no groups in place; a blue-green promotion also starts its last green groups.
    renewing = [row for row in found.rows if row.step is None or not found.strategy.surges]
    deleted = any(row.windows and min(row.loads, d.replicas) > row.windows for row in renewing)
    why = f"labels on {takers(lws)} of the new version"
    if deleted:
        yield Planned(PODS, "", ("patch", "delete"), f"{why}; old ones deleted where several are renewed at once")
    else:
        yield Planned(PODS, "", _PATCH, why)


def _swap(d: Draft) -> Iterator[Planned]:
    """What a release writes of two workloads that serve in turn, of which it has made one."""
    resource, count = d.stable.workload.resource, d.replicas
    fewer = "fewer as the other one gets some, " if d.capacity.shifts else ""
    if d.swapped:
        yield Planned(
            resource, d.other_name, _PATCH, f"its replicas, up to {count}; its hold, and the label of its role"
        )
        own = f"its replicas, {fewer}and the labels of its role" if fewer else "the labels of its role"
        yield Planned(resource, d.name, ("patch", "delete"), f"{own}; gone at the end")
    else:
        why = f"its replicas, {fewer}0 at the end; its hold, and the label of its role"
        yield Planned(resource, d.name, _PATCH, why)
        made = f"up to {count} group{'s' if count != 1 else ''} of the new version, and the labels of its role; stays"
        yield Planned(resource, d.other_name, ("create", "patch"), made)
    lost = "; those that are about to go lose one of their Service or pool, and say which" if fewer else ""
    yield Planned(PODS, "", _PATCH, f"labels on {takers(d.stable.workload)} of the new version{lost}")


def _traffic(d: Draft, found: Forecast) -> Iterator[Planned]:
    names = named(settings(d))
    if names is None:
        return
    yield Planned(SERVICES, names.service, _PATCH, "its selector is pinned to one version; restored")
    copy = canary_service_name(names.service)
    yield Planned(SERVICES, copy, ("create", "delete"), "the same for the new version; gone at the end")
    # With one LWS, the promotion begins after the traffic split has ended.
    rows = found.rows[:-1] if found.strategy.one_workload else found.rows
    splits = {(row.share, d.strategy.steps[row.step - 1].matches if row.step else ()) for row in rows}
    splits.discard((0, ()))
    if splits:
        weights = "weights of the two versions"
        for resource, name in resources_of(names):
            spec = spec_of(resource.kind)
            if spec is not None:
                # What a copied DestinationRule says is the same for all shares.
                same = len(splits) == 1 or spec == DESTINATION_RULE
                verbs = _PATCH if not spec.copies else ("create", "delete") if same else _MADE
                end = "gone at the end" if spec.copies else "restored"
                what = "the same for the new version's Service" if spec == DESTINATION_RULE else weights
                yield Planned(resource, written_name(spec, name), verbs, f"{what}; {end}")
        for ref in names.custom:
            yield Planned(by_name(*ref.custom_kind), ref.name, _PATCH, "what a script of the controller says; restored")
    for pool in filter(None, (names.stable_pool, names.canary_pool)):
        yield Planned(INFERENCE_POOLS, pool, _PATCH, "its selector is pinned to one version; restored")


def _sides(d: Draft) -> Iterator[Planned]:
    """What a pair's release writes of its workloads, if it scales them."""
    if not d.scales_sides:
        return
    down = "fewer as the other side gets some, 0 at the end" if d.capacity.shifts else "0 at the end"
    pairs = [(d.o.stable, d.o.canary, d.replicas)]
    pairs += [(each.stable, each.canary, d.companion_replicas(each)) for each in d.o.companions]
    for one, other, count in pairs:
        for each, what in ((one, down), (other, f"up to {count}")):
            if each is not None:
                why = f"its replicas, {what}; its hold, and the label of its role"
                yield Planned(each.workload.resource, each.name, _PATCH, why)
    # The last group stays until the whole side has lost its requests.
    if d.capacity.shifts and d.replicas > 1:
        why = "those that are about to go lose a label of their Service or pool, and say which"
        yield Planned(PODS, "", _PATCH, why)


def _weights(d: Draft) -> Iterator[Planned]:
    """What a pair's release writes of the user's objects."""
    names = named(settings(d))
    for resource, name in resources_of(names) if names is not None else ():
        if spec_of(resource.kind) is not None:
            why = "weights of the two sides, which stay, and an annotation that names the active one"
            yield Planned(resource, name, _PATCH, why)


def _autoscalers(d: Draft) -> Iterator[Planned]:
    for live in d.o.autoscalers.objects:
        held = hpa_bounds.held(live, d.uid, d.keys, d.replicas, pinned=d.capacity.pins_replicas)
        if hpa_bounds.scaled_workload(live) == d.stable.name and held != live:
            low, high = hpa_bounds.bounds(held)
            why = f"held at minReplicas {low}, maxReplicas {high}; restored"
            yield Planned(HORIZONTAL_POD_AUTOSCALERS, live["metadata"]["name"], _PATCH, why)
