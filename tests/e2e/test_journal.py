"""The audit log read as a release's journal: a moment that is missed, or found too early, would spoil every wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rollout_lws.objects.resources import EVENTS, HTTP_ROUTES, LEADER_WORKER_SETS, LWS_NAME, PODS, STATEFUL_SETS
from tests.bench import account
from tests.bench.journal import Accepted, Counted, Ready
from tests.e2e.audit import Entry
from tests.e2e.bench.copies import copied
from tests.e2e.cluster import CONTROLLER
from tests.e2e.costs import journal, steering

NINE = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)


def entry(
    second: float, resource: Any, name: str, *, verb: str = "patch", by: str = "admin", code: int = 200, **more: Any
) -> Entry:
    at = NINE + timedelta(seconds=second)
    return Entry(at, by, verb, str(resource), more.pop("subresource", ""), "chat", name, code, **more)


def stored(second: float, resource: Any, name: str, spec: Any, status: Any, **more: Any) -> Entry:
    meta = {"name": name, "namespace": "chat", "labels": {LWS_NAME: "llama"}, "generation": 3}
    return entry(second, resource, name, answer={"metadata": meta, "spec": spec, "status": status}, **more)


def lws(second: float, replicas: int) -> Entry:
    return stored(second, LEADER_WORKER_SETS, "llama", {"replicas": replicas, "leaderWorkerTemplate": {"size": 1}}, {})


def pod(second: float, name: str, ready: bool, **more: Any) -> Entry:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return stored(second, PODS, name, {}, {"conditions": conditions}, subresource="status", **more)


def stateful_set(second: float, ready: int) -> Entry:
    return stored(second, STATEFUL_SETS, "llama", {}, {"readyReplicas": ready}, subresource="status", verb="update")


def ours(second: float, resource: Any, name: str = "llama", **more: Any) -> Entry:
    return entry(second, resource, name, by=CONTROLLER, **more)


def test_a_wait_begins_with_the_last_pod_and_ends_with_our_next_write() -> None:
    entries = [
        lws(0, 2),
        pod(1, "llama-0", True),
        pod(2, "llama-1", False),
        pod(3, "llama-1", True, code=409),
        pod(4, "llama-1", True),
        stateful_set(4.5, 1),
        ours(5, EVENTS, verb="create", code=201),
        stateful_set(6, 2),
        ours(7, "rollouts.rollouts.kruise.io", subresource="status"),
    ]
    told = journal(entries, CONTROLLER)["chat"]
    assert account.waits(told, Ready) == [pytest.approx(3)]
    assert account.waits(told, Counted) == [pytest.approx(1)]


def test_a_pod_that_went_has_to_become_ready_again() -> None:
    gone = pod(2, "llama-0", True, verb="delete")
    told = journal([lws(0, 1), pod(1, "llama-0", True), gone, pod(3, "llama-0", True)], CONTROLLER)["chat"]
    assert [each.at for each in told if isinstance(each, Ready)] == [
        (NINE + timedelta(seconds=n)).timestamp() for n in (1, 3)
    ]


def test_a_route_is_accepted_once_for_each_of_its_generations() -> None:
    parents = [{"conditions": [{"type": "Accepted", "status": "True", "observedGeneration": 3}]}]
    seen = [stored(second, HTTP_ROUTES, "llama", {}, {"parents": parents}) for second in (1, 2)]
    told = journal(seen, CONTROLLER)["chat"]
    assert [type(each) for each in told] == [Accepted]


def test_what_steers_a_release_is_neither_event_nor_label_nor_window_nor_refused() -> None:
    opened = {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 2}}}}
    scaled = ours(6, LEADER_WORKER_SETS, "llama-canary", body={"spec": {"replicas": 2}})
    entries = [
        ours(1, EVENTS, verb="create"),
        ours(2, PODS),
        ours(3, LEADER_WORKER_SETS, body=opened),
        ours(4, LEADER_WORKER_SETS, "llama-canary", verb="create", code=409),
        ours(5, LEADER_WORKER_SETS, verb="get"),
        scaled,
    ]
    assert steering(entries) == [scaled]


def test_a_copy_belongs_to_the_copies_of_its_owners_and_to_nobody_else() -> None:
    meta = {"name": "llama", "namespace": "original", "uid": "c", "resourceVersion": "7", "labels": {"a": "b"}}
    owners = [{"kind": "LeaderWorkerSet", "uid": "a"}, {"kind": "Stranger", "uid": "z"}]
    obj = {"kind": "Service", "metadata": {**meta, "ownerReferences": owners}, "spec": {}, "status": {"old": 1}}
    assert copied(obj, "team", {"a": "new"}) == {
        "kind": "Service",
        "metadata": {
            "name": "llama",
            "namespace": "team",
            "labels": {"a": "b"},
            "ownerReferences": [{"kind": "LeaderWorkerSet", "uid": "new"}],
        },
        "spec": {},
    }
