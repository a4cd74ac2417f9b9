"""Observes routing: the objects that a Rollout routes requests with, and those with annotations of releases."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import msgspec

from rollout_lws.api import PlannedGate, Rollout, RolloutStatus, StyleStrategy, rollouts
from rollout_lws.api.resources import Keys
from rollout_lws.capacity.batch_release import owner_reference
from rollout_lws.objects.resources import INFERENCE_POOLS, SERVICES
from rollout_lws.objects.workloads import Pod
from rollout_lws.observe.cache_types import StoredObject
from rollout_lws.observe.world import World
from rollout_lws.rollout.routing.selector_pinning import looked_for
from rollout_lws.targets.table import TARGETS
from rollout_lws.targets.target import Target
from rollout_lws.traffic import services
from rollout_lws.traffic.copy_names import canary_service_name
from rollout_lws.traffic.custom.kinds import CustomKinds
from rollout_lws.traffic.custom.scripts import NO_SCRIPTS, key_of
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.marked import Marked, annotated_names, custom_refs
from rollout_lws.traffic.names import ManagedRef, Names
from rollout_lws.traffic.pools import fails_closed, picker_service
from rollout_lws.traffic.registry import PAIR_KINDS, ROUTING_KINDS, looked_at_kinds, needed_kinds
from rollout_lws.traffic.routers.of_rollout import named
from rollout_lws.traffic.split import Object, Split
from rollout_lws.workload.canary import name_of_canary, stable_of

_BEING_LISTED = "routes and pools are being listed"


def marked(world: World, rollout: Rollout, stable: Target | None) -> Marked:
    """Objects with any Rollout's annotation, or created by this one, as far as the current decision needs them."""
    keys, uid, status = world.keys, rollout.metadata.uid, rollout.status or RolloutStatus()
    noted = mentioning(world.annotated_services(uid), keys.original, uid)
    names = _names(rollout, keys, noted)
    living = frozenset(each.metadata.uid for each in world.every_rollout()) if noted else frozenset[str]()
    routes = (near := Marked(uid, keys, {SERVICES: noted}, living, names=names)).any_own or bool(near.deleted_uids)
    searched = looked_for(rollout, status, stable.metadata.uid if stable is not None else None, routes=routes)
    custom = _custom_kinds(world, custom_refs(noted, keys), names.custom if names else (), rollout.metadata.name)
    kinds = (*custom.resources, *(ROUTING_KINDS if searched else needed_kinds(names) if names else ()))
    if rollout.spec.counterpart_ref is not None:
        kinds = tuple(dict.fromkeys((*kinds, *PAIR_KINDS)))
    objects = {resource: mentioning(world.every(resource), keys.original, uid) for resource in kinds}
    objects[SERVICES] = noted
    waits = ""
    if searched:
        own = custom.of(names.custom if names else ())
        needed = (*own.resources, *(needed_kinds(names) if names else ()))
        unknown = {resource: world.unknown(resource) for resource in (*custom.resources, *ROUTING_KINDS)}
        # A kind that cannot be listed and that no release is known to have written does not block anything.
        troubles = [each or _BEING_LISTED for kind, each in unknown.items() if each == "" or (each and kind in needed)]
        troubles += [why or _BEING_LISTED for kind, why in custom.unknown.items() if not why or kind in own.unknown]
        waits = next(iter(sorted(troubles)), "")
    if any(objects.values()):
        living = frozenset(each.metadata.uid for each in world.every_rollout())
    return _with_pods(world, Marked(uid, keys, objects, living, waits, names, custom=custom))


def _custom_kinds(world: World, pinned: Iterable[ManagedRef], own: Iterable[ManagedRef], name: str) -> CustomKinds:
    """The kinds of objects that scripts may have changed, ``pinned``, and of those that the Rollout names, ``own``: the
    latter only if there is a script for them, since a Rollout is not to make the controller read objects of any kind.
    """
    before = {ref.custom_kind for ref in pinned}
    new = {ref.custom_kind: ref for ref in own if ref.custom_kind not in before}
    scripts = world.scripts(name) if new else NO_SCRIPTS
    unknown = {kind: scripts.waits for kind in new if scripts.waits is not None}
    known = (kind for kind, ref in new.items() if scripts.source is None or key_of(ref) in scripts.texts)
    kinds = (*sorted(before), *(kind for kind in known if kind not in unknown))
    unknown |= {kind: why for kind in kinds if (why := world.unknown_custom_kind(*kind)) is not None}
    return CustomKinds({kind: world.custom_kind(*kind) for kind in kinds if kind not in unknown}, unknown, kinds)


def _with_pods(world: World, found: Marked) -> Marked:
    """With the pods that decide whether objects pinned by deleted Rollouts may be restored."""
    pinned = found.pinned_workloads
    if not pinned:
        return found
    standing = {leader.workload for leader in world.every_leader()}
    stable = [name for name in standing if name_of_canary(name) in pinned]
    near = {name_of_canary(name): name for name in (*stable, *pinned)}
    foreign = frozenset(name for name, of in near.items() if _is_foreign(world, name, of))
    workloads = tuple(sorted({*pinned, *(near.keys() - foreign), *(near[name] for name in near.keys() - foreign)}))
    pods = {
        pod.metadata.uid: pod
        for source in (world.leaders, world.pods)
        for workload in workloads
        for pod in source(workload)
    }
    unknown = {name: why for name in workloads if (why := world.unknown_pods(name)) is not None}
    return replace(
        found,
        workloads=workloads,
        pods=tuple(sorted(pods.values(), key=_pod_name)),
        unknown_pods=unknown,
        foreign=foreign,
    )


def _is_foreign(world: World, name: str, stable: str) -> bool:
    """Whether a workload of this name exists and is not the canary of workload ``stable``."""
    found = (world.workload(each.resource, name) for each in TARGETS)
    return any(each is not None and stable_of(each.metadata.labels, world.keys) != stable for each in found)


def _pod_name(pod: Pod) -> str:
    return pod.metadata.name


def routing(
    world: World,
    rollout: Rollout,
    known: Marked,
    stable: Target | None,
    canary: Target | None,
    paired: Names | None = None,
) -> RoutingFacts | None:
    """Routing by the names that the current release stored, before that by the spec's; None where neither has names.
    ``paired`` are those of a pair.
    """
    keys = world.keys
    names = paired
    if rollout.spec.counterpart_ref is None:
        names = _names(rollout, keys, known.objects.get(SERVICES, ()))
    if names is None:
        return None
    style, own = rollout.spec.strategy.style, rollouts(keys.group)
    asked = style.traffic_routings[0] if style and style.traffic_routings else None
    kinds, needed = looked_at_kinds(names), needed_kinds(names)
    custom = known.custom.of(names.custom)
    objects = {resource: plain_all(world.every(resource)) for resource in (*kinds, *custom.resources)}
    pools = {pool: objects[INFERENCE_POOLS].get(pool) for pool in (names.stable_pool, names.canary_pool) if pool}
    needed_pickers = {picker_service(live) for live in pools.values() if fails_closed(live)}
    # The others are of use for their figures only.
    figures_of = {pool: picker_service(live) for pool, live in pools.items()} if _asks_pickers(style) else {}
    pickers = sorted(filter(None, needed_pickers | {*figures_of.values()}))
    of_new = names.canary_service if names.is_pair else canary_service_name(names.service)
    reached = tuple(dict.fromkeys(each for each in (names.service, of_new, *pickers) if each))
    unknowns = [world.unknown_endpoints(each) for each in reached if each not in pickers or each in needed_pickers]
    for resource in kinds:
        unknown = world.unknown(resource)
        # Optional kinds must not block anything when they cannot be listed.
        unknowns.append(None if unknown and resource not in needed else unknown)
    unknowns += [world.unknown(resource) for resource in custom.resources]
    unknowns += custom.unknown.values()
    waits = max((each for each in unknowns if each is not None), key=bool, default=None)
    scripted = bool(names.custom or (asked is not None and asked.custom_network_refs))
    every = plain_all(world.every_service())
    finding = {each.discovery_service for each in (stable, canary) if each is not None}
    return RoutingFacts(
        names=names,
        namespace=rollout.metadata.namespace,
        by=rollout.metadata.uid,
        keys=keys,
        asked=asked,
        appending=tuple(Split(0, step.matches) for step in style.steps if step.matches) if style is not None else (),
        owner=owner_reference(rollout, own.kind, own.api_version),
        objects={SERVICES: every, **objects},
        endpoints={each: frozenset(_ready_addresses(world, each)) for each in reached},
        answering=frozenset(each for each in pickers if any(s.any_ready for s in world.endpoint_slices(each))),
        pickers={
            pool: _ready_addresses(world, service)
            for pool, service in figures_of.items()
            if world.unknown(INFERENCE_POOLS) is None and (not service or world.unknown_endpoints(service) is None)
        },
        other_leaders=_other_leaders(world, _own(rollout, stable, canary)),
        discovery=frozenset(name for name in finding if name in every and services.is_headless(every[name])),
        absent=frozenset(resource for resource in (*kinds, *custom.resources) if world.unserved(resource)),
        custom=custom.served,
        scripts=world.scripts(rollout.metadata.name) if scripted else NO_SCRIPTS,
        synced=waits is None,
        trouble=waits or "",
    )


def _asks_pickers(style: StyleStrategy | None) -> bool:
    """Whether a gate of the plan wants figures of endpoint pickers."""
    gates: tuple[PlannedGate, ...] = (*style.gates, *style.every_gate) if style is not None else ()
    return any(gate.metric is not None and gate.metric.of is not None for gate in gates)


def _ready_addresses(world: World, service: str) -> dict[str, str]:
    return {pod: at for each in world.endpoint_slices(service) for pod, at in each.ready_addresses.items()}


def _names(rollout: Rollout, keys: Keys, noted: Iterable[Object]) -> Names | None:
    style = rollout.spec.strategy.style
    asked = named(style.traffic_routings[0] if style and style.traffic_routings else None)
    uid = rollout.metadata.uid
    annotated = [found for live in noted if (found := annotated_names(live, uid, keys, asked)) is not None]
    if asked is not None:
        # A user may have copied a Service with its annotation.
        annotated.sort(key=lambda each: each.service != asked.service)
    return next(iter(annotated), asked)


def mentioning(stored: Iterable[StoredObject], *words: str) -> tuple[Object, ...]:
    """The objects whose JSON contains one of these words, by name. Most of a namespace's objects concern other Rollouts
    or none, and decoding them all would take longer than everything else.
    """
    sought = [word.encode() for word in words]
    near = (each for each in stored if any(word in each.body for word in sought))
    return tuple(msgspec.json.decode(each.body) for each in sorted(near, key=lambda each: each.metadata.name))


def _own(rollout: Rollout, stable: Target | None, canary: Target | None) -> frozenset[str]:
    """Names of the workloads whose groups are the Rollout's; of no pair even those of workloads that are gone."""
    if rollout.spec.counterpart_ref is not None:
        return frozenset(each.metadata.name for each in (stable, canary) if each is not None)
    own = rollout.spec.workload_ref.name
    return frozenset({own, name_of_canary(own)})


def _other_leaders(world: World, names: Collection[str]) -> Mapping[str, tuple[dict[str, str], ...]]:
    found: dict[str, tuple[dict[str, str], ...]] = {}
    for leader in world.every_leader():
        if leader.workload not in names:
            found[leader.workload] = (*found.get(leader.workload, ()), leader.metadata.labels)
    return found


def plain_all(stored: Iterable[StoredObject]) -> dict[str, Object]:
    """The objects as plain JSON, by name."""
    return {each.metadata.name: msgspec.json.decode(each.body) for each in stored}
