"""The command over HTTP: what it prints, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from rollout_lws.api.resources import keys
from rollout_lws.cli.doctor import command
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, STATEFUL_SETS
from rollout_lws.sandbox.faults import Effect
from tests.cli.conftest import World
from tests.cli.states import HEALTHY


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A server where nobody acts; nobody waits for it either."""
    monkeypatch.setattr(command, "SECOND_LOOK", 0.0)
    made = World(tmp_path)
    yield made
    made.close()


def test_a_cluster_where_nobody_acts_is_named_by_its_first_link(world: World) -> None:
    world.release(**HEALTHY)
    result = world.run("doctor", "rollout/llama")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "v rollout      Rollout/llama           for LeaderWorkerSet llama, the only one for it"
    assert "First broken link: controller (Rollout/llama)" in lines
    said = json.loads(world.run("doctor", "llama", "-o", "json").stdout)
    assert (said["namespace"], said["name"], said["broken"]) == ("default", "llama", "controller")
    assert [each["name"] for each in said["links"]][:4] == ["rollout", "controller", "workload", "hold"]


def test_a_missing_lws_is_the_first_broken_link_whoever_acts(world: World) -> None:
    world.release(**HEALTHY)
    world.do(lambda: world.server.delete(LEADER_WORKER_SETS, "default", "llama"))
    said = json.loads(world.run("doctor", "llama", "-o", "json").stdout)
    workload = next(each for each in said["links"] if each["name"] == "workload")
    assert (workload["state"], workload["object"]) == ("broken", "LeaderWorkerSet/llama")


def test_what_the_server_refuses_to_show_ends_nothing(world: World) -> None:
    world.release(**HEALTHY)
    refusal = ApiError(403, "Forbidden", 'pods is forbidden: User "ann" cannot list resource "pods"')
    world.do(lambda: world.http.gate.faults.add(Effect(refusal=refusal), "list", "pods", count=None))
    result = world.run("doctor", "llama")
    assert "? groups" in result.stdout
    assert "Not read   pods may not be read: pods is forbidden" in result.stdout
    assert "kubectl auth can-i list pods" in result.stdout


def test_a_rollout_that_does_not_exist_is_told_as_everywhere(world: World) -> None:
    result = world.run("doctor", "nobody")
    assert result.exit_code == 1
    assert isinstance(result.exception, UsageError)
    assert "there is no Rollout 'nobody' in namespace 'default'" in str(result.exception)


def test_a_stateful_set_that_a_rollout_which_is_gone_has_left_serving_is_told(world: World) -> None:
    """One that a LeaderWorkerSet has made carries the labels of that one, and serves in place of none."""
    stands = {keys().stands_for: "llama"}
    template = {
        "metadata": {"labels": {"app": "llama"}},
        "spec": {"containers": [{"name": "vllm", "image": "vllm:v1"}]},
    }
    spec = {"serviceName": "llama", "selector": {"matchLabels": {"app": "llama"}}, "template": template}
    for name, labels in (("llama-canary", stands), ("llama-of-lws", {**stands, LWS_NAME: "llama-of-lws"})):
        body = {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec}
        world.do(partial(world.server.create, STATEFUL_SETS, body))
    told = str(world.run("doctor", "llama").exception)
    assert (
        "statefulset/llama-canary serves in place of statefulset/llama, and the Rollout that has made it is gone"
        in told
    )
    assert "llama-of-lws" not in told
    # A Rollout of the LeaderWorkerSet of that name has nothing to do with it; the StatefulSet's brings it home.
    world.release(**HEALTHY)
    assert "statefulset/llama-canary serves in place of" in str(world.run("doctor", "gone").exception)
    live = world.server.get(world.rollouts, "default", "llama")
    ref = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "llama"}
    body = {"metadata": {"name": "llama", "namespace": "default"}, "spec": {**live["spec"], "workloadRef": ref}}
    world.do(partial(world.server.delete, world.rollouts, "default", "llama"))
    world.do(partial(world.server.create, world.rollouts, body))
    assert "serves in place of" not in str(world.run("doctor", "gone").exception)


def test_a_server_that_fails_is_no_link(world: World) -> None:
    world.release(**HEALTHY)
    world.do(lambda: world.http.gate.faults.refuse(500, "list", "pods", count=None))
    assert isinstance(world.run("doctor", "llama").exception, ApiError)
