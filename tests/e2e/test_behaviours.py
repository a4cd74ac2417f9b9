"""The sandbox's LeaderWorkerSet, scheduler and kubelets as clients of an API server that they share with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    LEADER_WORKER_SETS,
    LWS_NAME,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.autoscaler import DESIRED
from rollout_lws.sandbox.behaviours.base import has_condition
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.behaviours.lws import admission, pod_admission
from rollout_lws.sandbox.faults import Effect
from tests.bench.processes import child
from tests.e2e import behaviours
from tests.e2e.remote import RemoteRunner
from tests.e2e.sandboxed import ControlPlane, control_plane
from tests.sandbox.conftest import lws, pod

pytestmark = pytest.mark.rare(3)

HOME = "default"
OPTIONS = Options(nodes=4, timing=Timing(ready_after=0.2, terminate_after=0.05), gateway_lag=0.05, autoscaler_lag=0.05)


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    """A control plane with LeaderWorkerSet's webhooks inside, and everything else of it outside."""
    async with control_plane(tmp_path) as (plane, connection):
        plane.server.admission += [admission.admit, pod_admission.admit]
        async with behaviours.running(Client(connection, field_manager="sandbox"), OPTIONS):
            yield plane


def group(image: str = "model:A", gpus: int = 0, size: int = 2) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": image}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {"size": size, "workerTemplate": {"spec": {"containers": [container]}}}


def pods(plane: ControlPlane) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in plane.server.list(PODS, HOME, f"{LWS_NAME}=demo")}


def serves(plane: ControlPlane, image: str) -> bool:
    """Whether the LWS says that all of its groups are ready, and all of their pods are of this image."""
    found = plane.server.get(LEADER_WORKER_SETS, HOME, "demo")
    replicas, status = found["spec"]["replicas"], found.get("status") or {}
    told = [status.get(key) for key in ("readyReplicas", "updatedReplicas", "observedGeneration")]
    ready = told == [replicas, replicas, found["metadata"]["generation"]] and has_condition(found, "Available")
    images = [each["spec"]["containers"][0]["image"] for each in pods(plane).values()]
    return ready and images == [image] * replicas * found["spec"]["leaderWorkerTemplate"]["size"]


def notes(plane: ControlPlane) -> list[str]:
    return [each["note"] for each in plane.server.list(EVENTS, HOME)]


def events(plane: ControlPlane) -> Counter[str]:
    return Counter(each["reason"] for each in plane.server.list(EVENTS, HOME))


async def up(plane: ControlPlane, **spec: Any) -> None:
    plane.server.create(LEADER_WORKER_SETS, lws("demo", **{"replicas": 2, "group": group(), **spec}))
    await plane.until(lambda: serves(plane, "model:A"))


def change(plane: ControlPlane, image: str) -> None:
    new = {"spec": {"leaderWorkerTemplate": group(image)}}
    plane.server.patch(LEADER_WORKER_SETS, HOME, "demo", new)


async def test_groups_come_up_on_nodes(plane: ControlPlane) -> None:
    await up(plane)
    assert sorted(pods(plane)) == ["demo-0", "demo-0-1", "demo-1", "demo-1-1"]
    assert {each["spec"]["nodeName"] for each in pods(plane).values()} <= {f"node-{number}" for number in range(4)}
    assert {each["metadata"]["name"] for each in plane.server.list(STATEFUL_SETS, HOME)} == {"demo", "demo-0", "demo-1"}
    assert plane.server.get(SERVICES, HOME, "demo")["spec"]["clusterIP"] == "None"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("lag", [0.0, 0.03])
async def test_a_new_template_rolls_and_nothing_is_decided_twice(plane: ControlPlane, lag: float) -> None:
    """However late the watches are: a decision from a picture without our own last write would show in the events."""
    if lag:
        plane.faults.add(Effect(event_delay=lag), "watch", count=None)
        plane.faults.cut_watches()
    await up(plane)
    change(plane, "model:B")
    await plane.until(lambda: serves(plane, "model:B"))
    assert events(plane)["CreatingRevision"] == 2
    # The leaders' StatefulSet, and the workers' of two groups in two versions.
    assert len([note for note in notes(plane) if note.startswith("Created ")]) == 1 + 4
    owned = [each for each in plane.server.list(CONTROLLER_REVISIONS, HOME, LWS_NAME) if each["revision"] > 2]
    assert not owned


async def test_a_group_falls_with_its_worker_and_its_leader_waits_for_the_others(plane: ControlPlane) -> None:
    await up(plane, group=group(size=3), replicas=1)
    before = {name: pod["metadata"]["uid"] for name, pod in pods(plane).items()}
    gone: list[str] = []
    plane.server.store.subscribe(
        lambda event: (
            gone.append(event.object["metadata"]["name"])
            if event.resource == PODS and event.type == "DELETED"
            else None
        )
    )
    plane.server.delete(PODS, HOME, "demo-0-1")
    await plane.until(lambda: len(gone) == 3)
    assert gone[-1] == "demo-0"
    await plane.until(lambda: serves(plane, "model:A"))
    assert all(pod["metadata"]["uid"] != before[name] for name, pod in pods(plane).items())
    assert events(plane)["RecreateGroup"] == 1


async def test_no_accelerator_is_given_away_twice(plane: ControlPlane) -> None:
    """Bindings are answered without the pod; the next decision must know of them, however late the watch is."""
    plane.faults.add(Effect(event_delay=0.03), "watch", count=None)
    plane.faults.cut_watches()
    plane.server.create(LEADER_WORKER_SETS, lws("demo", replicas=3, group=group(gpus=8)))

    def settled() -> bool:
        found = pods(plane).values()
        waiting = [each for each in found if not each["spec"].get("nodeName")]
        return (
            len(found) == 6
            and len(waiting) == 2
            and all((each.get("status") or {}).get("conditions") for each in waiting)
        )

    await plane.until(settled)
    assert sorted(each["spec"].get("nodeName", "") for each in pods(plane).values()) == [
        "",
        "",
        *(f"node-{n}" for n in range(4)),
    ]
    (why,) = {
        each["status"]["conditions"][0]["message"] for each in pods(plane).values() if not each["spec"].get("nodeName")
    }
    assert why == "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."


async def test_it_goes_on_after_the_server_was_away(plane: ControlPlane) -> None:
    """Watches are cut, connections refused, and the history is gone when it is back."""
    await up(plane)
    await plane.stop()
    change(plane, "model:B")
    plane.server.delete(PODS, HOME, "demo-1-1")
    plane.server.store.compact()
    await plane.start()
    await plane.until(lambda: serves(plane, "model:B"))


async def test_writes_that_fail_are_made_again(plane: ControlPlane) -> None:
    for nth, code in ((2, 500), (5, 409), (9, 503), (14, 429)):
        for verb in ("create", "patch"):
            plane.faults.refuse(code, verb, nth=nth)
    for nth in (3, 7, 11):
        plane.faults.add(Effect(lost=True, carried_out=True), "create", nth=nth)
        plane.faults.add(Effect(lost=True), "patch", nth=nth)
    await up(plane)
    plane.faults.add(Effect(lost=True, carried_out=True), "delete")
    plane.server.delete(PODS, HOME, "demo-0-1")
    change(plane, "model:B")
    await plane.until(lambda: serves(plane, "model:B"))


async def test_a_refusal_is_told_in_an_event(plane: ControlPlane) -> None:
    why = 'statefulsets.apps "demo" is forbidden: exceeded quota: count'
    plane.faults.add(Effect(refusal=ApiError(403, "Forbidden", why)), "create", "statefulsets", count=2)
    await up(plane)
    assert events(plane)["FailedCreate"] == 2


async def test_claims_routes_and_autoscalers_have_their_controllers_too(plane: ControlPlane) -> None:
    server = plane.server
    await up(plane, replicas=1)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    server.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "model", "namespace": HOME}, "spec": claim})
    listener = {"name": "http", "port": 80, "protocol": "HTTP"}
    server.create(
        GATEWAYS,
        {"metadata": {"name": "edge", "namespace": HOME}, "spec": {"gatewayClassName": "any", "listeners": [listener]}},
    )
    route = {"parentRefs": [{"name": "edge"}], "rules": [{"backendRefs": [{"name": "demo", "port": 80}]}]}
    server.create(HTTP_ROUTES, {"metadata": {"name": "demo", "namespace": HOME}, "spec": route})
    target = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": "demo"}
    metadata = {"name": "demo", "namespace": HOME, "annotations": {DESIRED: "3"}}
    server.create(
        HORIZONTAL_POD_AUTOSCALERS, {"metadata": metadata, "spec": {"scaleTargetRef": target, "maxReplicas": 5}}
    )
    await plane.until(lambda: len(pods(plane)) == 6 and serves(plane, "model:A"))
    assert server.get(PERSISTENT_VOLUME_CLAIMS, HOME, "model")["status"]["phase"] == "Bound"
    (parent,) = server.get(HTTP_ROUTES, HOME, "demo")["status"]["parents"]
    assert {each["type"]: each["status"] for each in parent["conditions"]} == {
        "Accepted": "True",
        "ResolvedRefs": "False",
    }
    assert server.get(LEADER_WORKER_SETS, HOME, "demo")["kind"] == "LeaderWorkerSet"


async def test_whoever_starts_later_finds_everything_as_it_is(tmp_path: Path) -> None:
    """A restart in mid-release, and nodes that are there already."""
    async with control_plane(tmp_path) as (plane, connection):
        plane.server.admission += [admission.admit, pod_admission.admit]
        client = Client(connection, field_manager="sandbox")
        async with behaviours.running(client, OPTIONS):
            await up(plane)
            change(plane, "model:B")
            await plane.until(lambda: events(plane)["CreatingRevision"] == 2)
        assert not serves(plane, "model:B")
        async with behaviours.running(client, OPTIONS):
            await plane.until(lambda: serves(plane, "model:B"))
        assert len(plane.server.list(NODES)) == 4


async def test_a_process_of_their_own_does_for_a_cluster_without_machines(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as (plane, _):
        plane.server.create(PODS, pod("solo"))
        others = ("leaderworkerset", "leaderworkerset-pods", "leaderworkerset-kept-pods", "gateway", "autoscaler")
        options = ("--nodes", "1", "--ready-after", "0.1s", *(part for name in others for part in ("--without", name)))
        arguments = (str(tmp_path / "kubeconfig"), *options)
        async with child("parts", "-m", "tests.e2e.serve", *arguments, logs=tmp_path) as parts:
            assert await parts.told("ready", print, 20.0) == ["scheduler", "kubelet", "volume binder"]
            await plane.until(lambda: has_condition(plane.server.get(PODS, HOME, "solo"), "Ready"))
        assert parts.process.returncode == 0, parts.last_words()


async def test_a_server_that_refuses_to_list_is_told_of_in_time(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as (plane, connection):
        refusal = ApiError(403, "Forbidden", 'User "parts" cannot list resource "pods"')
        plane.faults.add(Effect(refusal=refusal), "list", "pods", count=None)
        runner = RemoteRunner(Client(connection), (), (PODS, NODES))
        with pytest.raises(TimeoutError, match=r"not everything is listed after 0\.3 s: User .* allow"):
            async with runner.running(patience=0.3):
                pass
