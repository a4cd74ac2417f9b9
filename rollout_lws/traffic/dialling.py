"""Which pods of a Service may be asked for an author of the Service's namespace, and at which address and port.

Only pods of that namespace count, each at the address that its own status has. Nothing else that an author can write
leads anywhere: names in DNS, ExternalName, EndpointSlices made by hand, ports that a node's own servers listen at.
Fields are those of core/v1 and discovery.k8s.io/v1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rollout_lws.objects.addresses import node_port, pod_address
from rollout_lws.objects.meta import Meta, Struct
from rollout_lws.objects.resources import PODS
from rollout_lws.objects.scaling import whole_number
from rollout_lws.objects.workloads import SERVICE_NAME, EndpointConditions

_TCP = "TCP"
#: The API server's own Service.
_API_SERVER = ("default", "kubernetes")


class Port(Struct, frozen=True):
    """A port of a Service, or of an EndpointSlice; ``port`` is None there for all ports."""

    name: str | None = None
    port: int | None = None
    protocol: str | None = _TCP


class ServiceSpec(Struct, frozen=True):
    type: str = ""
    selector: dict[str, str] | None = None
    ports: tuple[Port, ...] | None = None


class Service(Struct, frozen=True):
    metadata: Meta
    spec: ServiceSpec = ServiceSpec()


class Reference(Struct, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class SliceEndpoint(Struct, frozen=True):
    addresses: tuple[str, ...] | None = None
    conditions: EndpointConditions = EndpointConditions()
    target_ref: Reference | None = None


class Slice(Struct, frozen=True):
    metadata: Meta
    endpoints: tuple[SliceEndpoint, ...] | None = None
    ports: tuple[Port, ...] | None = None


class ContainerPort(Struct, frozen=True):
    container_port: int = 0
    protocol: str | None = _TCP


class Container(Struct, frozen=True):
    ports: tuple[ContainerPort, ...] | None = None


class DialledSpec(Struct, frozen=True):
    host_network: bool = False
    containers: tuple[Container, ...] = ()


class PodAddress(Struct, frozen=True):
    ip: str = ""


class DialledStatus(Struct, frozen=True, rename={"host_ip": "hostIP", "pod_ip": "podIP", "pod_ips": "podIPs"}):
    host_ip: str = ""
    pod_ip: str = ""
    pod_ips: tuple[PodAddress, ...] | None = None


class DialledPod(Struct, frozen=True):
    metadata: Meta
    spec: DialledSpec = DialledSpec()
    status: DialledStatus = DialledStatus()


class NotAsked(Exception):
    """Why a Service, or a pod, is not asked: what is wrong with it, after its name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What an EndpointSlice says of a pod; ``uid`` "" if it says none. Nothing of it is believed yet."""

    pod: str
    uid: str
    address: str
    port: int


def candidates(
    service: Service | None, slices: Iterable[Slice], namespace: str, port: str = ""
) -> tuple[Candidate, ...]:
    """Pods that could be asked at the Service's ``port``, its name or number, "" for its only one; by name. NotAsked if
    there is none.
    """
    name = port_name(service, namespace, port)
    label = service.metadata.name if service is not None else ""
    named = (each for each in slices if each.metadata.labels.get(SERVICE_NAME) == label)
    found = {each.pod: each for one in named for each in _of_slice(one, namespace, name)}
    if not found:
        raise NotAsked("has no ready pod")
    return tuple(found[pod] for pod in sorted(found))


def port_name(service: Service | None, namespace: str, port: str = "") -> str:
    """What EndpointSlices call the Service's ``port``, "" for a port without a name. NotAsked if no pod of the Service
    could be asked, whichever are ready.
    """
    if service is None:
        raise NotAsked("does not exist in the Rollout's namespace")
    if service.spec.type == "ExternalName":
        raise NotAsked("is of type ExternalName, which leads elsewhere: it needs a selector")
    if (namespace, service.metadata.name) == _API_SERVER:
        raise NotAsked("is the API server's, which a gate cannot ask")
    if not service.spec.selector:
        raise NotAsked("has no selector, and only pods are asked: give it one")
    return _port_name(service, port)


def dialled(candidate: Candidate, pod: DialledPod | None) -> str:
    """The address at which the live ``pod`` is asked, as a URL has it. NotAsked if it is another than was said, or its
    port none of a pod's.
    """
    status = pod.status if pod is not None else DialledStatus()
    if pod is None or (candidate.uid and pod.metadata.uid != candidate.uid):
        raise NotAsked("does not exist any more")
    if candidate.address not in (status.pod_ip, *(each.ip for each in status.pod_ips or ())):
        raise NotAsked("has another address than its Service's endpoints say")
    try:
        address = pod_address(candidate.address)
    except ValueError as error:
        raise NotAsked(f"is not asked: {error}") from error
    if node_port(candidate.port):
        raise NotAsked(f"is not asked: {node_port(candidate.port)}")
    if _shares_node(pod) and candidate.port not in _declared(pod):
        raise NotAsked(f"has the address of its node, and no container declares port {candidate.port}")
    return address


def _port_name(service: Service, asked: str) -> str:
    """EndpointSlices have a Service's port by its name, "" for one without."""
    ports = [each for each in service.spec.ports or () if (each.protocol or _TCP) == _TCP]
    if not asked:
        if len(ports) == 1:
            return ports[0].name or ""
        raise NotAsked(f"has {len(ports)} TCP ports: say which in port")
    number = whole_number(asked)
    for each in ports:
        if (each.port == number) if number is not None else (each.name == asked):
            return each.name or ""
    raise NotAsked(f"has no TCP port {asked}")


def _of_slice(one: Slice, namespace: str, port: str) -> Iterator[Candidate]:
    numbers = [
        each.port
        for each in one.ports or ()
        if (each.name or "") == port and (each.protocol or _TCP) == _TCP and each.port is not None
    ]
    for endpoint in one.endpoints or () if numbers else ():
        target, addresses = endpoint.target_ref, endpoint.addresses
        if endpoint.conditions.ready is False or target is None or not addresses:
            continue
        if target.kind == PODS.kind and target.namespace == namespace and target.name:
            yield Candidate(target.name, target.uid, addresses[0], numbers[0])


def _shares_node(pod: DialledPod) -> bool:
    return pod.spec.host_network or (pod.status.host_ip != "" and pod.status.host_ip == pod.status.pod_ip)


def _declared(pod: DialledPod) -> frozenset[int]:
    ports = (port for container in pod.spec.containers for port in container.ports or ())
    return frozenset(each.container_port for each in ports if (each.protocol or _TCP) == _TCP)
