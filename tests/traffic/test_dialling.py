"""Which pods of a Service may be asked: whatever an author writes, nothing but pods of the namespace."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rollout_lws.traffic.dialling import Candidate, DialledPod, NotAsked, Service, Slice, candidates, dialled

PORTS = [{"name": "web", "port": 80, "targetPort": 8080}, {"name": "admin", "port": 81, "targetPort": 9090}]
FOUND = (Candidate("a", "uid-a", "10.0.0.7", 8080),)


def service(name: str = "approvals", **spec: Any) -> Service:
    plain = {"selector": {"app": "approvals"}, "ports": PORTS, **spec}
    return msgspec.convert({"metadata": {"name": name, "namespace": "prod"}, "spec": plain}, Service)


def endpoint(pod: str = "a", address: str = "10.0.0.7", **more: Any) -> dict[str, Any]:
    reference = {"kind": "Pod", "namespace": "prod", "name": pod, "uid": f"uid-{pod}"}
    return {"addresses": [address], "conditions": {"ready": True}, "targetRef": reference, **more}


def listed(*endpoints: dict[str, Any], of: str = "approvals", ports: Any = None) -> Slice:
    plain = {
        "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": of}},
        "endpoints": list(endpoints),
        "ports": ports if ports is not None else [{"name": "web", "port": 8080}, {"name": "admin", "port": 9090}],
    }
    return msgspec.convert(plain, Slice)


@pytest.mark.parametrize(
    ("asked", "slices", "port", "found"),
    [
        (service(), [listed(endpoint())], "web", FOUND),
        (service(), [listed(endpoint())], "80", FOUND),
        (service(), [listed(endpoint())], "81", (Candidate("a", "uid-a", "10.0.0.7", 9090),)),
        (
            service(ports=[{"port": 80}]),
            [listed(endpoint(), ports=[{"name": "", "port": 8080, "protocol": "TCP"}])],
            "",
            FOUND,
        ),
        (
            service(),
            [listed(endpoint("b")), listed(endpoint())],
            "web",
            (*FOUND, Candidate("b", "uid-b", "10.0.0.7", 8080)),
        ),
        (service(), [listed(endpoint(conditions={}))], "web", FOUND),
    ],
)
def test_pods_of_a_service(asked: Service, slices: list[Slice], port: str, found: tuple[Candidate, ...]) -> None:
    assert candidates(asked, slices, "prod", port) == found


NONE = "has no ready pod"
REFERENCE = endpoint()["targetRef"]


@pytest.mark.parametrize(
    ("asked", "slices", "namespace", "port", "why"),
    [
        pytest.param(None, [], "prod", "", "does not exist in the Rollout's namespace", id="no Service"),
        pytest.param(
            service(type="ExternalName", externalName="metadata.internal"),
            [listed(endpoint())],
            "prod",
            "web",
            "is of type ExternalName",
            id="a name in DNS",
        ),
        pytest.param(
            service("kubernetes"),
            [listed(endpoint(), of="kubernetes")],
            "default",
            "web",
            "is the API server's",
            id="the API server",
        ),
        pytest.param(service(selector={}), [listed(endpoint())], "prod", "web", "has no selector", id="no selector"),
        pytest.param(
            service(selector=None), [listed(endpoint())], "prod", "web", "has no selector", id="null selector"
        ),
        pytest.param(service(), [listed(endpoint())], "prod", "", "has 2 TCP ports: say which in port", id="two ports"),
        pytest.param(service(ports=None), [], "prod", "", "has 0 TCP ports", id="no ports"),
        pytest.param(service(), [listed(endpoint())], "prod", "10250", "has no TCP port 10250", id="another port"),
        pytest.param(service(), [listed(endpoint())], "prod", "x", "has no TCP port x", id="an unknown name"),
        pytest.param(
            service(ports=[{"port": 53, "protocol": "UDP"}]), [], "prod", "53", "has no TCP port 53", id="UDP"
        ),
        pytest.param(service(), [], "prod", "web", NONE, id="no slice"),
        pytest.param(service(), [listed(endpoint(), of="other")], "prod", "web", NONE, id="a slice of another Service"),
        pytest.param(service(), [listed(endpoint(), ports=[])], "prod", "web", NONE, id="a slice without the port"),
        pytest.param(service(), [listed(endpoint(), ports=[{"name": "web"}])], "prod", "web", NONE, id="all ports"),
        pytest.param(service(), [listed(endpoint(targetRef=None))], "prod", "web", NONE, id="an address by hand"),
        pytest.param(
            service(), [listed(endpoint(targetRef={**REFERENCE, "kind": "Node"}))], "prod", "web", NONE, id="a node"
        ),
        pytest.param(
            service(),
            [listed(endpoint(targetRef={**REFERENCE, "namespace": "kube-system"}))],
            "prod",
            "web",
            NONE,
            id="a pod of another namespace",
        ),
        pytest.param(
            service(),
            [listed(endpoint(targetRef={**REFERENCE, "namespace": ""}))],
            "prod",
            "web",
            NONE,
            id="a pod of no namespace",
        ),
        pytest.param(service(), [listed(endpoint(addresses=[]))], "prod", "web", NONE, id="no address"),
        pytest.param(service(), [listed(endpoint(conditions={"ready": False}))], "prod", "web", NONE, id="not ready"),
    ],
)
def test_what_is_never_asked(asked: Service | None, slices: list[Slice], namespace: str, port: str, why: str) -> None:
    with pytest.raises(NotAsked, match=why):
        candidates(asked, slices, namespace, port)


def pod(address: str = "10.0.0.7", *, uid: str = "uid-a", host: str = "10.1.0.1", **spec: Any) -> DialledPod:
    plain = {
        "metadata": {"name": "a", "uid": uid},
        "spec": {"containers": [{"ports": [{"containerPort": 8080}]}], **spec},
        "status": {"podIP": address, "podIPs": [{"ip": address}, {"ip": "fd00::7"}], "hostIP": host},
    }
    return msgspec.convert(plain, DialledPod)


def said(address: str = "10.0.0.7", port: int = 8080, uid: str = "uid-a") -> Candidate:
    return Candidate("a", uid, address, port)


@pytest.mark.parametrize(
    ("candidate", "live", "address"),
    [
        (said(), pod(), "10.0.0.7"),
        (said("fd00::7"), pod(), "[fd00::7]"),
        (said(uid=""), pod(), "10.0.0.7"),
        (said(port=9999), pod(), "10.0.0.7"),
        (said(), pod(hostNetwork=True), "10.0.0.7"),
    ],
)
def test_pods_that_are_asked(candidate: Candidate, live: DialledPod, address: str) -> None:
    assert dialled(candidate, live) == address


@pytest.mark.parametrize(
    ("candidate", "live", "why"),
    [
        (said(), None, "does not exist any more"),
        (said(), pod(uid="uid-b"), "does not exist any more"),
        (said("10.0.0.8"), pod(), "has another address than its Service's endpoints say"),
        (said("10.96.0.1"), pod(), "has another address"),
        (said("127.0.0.1"), pod(), "has another address"),
        (said("127.0.0.1"), pod("127.0.0.1"), "127.0.0.1 is not a pod's address"),
        (said("169.254.169.254"), pod("169.254.169.254"), "is not a pod's address"),
        (said("::1"), pod("::1"), "is not a pod's address"),
        (said("0.0.0.0"), pod("0.0.0.0"), "is not a pod's address"),
        (said("224.0.0.1"), pod("224.0.0.1"), "is not a pod's address"),
        (said("evil.internal"), pod("evil.internal"), "is no address"),
        (said(port=10250), pod(), "port 10250 is a node's own"),
        (said(port=10250), pod(hostNetwork=True, containers=[{"ports": [{"containerPort": 10250}]}]), "a node's own"),
        (said(port=6443), pod(hostNetwork=True), "a node's own"),
        (said(port=9100), pod(hostNetwork=True), "no container declares port 9100"),
        (said("10.1.0.1", port=9100), pod("10.1.0.1"), "has the address of its node"),
        (
            said(port=8080),
            pod(hostNetwork=True, containers=[{"ports": [{"containerPort": 8080, "protocol": "UDP"}]}]),
            "no",
        ),
    ],
)
def test_pods_that_are_never_asked(candidate: Candidate, live: DialledPod | None, why: str) -> None:
    with pytest.raises(NotAsked, match=why):
        dialled(candidate, live)
