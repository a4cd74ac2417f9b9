"""Who leads requests to the leaders of an LWS today: its Service, and the route, Ingress or pools before that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout_lws.cli.snapshot import Snapshot
from rollout_lws.objects.resources import HTTP_ROUTES, INFERENCE_POOLS, INGRESSES, SERVICES
from rollout_lws.rollout.unlisted import made_by_lws
from rollout_lws.traffic import http_route, ingress, pools, services
from rollout_lws.traffic.selectors import Selecting
from rollout_lws.traffic.services import canary_service_name
from rollout_lws.traffic.split import ALL_STABLE, Backend, Backends
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.copies import copy_name

Object = dict[str, Any]
_POOL = (INFERENCE_POOLS.group, INFERENCE_POOLS.kind)


@dataclass(frozen=True, slots=True)
class Routing:
    """``service`` selects the leaders, "" when none does. Of the rest at most one way is there: ``http_route`` refers
    to the Service, or to the pool ``stable_pool``, beside which ``canary_pool`` stands ("" when it is missing), or
    ``ingress`` has a path to the Service.
    """

    service: str = ""
    http_route: str = ""
    ingress: str = ""
    stable_pool: str = ""
    canary_pool: str = ""
    unfit: tuple[str, ...] = ()
    """Why Services that select the leaders cannot be used, a sentence each."""

    @property
    def routes(self) -> bool:
        """Whether shares can be given."""
        return bool(
            self.service and (self.ingress or (self.http_route and bool(self.stable_pool) == bool(self.canary_pool)))
        )


def find(found: Snapshot, workload: str) -> Routing:
    """What there is for the LWS ``workload``, which runs."""
    fit, unfit = _services(found, workload)
    for service in fit:
        for route in _names(found, HTTP_ROUTES):
            if _refers(found, route, Backends(Backend(service), Backend(canary_service_name(service)))):
                return Routing(service, http_route=route)
    service = fit[0] if fit else ""
    for stable, canary in _pools(found, workload):
        both = Backends(Backend(stable, *_POOL), Backend(canary or f"{stable}-canary", *_POOL))
        route = next((each for each in _names(found, HTTP_ROUTES) if _refers(found, each, both)), "")
        if route and service:
            return Routing(service, http_route=route, stable_pool=stable, canary_pool=canary)
    for service in fit:
        for live in found.plain(INGRESSES):
            if not ingress.ingress_problem(live, service, "", ALL_STABLE):
                return Routing(service, ingress=live["metadata"]["name"])
    return Routing(fit[0] if fit else "", unfit=tuple(unfit))


def _services(found: Snapshot, workload: str) -> tuple[list[str], list[str]]:
    """Names of those that a release can use, by name, and why others that select the leaders are of no use."""
    leaders, lws = _leaders(found), found.workload(workload)
    assert lws is not None, "who looks for its routes has seen it"
    fit: list[str] = []
    unfit: list[str] = []
    for name in _selecting(found, services.SELECTING, leaders.get(workload, ())):
        live = found.find(SERVICES, name)
        if live is None or made_by_lws(live):
            continue
        problem = services.service_problem(
            live, "", found.keys, workload=workload, canary=canary_name(lws), leaders=leaders
        )
        (unfit if problem else fit).append(problem or name)
    return fit, unfit


def _pools(found: Snapshot, workload: str) -> Iterator[tuple[str, str]]:
    """Each pool that selects the leaders, with the other one that does, or would for the new version."""
    names = _selecting(found, pools.SELECTING, _leaders(found).get(workload, ()))
    for name in names:
        others = [each for each in names if each != name]
        named = copy_name(name, services.NAME_BUDGET)
        yield name, next((each for each in others if each == named), others[0] if len(others) == 1 else "")


def _selecting(found: Snapshot, selecting: Selecting, labels: Sequence[Mapping[str, str]]) -> list[str]:
    return sorted(
        live["metadata"]["name"]
        for live in found.plain(selecting.resource)
        if any(selecting.selects(live, each) for each in labels)
    )


def _refers(found: Snapshot, route: str, backends: Backends) -> bool:
    live = found.find(HTTP_ROUTES, route)
    return live is not None and not http_route.route_problem(live, backends)


def _leaders(found: Snapshot) -> dict[str, list[Mapping[str, str]]]:
    """Labels of leader pods by their LWS."""
    leaders: dict[str, list[Mapping[str, str]]] = {}
    for pod in found.every_leader():
        leaders.setdefault(pod.workload, []).append(pod.metadata.labels)
    return leaders


def _names(found: Snapshot, resource: Any) -> list[str]:
    return sorted(each["metadata"]["name"] for each in found.plain(resource))
