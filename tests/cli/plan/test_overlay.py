"""Manifests laid over what a cluster has: what they change, what they leave, what an API server would fill in."""

from __future__ import annotations

from typing import Any

from rollout_lws.api import keys
from rollout_lws.cli.demo import manifests
from rollout_lws.cli.plan.overlay import overlaid
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS, SERVICES
from rollout_lws.observe.assume import running
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.workload.hold import HOLD

KEYS = keys()
HELD = {"rollingUpdateConfiguration": {"partition": HOLD}}


def live(**spec: Any) -> dict[str, Any]:
    lws = manifests.workload()
    meta = {**lws["metadata"], "uid": "u", "resourceVersion": "7", "generation": 3, "labels": {"team": "chat"}}
    return {**lws, "metadata": meta, "spec": {**lws["spec"], "rolloutStrategy": HELD, **spec}}


def applied(manifest: dict[str, Any], *, over: dict[str, Any] | None = None) -> dict[str, Any]:
    found = Snapshot(KEYS, {LEADER_WORKER_SETS: [over or live()]})
    made = overlaid(found, [manifest], "default").find(LEADER_WORKER_SETS, "llama")
    assert made is not None
    return made


def manifest(**spec: Any) -> dict[str, Any]:
    head = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind}
    return {**head, "metadata": {"name": "llama", "labels": {"stage": "prod"}}, "spec": spec}


def test_what_a_manifest_says_counts_and_the_hold_stays() -> None:
    strategy = {"rollingUpdateConfiguration": {"partition": 0}}
    made = applied(manifest(replicas=7, rolloutStrategy=strategy))
    assert made["spec"]["replicas"] == 7
    assert made["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == HOLD
    assert made["metadata"]["labels"] == {"team": "chat", "stage": "prod"}
    assert made["metadata"]["uid"] == "u"


def test_a_template_is_stated_as_a_whole_and_numbers_that_are_not_stay() -> None:
    template = {"workerTemplate": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}
    made = applied(manifest(leaderWorkerTemplate=template))["spec"]["leaderWorkerTemplate"]
    assert set(made) == {"workerTemplate", "size", "restartPolicy"}
    assert made["size"] == 2


def test_other_namespaces_and_kinds_are_left_aside() -> None:
    elsewhere = manifest(replicas=7)
    elsewhere["metadata"]["namespace"] = "other"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "llama"}}
    found = Snapshot(KEYS, {LEADER_WORKER_SETS: [live()]})
    assert overlaid(found, [elsewhere, secret], "default").objects == found.objects


def test_an_lws_that_is_only_in_a_file_runs_as_it_says() -> None:
    found = running(overlaid(Snapshot(KEYS, {}), [manifests.workload()], "default"), LeaderWorkerSet, "llama")
    assert len(found.plain(PODS)) == 4
    assert all(pod.metadata.labels["role"] == "leader" for pod in found.leaders("llama"))
    assert running(found, LeaderWorkerSet, "llama") is found
    assert found.plain(SERVICES) == ()
