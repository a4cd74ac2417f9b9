"""Model servers of pods: they count what their annotations name, or what a meter says that they were given."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.meter import Client, TrafficMeter
from rollout_lws.sandbox.model_servers import PREFIX, ModelServers
from tests.sandbox.by_hand import READY, pod, route, service
from tests.sandbox.conftest import Clock

USERS = Client("users", route="llama", per_second=200)
UNREADY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}


@pytest.fixture
def servers(server: ApiServer) -> ModelServers:
    """Those of two versions of one group each, behind a route that gives the new one a tenth."""
    made = ModelServers(server)
    for name, uid in {name: pod(server, name) for name in ("old", "new")}.items():
        service(server, name, uid)
        behave(server, f"{name}-0", engine="vLLM", **{"requests-per-second": "3"})
    route(server, 90, 10)
    return made


def behave(server: ApiServer, name: str, **behaviour: str) -> None:
    annotations = {PREFIX + key.replace("_", "-"): text for key, text in behaviour.items()}
    server.patch(PODS, "default", name, {"metadata": {"annotations": annotations}})


def value(servers: ModelServers, name: str, line: str) -> float:
    told = (servers.metrics("default", name) or "").splitlines()
    return sum(float(each.rpartition(" ")[2]) for each in told if each.startswith(line))


def completed(servers: ModelServers, name: str) -> float:
    return value(servers, name, "vllm:request_success_total{")


def metered(server: ApiServer, servers: ModelServers) -> TrafficMeter:
    meter = TrafficMeter(server, [USERS], lag=0)
    meter.start()
    servers.count(meter.requests)
    return meter


def test_without_a_meter_requests_come_at_the_rate_of_the_annotation(servers: ModelServers, clock: Clock) -> None:
    clock.now += 20
    assert (completed(servers, "old-0"), completed(servers, "new-0")) == (60, 60)


def test_with_a_meter_each_server_counts_its_share_of_the_requests(
    server: ApiServer, servers: ModelServers, clock: Clock
) -> None:
    metered(server, servers)
    clock.now += 20
    assert (completed(servers, "old-0"), completed(servers, "new-0")) == (3600, 400)
    route(server, 1, 0)
    clock.now += 20
    assert (completed(servers, "old-0"), completed(servers, "new-0")) == (7600, 400)


def test_a_server_is_as_slow_as_its_annotation_says_with_a_meter_as_well(
    server: ApiServer, servers: ModelServers, clock: Clock
) -> None:
    metered(server, servers)
    behave(server, "new-0", first_token_seconds="1")
    clock.now += 10
    within = 'vllm:time_to_first_token_seconds_bucket{engine="0",le="1.0"'
    assert value(servers, "new-0", within) == 100
    behave(server, "new-0", first_token_seconds="0.01")
    clock.now += 10
    assert value(servers, "new-0", within) == 300


def test_what_a_pod_was_given_before_it_was_ready_its_server_has_not_counted(
    server: ApiServer, servers: ModelServers, clock: Clock
) -> None:
    server.patch(PODS, "default", "new-0", {"status": UNREADY}, subresource="status")
    meter = metered(server, servers)
    clock.now += 5
    assert servers.metrics("default", "new-0") is None
    server.patch(PODS, "default", "new-0", {"status": READY}, subresource="status")
    begun = completed(servers, "new-0")
    clock.now += 5
    assert completed(servers, "new-0") - begun == 100
    assert len(meter.failures) == 1
