"""What becomes of a behaviour's writes where others write too, and of the answers to them."""

from __future__ import annotations

from typing import Any

import msgspec

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import PODS
from rollout_lws.objects.writes import Delete, Patch, Replace, Write
from rollout_lws.sandbox.behaviours.base import Change, Object
from rollout_lws.sandbox.index import Index
from tests.e2e import writing
from tests.e2e.following import Following
from tests.kube.fakes import FakeTransport, Reply

HOME = "default"


def seen_pod() -> tuple[Index, dict[str, Any]]:
    seen = {
        "metadata": {"name": "web-0", "namespace": HOME, "uid": "u1", "resourceVersion": "7"},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Pending"},
    }
    view = Index()
    view.put(PODS, seen)
    return view, seen


def test_who_takes_anothers_name_is_a_stranger() -> None:
    """The answer to a creation may come before the news that the name was free."""
    seen: list[Change] = []
    following = Following(Client(FakeTransport()), (PODS,), seen.append)
    for uid, version in (("u1", "7"), ("u2", "9")):
        answer = {"metadata": {"name": "web-0", "namespace": HOME, "uid": uid, "resourceVersion": version}}
        following.absorb(PODS, msgspec.json.encode(answer))
    told = [(each.object["metadata"]["uid"], each.previous is not None, each.deleted) for each in seen]
    assert told == [("u1", False, False), ("u1", True, True), ("u2", False, False)]
    assert following.view.find("u1") is None
    assert seen[-1].object["kind"] == "Pod"


def test_a_patch_is_for_the_object_that_was_seen() -> None:
    view, _ = seen_pod()
    write = Patch(PODS, HOME, "web-0", {"status": {"phase": "Running"}}, "started", "7", "status")
    asked = writing.request(write, view).asked
    assert asked == Patch(
        PODS, HOME, "web-0", {"status": {"phase": "Running"}, "metadata": {"uid": "u1"}}, "started", "7", "status"
    )


def test_a_replacement_writes_what_it_changes_only() -> None:
    view, seen = seen_pod()
    body = {**seen, "metadata": {**seen["metadata"], "labels": {"a": "b"}}}
    asked = writing.request(Replace(PODS, body, "labelled"), view).asked
    assert asked == Patch(PODS, HOME, "web-0", {"metadata": {"labels": {"a": "b"}, "uid": "u1"}}, "labelled")


async def test_a_node_is_given_by_a_binding_and_the_pod_is_read_for_it() -> None:
    view, seen = seen_pod()
    bound = {**seen, "metadata": {**seen["metadata"], "resourceVersion": "8"}, "spec": {"nodeName": "node-3"}}
    transport = FakeTransport(Reply(201, SUCCESS), Reply(200, msgspec.json.encode(bound)))
    following = await sent(Patch(PODS, HOME, "web-0", {"spec": {"nodeName": "node-3"}}, "room"), view, transport)
    post, get = transport.requests
    assert (post.method, post.path) == ("POST", "/api/v1/namespaces/default/pods/web-0/binding")
    assert post.body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "node-3"}
    assert post.body["metadata"]["uid"] == "u1"
    assert (get.method, get.path) == ("GET", "/api/v1/namespaces/default/pods/web-0")
    assert found(following, "web-0")["spec"]["nodeName"] == "node-3"


async def test_a_scale_is_never_taken_for_the_object() -> None:
    answers = [{"kind": kind, "metadata": {"name": "web-0", "namespace": HOME}} for kind in ("Scale", "Pod")]
    for number, answer in enumerate(answers):
        answer["metadata"] |= {"uid": "u1", "resourceVersion": str(8 + number)}  # type: ignore[operator]
    transport = FakeTransport(*(Reply(200, msgspec.json.encode(answer)) for answer in answers))
    view, _ = seen_pod()
    following = await sent(
        Patch(PODS, HOME, "web-0", {"spec": {"replicas": 3}}, "load", None, "scale"), view, transport
    )
    assert [each.method for each in transport.requests] == ["PATCH", "GET"]
    assert found(following, "web-0")["metadata"]["resourceVersion"] == "9"


async def test_what_is_gone_needs_no_deletion() -> None:
    transport = FakeTransport(Reply(404, b"{}"))
    view, _ = seen_pod()
    await sent(Delete(PODS, HOME, "web-0", "u1", "ended", grace_seconds=0), view, transport)
    assert transport.requests[0].body["preconditions"] == {"uid": "u1"}


SUCCESS = b'{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}'


async def sent(write: Write, view: Index, transport: FakeTransport) -> Following:
    """What is known after ``write``, decided from ``view``, was carried out."""
    client = Client(transport)
    following = Following(client, (PODS,), lambda _: None)
    await writing.carry_out(writing.request(write, view), client, following)
    return following


def found(following: Following, name: str) -> Object:
    obj = following.view.get(PODS, HOME, name)
    assert obj is not None
    return obj
