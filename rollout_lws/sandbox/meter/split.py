"""The split of requests in a data plane's view: exact fractions from weights and endpoints, without sampling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from rollout_lws.objects.resources import (
    DESTINATION_RULES,
    ENDPOINT_SLICES,
    INFERENCE_POOLS,
    INGRESSES,
    PODS,
    SERVICES,
    VIRTUAL_SERVICES,
    Resource,
)
from rollout_lws.sandbox.meter import gateway_route, nginx, traefik, virtual_service
from rollout_lws.sandbox.meter.client import Client
from rollout_lws.sandbox.meter.seen import ROUTES, Seen, cluster


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a request: the pod with ``uid``, or none because of ``error``."""

    uid: str = ""
    error: str = ""


#: What a canary Ingress is for, by the classType of the controller.
_CANARIES: Mapping[str, nginx.Canary] = {
    "": nginx.of_the_place,
    "nginx": nginx.of_the_place,
    "traefik": traefik.of_the_service,
}
#: Shares that add up to 1.
Split: TypeAlias = Mapping[Target, Fraction]


def reads(client: Client) -> frozenset[Resource]:
    """The kinds of objects on which the split of a client's requests depends."""
    entry, _ = client.entry
    both = frozenset((SERVICES, ENDPOINT_SLICES, entry))
    if entry in ROUTES:
        return both | {INFERENCE_POOLS, PODS}
    return both | {DESTINATION_RULES, PODS} if entry == VIRTUAL_SERVICES else both


def split(seen: Seen, client: Client) -> Split:
    """The split of the client's next request."""
    entry, name = client.entry
    if entry == SERVICES:
        return _service(seen, client.namespace, name)
    if entry == INGRESSES:
        services = nginx.parts(seen, client, _CANARIES.get(client.ingress_class, nginx.of_no_place))
        if isinstance(services, str):
            return _nowhere(services)
        return mixed((share, _service(seen, client.namespace, service)) for share, service in services)
    if entry == VIRTUAL_SERVICES:
        hosts = virtual_service.parts(seen, client)
        return _nowhere(hosts) if isinstance(hosts, str) else mixed((share, _host(seen, to)) for share, to in hosts)
    return _by_route(seen, client, entry, name)


def _by_route(seen: Seen, client: Client, kind: Resource, name: str) -> Split:
    route, what = seen.get(kind, client.namespace, name), f"{kind.kind} {name}"
    if route is None:
        return _nowhere(f"no accepted {what}")
    rule = gateway_route.rule_for(route["rules"], client)
    if rule is None:
        return _nowhere(f"no rule of {what} matches {client.path}")
    refs = [ref for ref in rule.get("backendRefs") or () if ref["weight"]]
    total = sum(ref["weight"] for ref in refs)
    if not total:
        return _nowhere(f"no backend of {what} has weight")
    return mixed((Fraction(ref["weight"], total), _routed(seen, client.namespace, ref)) for ref in refs)


def _host(seen: Seen, to: virtual_service.Destination | str) -> Split:
    """The pods of a Service, of a subset alone those with its labels; none for an error text."""
    if isinstance(to, str):
        return _nowhere(to)
    whole = _service(seen, to.namespace, to.service, to.port)
    if to.labels is None:
        return whole
    wanted = to.labels.items()
    pods = {pod["uid"] for _, pod in seen.list(PODS, to.namespace) if wanted <= pod["labels"].items()}
    uids = [target.uid for target in whole if target.uid in pods]
    return _evenly(uids, f'no ready endpoint of subset {to.subset} of Service "{to.service}"')


def mixed(parts: Iterable[tuple[Fraction, Split]]) -> Split:
    """One split from several, each with its share of the whole."""
    made: dict[Target, Fraction] = {}
    for share, part in parts:
        for target, fraction in part.items():
            made[target] = made.get(target, Fraction(0)) + share * fraction
    return made


def _nowhere(error: str) -> Split:
    return {Target(error=error): Fraction(1)}


def _evenly(uids: Iterable[str], otherwise: str) -> Split:
    targets = [Target(uid) for uid in dict.fromkeys(uids)]
    return {target: Fraction(1, len(targets)) for target in targets} or _nowhere(otherwise)


def _routed(seen: Seen, namespace: str, ref: Mapping[str, Any]) -> Split:
    if seen.get(*cluster(namespace, ref)) is None:
        return _nowhere(f"the gateway does not know {ref['kind']} {ref['name']} yet")
    return _backend(seen, namespace, ref)


def _backend(seen: Seen, namespace: str, ref: Mapping[str, Any]) -> Split:
    kind, name = ref["kind"], ref["name"]
    if ref.get("namespace") not in (None, namespace):
        return _nowhere(f"{kind} {ref['namespace']}/{name} is in another namespace")
    if (ref["group"], kind) == (INFERENCE_POOLS.group, INFERENCE_POOLS.kind):
        return _pool(seen, namespace, name)
    if (ref["group"], kind) != (SERVICES.group, SERVICES.kind):
        return _nowhere(f"{kind} {name} is no kind of backend")
    return _service(seen, namespace, name, ref["port"])


def _service(seen: Seen, namespace: str, name: str, port: int | None = None) -> Split:
    service = seen.get(SERVICES, namespace, name)
    if service is None:
        return _nowhere(f'Service "{name}" not found')
    if port is not None and port not in [each["port"] for each in service["ports"]]:
        return _nowhere(f'Service "{name}" has no port {port}')
    slices = (entry for _, entry in seen.list(ENDPOINT_SLICES, namespace) if entry["service"] == name)
    return _evenly((uid for entry in slices for uid in entry["uids"]), f'no ready endpoint of Service "{name}"')


def _pool(seen: Seen, namespace: str, name: str) -> Split:
    pool = seen.get(INFERENCE_POOLS, namespace, name)
    if pool is None:
        return _nowhere(f'InferencePool "{name}" not found')
    wanted = pool["labels"].items()
    pods = (pod for _, pod in seen.list(PODS, namespace) if pod["ready"] and wanted <= pod["labels"].items())
    return _evenly((pod["uid"] for pod in pods), f'no ready pod of InferencePool "{name}"')
