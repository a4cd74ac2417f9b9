"""The store under the API: order of events, and how much one process can write."""

from __future__ import annotations

import time

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, LWS_NAME, PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.store import Event
from tests.sandbox.conftest import config_map, lws, pod


def test_everybody_sees_all_changes_in_order_though_one_writes_while_told(server: ApiServer) -> None:
    first: list[int] = []
    second: list[int] = []

    def echo(event: Event) -> None:
        first.append(event.version)
        if event.type == "ADDED":
            server.patch(CONFIG_MAPS, "default", event.object["metadata"]["name"], {"data": {"seen": "yes"}})

    server.store.subscribe(echo)
    server.store.subscribe(lambda event: second.append(event.version))
    server.create(CONFIG_MAPS, config_map("a"))
    server.create(CONFIG_MAPS, config_map("b"))
    assert first == second == sorted(first)
    assert len(first) == 4


def test_an_ended_subscription_hears_no_more(server: ApiServer) -> None:
    seen: list[Event] = []
    end = server.store.subscribe(seen.append)
    server.create(CONFIG_MAPS, config_map("a"))
    end()
    server.create(CONFIG_MAPS, config_map("b"))
    assert [event.object["metadata"]["name"] for event in seen] == ["a"]


def test_an_event_tells_what_was_before(server: ApiServer) -> None:
    old = server.create(CONFIG_MAPS, config_map(a="1"))
    seen: list[Event] = []
    server.store.subscribe(seen.append)
    new = server.patch(CONFIG_MAPS, "default", "settings", {"data": {"a": "2"}})
    server.delete(CONFIG_MAPS, "default", "settings")
    assert [(event.type, event.previous) for event in seen] == [("MODIFIED", old), ("DELETED", new)]
    assert old["data"] == {"a": "1"}


def test_the_label_index_follows_changes(server: ApiServer) -> None:
    server.create(PODS, pod("a", labels={LWS_NAME: "one"}))
    server.patch(PODS, "default", "a", {"metadata": {"labels": {LWS_NAME: "two"}}})
    assert server.list(PODS, "default", f"{LWS_NAME}=one") == []
    assert len(server.list(PODS, "default", f"{LWS_NAME}=two")) == 1
    assert server.list(PODS, "kube-system", f"{LWS_NAME}=two") == []


def test_a_status_write_shares_the_spec_with_the_version_before(lws_server: ApiServer) -> None:
    old = lws_server.create(LEADER_WORKER_SETS, lws())
    new = lws_server.patch(LEADER_WORKER_SETS, "default", "demo", {"status": {"replicas": 1}}, subresource="status")
    assert new["spec"] is old["spec"]


def test_thousands_of_writes_take_less_than_a_second_of_work(lws_server: ApiServer) -> None:
    lws_server.create(LEADER_WORKER_SETS, lws())
    begun = time.process_time()
    for number in range(5000):
        patch = {"status": {"replicas": number + 1}}
        lws_server.patch(LEADER_WORKER_SETS, "default", "demo", patch, subresource="status")
    assert time.process_time() - begun < 1
