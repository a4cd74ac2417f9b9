"""Finds what routes requests to a workload's leaders: the Service, and the route, Ingress or pools in front of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rollout_lws.cli.gitops import Ignored
from rollout_lws.objects.resources import INFERENCE_POOLS, SERVICES, Resource
from rollout_lws.observe.assume import pod_labels
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.rollout.routing.unmanaged_backends import made_by_lws
from rollout_lws.targets.target import Target
from rollout_lws.traffic import pools, services
from rollout_lws.traffic.copy_names import canary_service_name
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.names import CANARY, POLICY, STABLE, ManagedRef, Names
from rollout_lws.traffic.registry import RouterSpec
from rollout_lws.traffic.router import Router
from rollout_lws.traffic.routers.of_rollout import ROUTERS
from rollout_lws.traffic.selectors import Selecting

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Routing:
    """``service`` selects the leaders, "" when none does. ``route`` is the routing object of ``router``'s kind that
    refers to it, or to the pool ``stable_pool``, whose counterpart is ``canary_pool`` ("" when missing).
    """

    service: str = ""
    router: RouterSpec | None = None
    route: str = ""
    stable_pool: str = ""
    canary_pool: str = ""
    unfit: tuple[str, ...] = ()
    """Why Services that select the leaders are unusable, one sentence each."""
    pair: bool = False
    """Whether each side of a pair has a backend of its own: ``service`` or ``stable_pool`` leads to the first one."""
    counterpart_service: str = ""
    """Of a pair: the Service of the second side; "" where pools lead to both."""
    policy: str = ""
    """The object of the router's ``policy`` kind that is of the Service; "" without one."""

    @property
    def routes(self) -> bool:
        """Whether traffic can be split by weight."""
        return bool(self.service and self.router and bool(self.stable_pool) == bool(self.canary_pool))

    @property
    def ignored(self) -> Iterator[Ignored]:
        """Fields that a release writes in the user's Service, pools and route; it never modifies an Ingress. Where each
        side of a pair has a backend of its own, it writes the route alone.
        """
        if self.pair and self.router is not None:
            yield Ignored(self.router.resource, self.route, tuple(f"/spec/{each}" for each in self.router.members))
            return
        if self.service:
            yield Ignored(SERVICES, self.service, ("/spec/selector",))
        if self.router is not None and not self.router.copies:
            pointers = tuple(f"/spec/{each}" for each in self.router.members)
            yield Ignored(self.router.resource, self.route, pointers)
        for pool in filter(None, (self.stable_pool, self.canary_pool)):
            yield Ignored(INFERENCE_POOLS, pool, ("/spec/selector",))


def find(found: Snapshot, workload: Target) -> Routing:
    """The routing of a workload."""
    fit, unfit = services_of(found, workload)
    for router in ROUTERS:
        for service, policy in product(fit, _policies(found, router.spec)):
            route = _leading(found, router, service, policy=policy)
            if route:
                return Routing(service, router.spec, route, policy=policy)
        for stable, canary in _pools(found, workload) if router.spec.to_pools and fit else ():
            route = _leading(found, router, fit[0], stable, canary or f"{stable}-canary")
            if route:
                return Routing(fit[0], router.spec, route, stable, canary)
    return Routing(fit[0] if fit else "", unfit=tuple(unfit))


def services_of(found: Snapshot, workload: Target, other: Target | None = None) -> tuple[list[str], list[str]]:
    """Names of usable Services, sorted, and why others that select the leaders are unusable. ``other`` is a second
    workload, whose leaders a usable one does not select even if there are none yet.
    """
    leaders, own = leaders_of(found, workload), workload.metadata.name
    if other is not None:
        beside = other.metadata.name
        leaders |= {name: labels for name, labels in leaders_of(found, other).items() if name == beside}
    fit: list[str] = []
    unfit: list[str] = []
    for name in selecting_leaders(found, services.SELECTING, leaders[own]):
        live = found.find(SERVICES, name)
        if live is None or is_of_discovery(live, workload):
            continue
        problem = services.service_problem(live, "", found.keys, workload=workload, leaders=leaders)
        (unfit if problem else fit).append(problem or name)
    return fit, unfit


def is_of_discovery(service: Object, workload: Target) -> bool:
    """Whether pods find each other by this Service."""
    named = _name(service) == workload.discovery_service and services.is_headless(service)
    return named or made_by_lws(service)


def _pools(found: Snapshot, workload: Target) -> Iterator[tuple[str, str]]:
    """Each pool that selects the leaders, with its counterpart for the new version, "" without one."""
    names = selecting_leaders(found, pools.SELECTING, leaders_of(found, workload)[workload.metadata.name])
    for name in names:
        others = [each for each in names if each != name]
        named = canary_service_name(name)
        yield name, next((each for each in others if each == named), others[0] if len(others) == 1 else "")


def selecting_leaders(found: Snapshot, selecting: Selecting, labels: Sequence[Mapping[str, str]]) -> list[str]:
    """Names of the objects of a kind that select any of these pods, sorted."""
    return sorted(
        live["metadata"]["name"]
        for live in found.plain(selecting.resource)
        if any(selecting.selects(live, each) for each in labels)
    )


def _policies(found: Snapshot, spec: RouterSpec) -> list[str]:
    """Names of the objects that may say how requests are sent; "" for none comes last."""
    return [*(sorted(map(_name, found.plain(spec.policy.resource))) if spec.policy is not None else ()), ""]


def _leading(found: Snapshot, router: type[Router], service: str, *pools: str, policy: str = "") -> str:
    """Name of the first routing object of the kind that can split requests to this Service, sent as ``policy`` says, or
    to the first of two pools; "" without one. It counts as in use, which shows only during a release.
    """
    resource, objects = router.spec.resource, dict[Resource, dict[str, Object]]()
    refs = [
        ManagedRef(kind=INFERENCE_POOLS.kind, name=pool, version=version)
        for pool, version in zip(pools, (STABLE, CANARY), strict=False)
    ]
    if policy and router.spec.policy is not None:
        kind = router.spec.policy.resource
        refs.append(ManagedRef(kind=kind.kind, name=policy, version=POLICY))
        objects[kind] = {_name(each): dict(each) for each in found.plain(kind)}
    names = Names(service=service, refs=tuple(refs))
    for live in sorted(found.plain(resource), key=_name):
        objects[resource] = {_name(live): router.spec.in_use({**live, "status": {}})}
        facts = RoutingFacts(names, live["metadata"].get("namespace", ""), "", found.keys, objects=objects)
        if router(facts, _name(live)).check() is None:
            return _name(live)
    return ""


def _name(live: Object) -> str:
    return str(live["metadata"]["name"])


def leaders_of(found: Snapshot, workload: Target) -> dict[str, list[Mapping[str, str]]]:
    """Labels of pods that take requests, by their workload; ``workload`` has those of one to come, if it has no
    group.
    """
    leaders: dict[str, list[Mapping[str, str]]] = {}
    for pod in found.every_leader():
        leaders.setdefault(pod.workload, []).append(pod.metadata.labels)
    name = workload.metadata.name
    live = found.find(workload.resource, name)
    if name not in leaders and live is not None:
        leaders[name] = [pod_labels(type(workload), live)]
    return leaders
