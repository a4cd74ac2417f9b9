"""What is assumed of workloads that only files have: their pods, revisions and status, and what leads to them."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.demo import manifests
from rollout_lws.objects.resources import PODS, SERVICES, STATEFUL_SETS
from rollout_lws.observe import assume
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.targets.stateful_set import StatefulSetTarget
from tests.scenarios.world import KEYS

Object = dict[str, Any]


def stateful_set(name: str = "chat", **spec: Any) -> Object:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    selector = {"matchLabels": {"app": name}}
    made = {"metadata": {"name": name}, "spec": {"replicas": 2, "selector": selector, "template": template, **spec}}
    return assume.created(STATEFUL_SETS, made, "default")


def test_the_pods_of_a_stateful_set_have_the_labels_that_its_controller_gives_them() -> None:
    workload = stateful_set(ordinals={"start": 3})
    assert assume.pod_labels(StatefulSetTarget, workload, 1) == {
        "app": "chat",
        "statefulset.kubernetes.io/pod-name": "chat-4",
        "apps.kubernetes.io/pod-index": "4",
        "controller-revision-hash": "chat-assumed",
    }
    assert assume.leader(StatefulSetTarget, workload, 1)["metadata"]["name"] == "chat-4"


def test_the_pods_of_a_leader_worker_set_have_those_of_theirs() -> None:
    lws = manifests.workload()
    leader, worker = (assume.pod_labels(LeaderWorkerSet, lws, 2, each) for each in (0, 1))
    own = {
        "leaderworkerset.sigs.k8s.io/name": "llama",
        "leaderworkerset.sigs.k8s.io/group-index": "2",
        "leaderworkerset.sigs.k8s.io/template-revision-hash": "assumed",
    }
    assert own.items() <= leader.items()
    assert (leader["role"], leader["leaderworkerset.sigs.k8s.io/worker-index"]) == ("leader", "0")
    assert worker["leaderworkerset.sigs.k8s.io/worker-index"] == "1"


def test_a_stateful_set_runs_as_it_says() -> None:
    found = assume.running(Snapshot(KEYS, {STATEFUL_SETS: [stateful_set()]}), StatefulSetTarget, "chat")
    assert [pod.metadata.name for pod in found.leaders("chat")] == ["chat-0", "chat-1"]
    workload = found.workload(STATEFUL_SETS, "chat")
    assert isinstance(workload, StatefulSetTarget)
    assert workload.observed_generation == workload.metadata.generation == 1
    leader_set, (first, _) = workload.leader_set, found.leaders("chat")
    assert leader_set.revision == leader_set.status.current_revision == first.revision == "chat-assumed"
    assert [*found.stateful_sets("chat")] == []
    assert assume.running(found, StatefulSetTarget, "chat") is found


@pytest.mark.parametrize("name", ["chat", "other"])
def test_what_runs_or_is_missing_is_left_as_it_is(name: str) -> None:
    live = {**stateful_set(), "status": {"updateRevision": "chat-5f6d"}}
    found = Snapshot(KEYS, {STATEFUL_SETS: [live]})
    assert assume.running(found, StatefulSetTarget, name) is found
    assert found.plain(PODS) == ()


def test_a_service_selects_by_the_labels_of_the_template() -> None:
    found = Snapshot(KEYS, {STATEFUL_SETS: [stateful_set(), stateful_set("green")]})
    asked = {"service": "a", "counterpartService": "b", "gateway": {"httpRouteName": "c"}}
    seen, told = assume.routed(found, asked, StatefulSetTarget, "chat", "green")
    assert told == ["Service a", "Service b", "HTTPRoute c"]
    selectors = {each["metadata"]["name"]: each["spec"]["selector"] for each in seen.plain(SERVICES)}
    assert selectors == {"a": {"app": "chat"}, "b": {"app": "green"}}
