"""LeaderWorkerSet's webhooks over the wire: what they answer, to whom, and that an API server can make use of it."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.kube.connection import Connection
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, PODS
from rollout_lws.sandbox.patching import patches
from tests.e2e import registration, webhooks
from tests.e2e.certificates import Authority
from tests.e2e.sandboxed import ControlPlane, control_plane
from tests.json_patch import json_patch
from tests.sandbox.conftest import lws, pod, refused

DEFAULTING, VALIDATING, POD = webhooks.WEBHOOKS
PREFIX = "leaderworkerset.sigs.k8s.io/"

_values = st.recursive(
    st.none() | st.integers(-3, 3) | st.text("ab~/", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3),
    max_leaves=8,
)
_objects = st.dictionaries(st.text("ab~/", max_size=2), _values, max_size=3)


@given(_objects, _objects)
def test_the_difference_makes_the_one_object_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert msgspec.json.encode(patches.json_patch(before, json_patch(before, after)), order="sorted") == (
        msgspec.json.encode(after, order="sorted")
    )


def test_equal_objects_differ_in_nothing_and_parts_stay_as_they_are() -> None:
    assert json_patch({"a": {"b": [1]}}, {"a": {"b": [1]}}) == []
    assert json_patch({"a": {"b": 1, "c/d": 2}}, {"a": {"b": 1, "c/d": 3}}) == [
        {"op": "replace", "path": "/a/c~1d", "value": 3}
    ]


def review(obj: Any, operation: str = "CREATE", **more: Any) -> dict[str, Any]:
    asked = {"uid": "1", "operation": operation, "object": obj, **more}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


def test_what_needs_no_change_is_let_through_without_a_patch() -> None:
    complete = webhooks.reviewed(DEFAULTING, review(lws(replicas=2)))["response"]
    patch = msgspec.json.decode(base64.b64decode(complete["patch"]))
    done = patches.json_patch(lws(replicas=2), patch)
    assert webhooks.reviewed(DEFAULTING, review(done))["response"] == {"uid": "1", "allowed": True}
    assert webhooks.reviewed(VALIDATING, review(done))["response"] == {"uid": "1", "allowed": True}


def test_a_refusal_has_code_reason_and_the_field() -> None:
    answer = webhooks.reviewed(VALIDATING, review(lws(replicas=-1), "UPDATE", oldObject=lws()))["response"]
    assert (answer["allowed"], answer["status"]["code"], answer["status"]["reason"]) == (False, 403, "Forbidden")
    assert answer["status"]["message"].startswith("spec.replicas: Invalid value: -1")


def test_what_the_schema_will_refuse_is_left_to_it() -> None:
    for webhook in (DEFAULTING, VALIDATING):
        answer = webhooks.reviewed(webhook, review(lws(replicas="two")))["response"]
        assert answer == {"uid": "1", "allowed": True}


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        ({}, "AdmissionReview of admission.k8s.io/v1"),
        ({**review({}), "apiVersion": "admission.k8s.io/v1beta1"}, "admission.k8s.io/v1"),
        (review(None), "register CREATE and UPDATE"),
        (review({}, "CONNECT"), "not at CONNECT"),
    ],
)
def test_what_is_no_review_is_answered_with_advice(body: dict[str, Any], advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        webhooks.reviewed(DEFAULTING, body)


@contextmanager
def served(authority: Authority) -> Iterator[str]:
    """The webhooks in a thread: the sandbox's server waits for them as a whole, as it does for nobody else."""
    certificate = authority.server("127.0.0.1")
    loop = asyncio.new_event_loop()
    over, urls = asyncio.Event(), []
    listening = threading.Event()

    async def serve() -> None:
        async with webhooks.served(certificate.certificate, certificate.key) as url:
            urls.append(url)
            listening.set()
            await over.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert listening.wait(10), "the webhooks do not listen"
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[tuple[ControlPlane, Connection]]:
    """A control plane on which the webhooks are registered."""
    authority = Authority("webhooks")
    async with control_plane(tmp_path) as (plane, connection):
        with served(authority) as url:
            await registration.register(connection, url, authority.certificate)
            yield plane, connection


async def test_an_api_server_gets_defaults_refusals_and_pods_that_know_their_group(
    plane: tuple[ControlPlane, Connection],
) -> None:
    server = plane[0].server
    made = server.create(LEADER_WORKER_SETS, lws(group={"restartPolicy": "Default"}))
    assert made["spec"]["leaderWorkerTemplate"]["restartPolicy"] == "None"
    with refused(
        403, "Forbidden", 'admission webhook "vleaderworkerset.kb.io" denied the request: spec.rolloutStrategy'
    ):
        stuck = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}}
        server.create(LEADER_WORKER_SETS, lws("stuck", rolloutStrategy=stuck))
    labels = {LWS_NAME: "demo", f"{PREFIX}worker-index": "0"}
    leader = server.create(PODS, pod("demo-1", labels=labels, annotations={f"{PREFIX}size": "2"}))
    assert leader["metadata"]["labels"][f"{PREFIX}group-index"] == "1"
    assert leader["spec"]["containers"][0]["env"][0]["name"] == "LWS_LEADER_ADDRESS"
    assert "env" not in server.create(PODS, pod("other-0"))["spec"]["containers"][0]


async def test_webhooks_that_are_not_called_are_told_of(tmp_path: Path) -> None:
    authority = Authority("webhooks")
    async with control_plane(tmp_path) as (plane, connection):
        plane.server.admission.clear()
        with pytest.raises(TimeoutError, match=r"are not called 0\.1 s after .*restartPolicy is Default"):
            await registration.register(connection, "https://127.0.0.1:1", authority.certificate, timeout=0.1)


async def test_bad_requests_are_answered_over_the_wire() -> None:
    authority = Authority("webhooks")
    certificate = authority.server("127.0.0.1")
    async with webhooks.served(certificate.certificate, certificate.key) as url, aiohttp.ClientSession() as session:
        for body in (b"{", b"[]", b"{}"):
            async with session.post(url + POD.path, data=body, ssl=False) as answer:
                assert answer.status == 400
                assert (await answer.text()).count("\n") == 1
