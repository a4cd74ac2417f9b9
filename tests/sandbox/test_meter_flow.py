"""Lags, failures and streams, on objects that a test writes by hand; no cluster runs here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rollout_lws.objects.resources import ENDPOINT_SLICES, HTTP_ROUTES, INGRESSES, PODS, SERVICES, Resource
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.meter import NOWHERE, Client, TrafficMeter
from tests.sandbox.by_hand import READY, accept, meta, pod, remove, route, service
from tests.sandbox.conftest import Clock

USERS, INSIDE = Client("users", route="llama"), Client("inside", service="old")


@pytest.fixture
def uids(server: ApiServer) -> dict[str, str]:
    """Two versions of one group each, behind a route that sends everything to the old one."""
    uids = {name: pod(server, name) for name in ("old", "new")}
    for name, uid in uids.items():
        service(server, name, uid)
    route(server, 1, 0)
    return uids


def metered(server: ApiServer, *clients: Client, **options: Any) -> TrafficMeter:
    meter = TrafficMeter(server, clients or (USERS,), **options)
    meter.start()
    return meter


@pytest.mark.usefixtures("uids")
def test_what_was_there_at_the_start_is_known_at_once(server: ApiServer) -> None:
    assert metered(server).now("users") == {"old": 1.0}


@pytest.mark.usefixtures("uids")
def test_shares_are_exact(server: ApiServer, clock: Clock) -> None:
    meter = metered(server)
    route(server, 90, 10)
    clock.now += 2
    assert meter.now("users") == {"new": 0.1, "old": 0.9}
    begun = clock.now
    clock.now += 0.7
    assert meter.shares("users", begun) == {"new": 0.1, "old": 0.9}
    route(server, 0, 1)
    clock.now += 2
    assert meter.now("users", by="pod") == {"new-0": 1.0}


def test_requests_are_counted_by_pod_and_the_largest_share_is_known(
    server: ApiServer, clock: Clock, uids: dict[str, str]
) -> None:
    meter = metered(server, replace(USERS, per_second=50), lag=0)
    begun = clock.now
    clock.now += 10
    route(server, 90, 10)
    clock.now += 10
    route(server, 1, 0)
    clock.now += 10
    assert {name: meter.requests(uid) for name, uid in uids.items()} == {"old": 1450, "new": 50}
    assert meter.peaks("users", begun) == {"old": 1.0, "new": 0.1}
    assert meter.peaks("users", clock.now - 10) == {"old": 1.0}
    assert meter.requests("another") == 0


@pytest.mark.usefixtures("uids")
@pytest.mark.parametrize("seed", range(8))
def test_a_change_arrives_within_the_lag_and_not_at_once(server: ApiServer, clock: Clock, seed: int) -> None:
    meter = metered(server, seed=seed)
    begun = clock.now
    route(server, 0, 1)
    assert meter.now("users") == {"old": 1.0}
    clock.now += 10
    later = 10 * meter.shares("users", begun)["old"]
    assert 0 < later < 2
    assert meter.failures == []


@pytest.mark.usefixtures("uids")
def test_a_route_takes_effect_when_it_is_accepted_and_one_that_is_refused_keeps_the_last(
    server: ApiServer, clock: Clock
) -> None:
    meter = metered(server)
    route(server, 0, 1, accepted=False)
    clock.now += 60
    assert meter.now("users") == {"old": 1.0}
    accept(server, "False")
    clock.now += 60
    assert meter.now("users") == {"old": 1.0}
    accept(server)
    clock.now += 2
    assert meter.now("users") == {"new": 1.0}


@pytest.mark.usefixtures("uids")
def test_a_backend_without_endpoints_fails_its_share_for_as_long_as_it_has_none(
    server: ApiServer, clock: Clock, uids: dict[str, str]
) -> None:
    meter = metered(server, lag=0.0)
    route(server, 3, 1)
    clock.now += 10
    service(server, "new")
    emptied = clock.now
    clock.now += 3
    service(server, "old", uids["old"], uids["new"])
    clock.now += 4
    assert meter.now("users") == {NOWHERE: 0.25, "new": 0.375, "old": 0.375}
    service(server, "old", uids["old"])
    service(server, "new", uids["new"])
    clock.now += 5
    assert meter.now("users") == {"new": 0.25, "old": 0.75}
    (failure,) = meter.failures
    assert (failure.start, failure.end, failure.share) == (emptied, emptied + 7, 0.25)
    assert (failure.client, failure.reason) == ("users", 'no ready endpoint of Service "new"')
    assert failure.cause is None


@pytest.mark.parametrize(
    ("conditions", "receives"),
    [({"ready": True}, True), ({}, True), ({"ready": False}, False), ({"ready": False, "serving": True}, False)],
)
def test_an_endpoint_receives_unless_it_is_not_ready(
    server: ApiServer, uids: dict[str, str], conditions: dict[str, bool], receives: bool
) -> None:
    endpoint = {"addresses": ["10.0.0.1"], "conditions": conditions, "targetRef": {"uid": uids["new"]}}
    known = server.get(ENDPOINT_SLICES, "default", "old")["endpoints"]
    server.patch(ENDPOINT_SLICES, "default", "old", {"endpoints": [*known, endpoint]})
    assert metered(server).now("users") == ({"new": 0.5, "old": 0.5} if receives else {"old": 1.0})


def test_a_pod_that_goes_while_it_is_listed_fails_requests_until_the_data_plane_knows(
    server: ApiServer, clock: Clock, uids: dict[str, str]
) -> None:
    second = pod(server, "old", 1)
    service(server, "old", uids["old"], second)
    meter = metered(server)
    clock.now += 10
    remove(server, "old-1")
    gone = clock.now
    service(server, "old", uids["old"])
    clock.now += 10
    assert meter.now("users", by="pod") == {"old-0": 1.0}
    (failure,) = meter.failures
    assert (failure.start, failure.share, failure.pod, failure.reason) == (gone, 0.5, "old-1", "the pod is gone")
    assert 0 < failure.end - gone < 2
    assert (failure.lws, failure.group) == ("old", "1")


def test_a_client_inside_follows_its_service_at_once(server: ApiServer, clock: Clock, uids: dict[str, str]) -> None:
    meter = metered(server, INSIDE, lag=0.0)
    clock.now += 100
    service(server, "old", uids["new"])
    assert meter.now("inside") == {"new": 1.0}
    service(server, "old")
    clock.now += 5
    assert meter.now("inside") == {NOWHERE: 1.0}
    service(server, "old", uids["new"])
    clock.now += 0.1
    assert meter.now("inside") == {"new": 1.0}


@pytest.mark.parametrize("drained", [0.0, 10.0, 29.0, 30.0])
@pytest.mark.usefixtures("uids")
def test_streams_that_are_still_open_are_cut_when_their_pod_goes(
    server: ApiServer, clock: Clock, drained: float
) -> None:
    meter = metered(server, lag=0.0, drain=30.0)
    clock.now += 100
    route(server, 0, 1)
    clock.now += drained
    remove(server, "old-0")
    service(server, "old")
    clock.now += 100
    left = (30.0 - drained) / 30.0
    assert [(cut.pod, cut.time) for cut in meter.cuts] == ([("old-0", clock.now - 100)] if left else [])
    assert sum(cut.share for cut in meter.cuts) == pytest.approx(left)
    assert meter.failures == []


@pytest.mark.usefixtures("uids")
def test_a_group_that_loses_a_worker_loses_its_streams_and_fails_when_the_lag_is_over(
    server: ApiServer, clock: Clock
) -> None:
    leader = pod(server, "big", size=2)
    pod(server, "big", worker=1, size=2)
    service(server, "old", leader)
    meter = metered(server)
    clock.now += 100
    server.delete(PODS, "default", "big-0-1", grace_seconds=0)
    broken = clock.now
    clock.now += 10
    (cut,) = meter.cuts
    assert (cut.time, cut.pod, cut.share, cut.lws) == (broken, "big-0", 1.0, "big")
    (failure,) = meter.failures
    assert (failure.start, failure.end) == (broken + 2, broken + 10)
    assert failure.reason == "its group is not ready"


@pytest.mark.parametrize(("seconds", "failed"), [(1.9, 0), (2.5, 1)])
@pytest.mark.usefixtures("uids")
def test_a_pod_that_is_not_ready_for_less_than_the_lag_fails_nothing(
    server: ApiServer, clock: Clock, seconds: float, failed: int
) -> None:
    meter = metered(server)
    unready = {"conditions": [{"type": "Ready", "status": "False"}]}
    server.patch(PODS, "default", "old-0", {"status": unready}, subresource="status")
    clock.now += seconds
    server.patch(PODS, "default", "old-0", {"status": READY}, subresource="status")
    clock.now += 10
    assert [failure.reason for failure in meter.failures] == ["the pod is not ready"] * failed
    assert meter.cuts == []


@pytest.mark.usefixtures("uids")
def test_nothing_is_counted_after_the_end(server: ApiServer, clock: Clock) -> None:
    meter = metered(server)
    begun = clock.now
    clock.now += 10
    meter.stop()
    remove(server, "old-0")
    service(server, "old")
    clock.now += 100
    assert (meter.failures, meter.cuts, meter.now("users")) == ([], [], {"old": 1.0})
    assert meter.shares("users", begun) == {"old": 1.0}


@pytest.mark.parametrize("resource", [SERVICES, HTTP_ROUTES])
@pytest.mark.usefixtures("uids")
def test_a_route_or_service_that_goes_takes_its_traffic_with_it(
    server: ApiServer, clock: Clock, resource: Resource
) -> None:
    meter = metered(server, lag=0.0)
    server.delete(resource, "default", "llama" if resource == HTTP_ROUTES else "old")
    clock.now += 1
    assert meter.now("users") == {NOWHERE: 1.0}


@pytest.mark.usefixtures("uids")
def test_an_ingress_takes_effect_without_anybody_accepting_it(server: ApiServer, clock: Clock) -> None:
    def ingress(name: str, **annotations: str) -> dict[str, Any]:
        backend = {"service": {"name": name, "port": {"number": 80}}}
        rules = [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]
        options = {f"nginx.ingress.kubernetes.io/{key}": value for key, value in annotations.items()}
        return {"metadata": meta(name, annotations=options), "spec": {"rules": rules}}

    server.create(INGRESSES, ingress("old"))
    meter = metered(server, Client("users", ingress="old"))
    server.create(INGRESSES, ingress("new", canary="true", **{"canary-weight": "25"}))
    clock.now += 2
    assert meter.now("users") == {"new": 0.25, "old": 0.75}
    weight = {"nginx.ingress.kubernetes.io/canary-weight": "0"}
    server.patch(INGRESSES, "default", "new", {"metadata": {"annotations": weight}})
    clock.now += 2
    assert meter.now("users") == {"old": 1.0}
    assert meter.failures == []
