"""Until the controller runs: what is waited for, what stands in the way, and when it is given up."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.install.waiting import lacks, refusals, troubles
from rollout_lws.errors import RolloutLwsError
from rollout_lws.objects.resources import DEPLOYMENTS, NAMESPACES, PODS, Resource
from rollout_lws.sandbox.faults import Effect
from tests.cli.conftest import World

Object = dict[str, Any]
IMAGE = "registry.example.com/rollout-lws:0.1.0"
HOME, NAME = "rollout-lws-system", "rollout-lws-controller"
RUNS = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1}
TWO_RUN = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}


@pytest.mark.parametrize(
    ("status", "missing"),
    [
        ({}, "its controller has not seen it yet"),
        ({"observedGeneration": 1}, "its controller has not seen it yet"),
        ({**RUNS, "observedGeneration": 2, "updatedReplicas": 0}, "0 of 1 pods made, 1 of the version before left"),
        ({**RUNS, "observedGeneration": 2, "replicas": 2}, "1 of the version before left"),
        ({"observedGeneration": 2}, "0 of 1 pods made"),
        ({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1}, "0 of 1 pods available"),
        ({**RUNS, "observedGeneration": 2}, ""),
    ],
)
def test_a_deployment_is_available_only_in_its_newest_form(status: Object, missing: str) -> None:
    assert lacks({"metadata": {"generation": 2}, "spec": {"replicas": 1}, "status": status}) == missing


def pod(name: str = "c-1", going: bool = False, **status: Any) -> Object:
    going_on = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {}
    return {"metadata": {"name": name, **going_on}, "status": status}


PULL = {"reason": "ImagePullBackOff", "message": "Back-off pulling\n image"}
PULLS = "ImagePullBackOff: Back-off pulling image"
ROOM = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (pod(), []),
        (pod(containerStatuses=[{"name": "c", "state": {"running": {}}}]), []),
        (pod(containerStatuses=[{"name": "c", "state": {"waiting": PULL}}]), [f"pod c-1 container c: {PULLS}"]),
        (pod(containerStatuses=[{"name": "c", "state": {"waiting": {"reason": "X"}}}]), ["pod c-1 container c: X"]),
        (pod(conditions=[ROOM]), ["pod c-1 is not scheduled: 0/3 nodes are available"]),
        (pod(going=True, conditions=[ROOM]), []),
    ],
)
def test_what_keeps_a_pod_from_running_is_told(found: Object, told: list[str]) -> None:
    assert troubles([found]) == told


def test_it_returns_when_the_deployment_is_available(bare: World, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = bare.server.list

    def run(resource: Resource, *arguments: Any, **options: Any) -> Any:
        """The pod is ready as soon as somebody has looked for it."""
        if resource == PODS:
            bare.later(0, lambda: bare.server.patch(DEPLOYMENTS, HOME, NAME, {"status": TWO_RUN}, subresource="status"))
        return listed(resource, *arguments, **options)

    monkeypatch.setattr(bare.server, "list", run)
    result = bare.run("install", "--image", IMAGE)
    assert result.exit_code == 0, result.exception
    assert result.stdout.splitlines()[-1] == f"deployment.apps/{NAME} is available"
    assert f"waiting for deployment.apps/{NAME}: " in result.stdout


def test_its_changes_are_followed_and_nothing_is_read_again_meanwhile(
    bare: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, listed = bare.server.get, bare.server.list
    reads: list[str] = []

    def get(resource: Resource, namespace: str, name: str) -> Any:
        reads.append(name)
        return read(resource, namespace, name)

    def run(resource: Resource, *arguments: Any, **options: Any) -> Any:
        """The Deployment is available a moment after its pods were read."""
        if resource == PODS and "pods" not in reads:
            reads[:] = ["pods"]
            bare.later(
                0.3, lambda: bare.server.patch(DEPLOYMENTS, HOME, NAME, {"status": TWO_RUN}, subresource="status")
            )
        return listed(resource, *arguments, **options)

    monkeypatch.setattr(bare.server, "get", get)
    monkeypatch.setattr(bare.server, "list", run)
    result = bare.run("install", "--image", IMAGE)
    assert result.exit_code == 0, result.exception
    assert result.stdout.splitlines()[-1] == f"deployment.apps/{NAME} is available"
    assert NAME not in reads


def test_a_deployment_that_is_deleted_is_not_waited_for(bare: World, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = bare.server.list
    delete = [lambda: bare.server.delete(DEPLOYMENTS, HOME, NAME)]

    def gone(resource: Resource, *arguments: Any, **options: Any) -> Any:
        if resource == PODS and delete:
            bare.later(0, delete.pop())
        return listed(resource, *arguments, **options)

    monkeypatch.setattr(bare.server, "list", gone)
    result = bare.run("install", "--image", IMAGE)
    assert isinstance(result.exception, RolloutLwsError)
    assert str(result.exception) == f"deployment.apps/{NAME} was deleted while it was waited for"


def test_a_server_that_is_away_for_a_moment_is_asked_again(bare: World) -> None:
    bare.run("install", "--image", IMAGE, "--timeout", "0")
    bare.do(lambda: bare.server.patch(DEPLOYMENTS, HOME, NAME, {"status": TWO_RUN}, subresource="status"))
    # Looked at twice before it is waited for; a reused connection that is cut is tried again by itself.
    bare.do(lambda: bare.http.gate.faults.add(Effect(lost=True), "get", "deployments", nth=3, count=2))
    result = bare.run("install", "--image", IMAGE, "--request-timeout", "1s")
    assert result.exit_code == 0, result.exception
    waited, last = result.stdout.splitlines()[-2:]
    assert waited.startswith(f"waiting for deployment.apps/{NAME}: no answer from")
    assert last == f"deployment.apps/{NAME} is available"


QUOTA = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded\n quota"}


@pytest.mark.parametrize(
    ("conditions", "told"),
    [(None, []), ([{**QUOTA, "status": "False"}], []), ([QUOTA], ["FailedCreate: exceeded quota"])],
)
def test_it_is_told_why_no_pod_can_be_made(conditions: list[Object] | None, told: list[str]) -> None:
    assert refusals({"status": {"conditions": conditions}}) == told


def test_it_gives_up_with_what_stands_in_the_way_and_where_to_look(bare: World) -> None:
    labels = {"app.kubernetes.io/name": "rollout-lws", "app.kubernetes.io/component": "controller"}
    spec = {"containers": [{"name": "controller", "image": IMAGE}]}
    stuck = {"metadata": {"namespace": HOME, "name": "c-1", "labels": labels}, "spec": spec}
    bare.do(lambda: bare.server.create(NAMESPACES, {"metadata": {"name": HOME}}))
    bare.do(lambda: bare.server.create(PODS, stuck))
    status = {"status": {"containerStatuses": [{"name": "controller", "state": {"waiting": PULL}}]}}
    bare.do(lambda: bare.server.patch(PODS, HOME, "c-1", status, subresource="status"))
    result = bare.run("install", "--image", IMAGE, "--timeout", "100ms")
    assert isinstance(result.exception, RolloutLwsError)
    told = str(result.exception)
    assert "is not available after 0.1s" in told
    assert f"pod c-1 container controller: {PULLS}" in told
    assert f"kubectl -n {HOME} logs deployment/{NAME}" in told


def test_an_installation_without_a_replica_is_not_waited_for(bare: World) -> None:
    result = bare.run("install", "--image", IMAGE, "--replicas", "0")
    assert result.exit_code == 0
    assert "waiting" not in result.stdout
    last = result.stdout.splitlines()[-1]
    assert last == f"no controller runs: kubectl -n {HOME} scale deployment/{NAME} --replicas=1 starts one"


def test_a_deployment_that_is_scaled_to_0_meanwhile_is_told_with_what_starts_it() -> None:
    deployment = {"metadata": {"namespace": HOME, "generation": 1}, "spec": {"replicas": 0}, "status": RUNS}
    assert lacks(deployment) == f"it was scaled to 0: kubectl -n {HOME} scale deployment/{NAME} --replicas=1 starts it"
