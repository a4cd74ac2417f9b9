"""Requests: what goes over the wire for each write, what comes back as an error, and what is tried again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.kube.status import deleted_uid, of_error_event, refused
from rollout_lws.objects.resources import PODS, SERVICES, Resource
from rollout_lws.objects.writes import Confirm, Create, Delete, Patch, Replace, Write
from tests.kube.fakes import FakeTransport, Reply, ok, pod, refusal

pytestmark = pytest.mark.looptime

_BUSY = refusal(429, "TooManyRequests", headers={"retry-after": "3"})


def merge(version: str | None = None) -> Patch:
    return Patch(PODS, "ns", "a", {"metadata": {"labels": {"x": "y"}}}, "why", resource_version=version)


async def test_a_patch_is_a_merge_patch_and_carries_its_precondition_beside_its_own_metadata() -> None:
    transport = FakeTransport(ok(pod("a", 2)))
    patch = merge("1")
    assert b'"resourceVersion"' in await Client(transport).send(patch)
    asked = transport.requests[0]
    assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/ns/pods/a")
    assert asked.content_type == "application/merge-patch+json"
    assert asked.params == {"fieldManager": "rollout-lws"}
    assert asked.body == {"metadata": {"labels": {"x": "y"}, "resourceVersion": "1"}}
    assert "resourceVersion" not in patch.body["metadata"], "the decided value was changed"


async def test_a_patch_of_a_generation_tests_it_and_fails_like_a_conflict_when_the_spec_has_changed() -> None:
    patch = Patch(PODS, "ns", "a", {"spec": {"x": 1}}, "why", uid="u1", generation=3)
    changed, without, same = (
        {"metadata": {"name": "a", "uid": "u1", "generation": number}} | more
        for number, more in ((4, {}), (3, {}), (3, {"spec": {}}))
    )
    invalid = refusal(422, "Invalid", "the server rejected our request due to an error in our request")
    transport = FakeTransport(ok(same), invalid, ok(changed), invalid, ok(without), invalid, ok(same))
    client = Client(transport)
    await client.send(patch)
    asked = transport.requests[0]
    assert (asked.method, asked.content_type) == ("PATCH", "application/json-patch+json")
    assert asked.body == [
        {"op": "test", "path": "/metadata/uid", "value": "u1"},
        {"op": "test", "path": "/metadata/generation", "value": 3},
        {"op": "add", "path": "/spec/x", "value": 1},
    ]
    for code in (409, 409, 422):
        with pytest.raises(ApiError) as caught:
            await client.send(patch)
        assert caught.value.code == code
    for foreign in ({"kind": "Status"}, {"metadata": None}, ["a"]):
        with pytest.raises(Unreachable, match="not an API server's"):
            await Client(FakeTransport(invalid, ok(foreign))).send(patch)


async def test_a_patch_without_a_version_is_unconditional_and_may_go_to_a_subresource() -> None:
    transport = FakeTransport(ok({}))
    await Client(transport).send(Patch(PODS, "ns", "a", {"status": {}}, "why", subresource="status"))
    assert transport.requests[0].path == "/api/v1/namespaces/ns/pods/a/status"
    assert transport.requests[0].body == {"status": {}}


async def test_create_and_replace_go_to_collection_and_object() -> None:
    transport = FakeTransport(ok({}, 201), ok({}))
    client = Client(transport, field_manager="me")
    body = {"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "4"}}
    await client.send(Create(SERVICES, body, "why"))
    await client.send(Replace(SERVICES, body, "why"))
    assert [(each.method, each.path) for each in transport.requests] == [
        ("POST", "/api/v1/namespaces/ns/services"),
        ("PUT", "/api/v1/namespaces/ns/services/a"),
    ]
    assert all(each.body == body and each.params == {"fieldManager": "me"} for each in transport.requests)


async def test_a_delete_names_the_object_it_means() -> None:
    transport = FakeTransport(ok({}), ok({}))
    client = Client(transport)
    await client.send(Delete(PODS, "ns", "a", "u1", "why"))
    await client.send(Delete(PODS, "ns", "a", "u1", "why", resource_version="7", propagation="Orphan", grace_seconds=0))
    first, second = (each.body for each in transport.requests)
    assert first["preconditions"] == {"uid": "u1"}
    assert "gracePeriodSeconds" not in first
    assert second["preconditions"] == {"uid": "u1", "resourceVersion": "7"}
    assert (second["propagationPolicy"], second["gracePeriodSeconds"]) == ("Orphan", 0)


async def test_a_confirmation_writes_nothing_and_conflicts_when_the_object_has_moved_on() -> None:
    live = {"metadata": {"name": "a", "uid": "u1", "generation": 3}}
    transport = FakeTransport(ok(live), ok(live), ok(live))
    client = Client(transport)
    await client.send(Confirm(PODS, "ns", "a", "u1", 3, "why"))
    for uid, generation in (("u1", 2), ("u0", 3)):
        with pytest.raises(ApiError) as caught:
            await client.send(Confirm(PODS, "ns", "a", uid, generation, "why"))
        assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert {each.method for each in transport.requests} == {"GET"}


CONFIRM = Confirm(PODS, "ns", "a", "u1", 3, "why")
CONDITIONAL = Patch(PODS, "ns", "a", {"spec": {"x": 1}}, "why", uid="u1", generation=3)


@pytest.mark.parametrize(
    "answer",
    [b'{"metadata":{"name":"a","uid":"u', b'{"metadata":{"uid":"\xff"}}', b"<html>log in</html>", b"[]", b""],
    ids=["half of it", "no text", "a page", "no object", "nothing"],
)
@pytest.mark.parametrize(
    ("write", "before"), [(CONFIRM, ()), (CONDITIONAL, (refusal(422, "Invalid"),))], ids=["confirm", "patch"]
)
async def test_an_answer_that_is_none_of_an_api_servers_is_no_answer(
    write: Write, before: tuple[Reply, ...], answer: bytes
) -> None:
    client = Client(FakeTransport(*before, Reply(200, answer)))
    with pytest.raises(Unreachable, match="pods a: the answer is not an API server's"):
        await client.send(write)


async def test_a_refusal_is_raised_with_what_the_status_says() -> None:
    transport = FakeTransport(refusal(409, "Conflict", "the object has been modified"))
    with pytest.raises(ApiError, match="the object has been modified") as caught:
        await Client(transport).send(merge())
    assert (caught.value.code, caught.value.reason, caught.value.retry_after) == (409, "Conflict", None)


@pytest.mark.parametrize("failure", [_BUSY, refusal(503, "ServiceUnavailable"), Unreachable("cut")])
async def test_a_write_is_sent_once_whatever_happens(failure: Reply | Exception) -> None:
    transport = FakeTransport(failure, ok({}))
    with pytest.raises((ApiError, Unreachable)):
        await Client(transport).send(merge())
    assert len(transport.requests) == 1


async def test_a_read_waits_as_long_as_retry_after_says_and_no_longer_the_next_time() -> None:
    transport = FakeTransport(_BUSY, refusal(500, "InternalError"), ok(pod("a", 1)))
    await Client(transport).get(PODS, "ns", "a")
    first, second, third = (each.at for each in transport.requests)
    assert second - first == pytest.approx(3.0, abs=0.01)
    assert third - second == pytest.approx(0.3, abs=0.01)


async def test_a_read_outlives_a_cut_connection() -> None:
    transport = FakeTransport(Unreachable("cut"), ok(pod("a", 1)))
    assert b"uid-a" in await Client(transport).get(PODS, "ns", "a")


async def test_a_read_gives_up_after_four_tries() -> None:
    transport = FakeTransport(*[refusal(503, "ServiceUnavailable")] * 5)
    with pytest.raises(ApiError):
        await Client(transport).list(PODS)
    assert len(transport.requests) == 4


@pytest.mark.parametrize(
    "failure",
    [refusal(404, "NotFound"), refusal(403, "Forbidden"), refusal(429, "Busy", headers={"retry-after": "60"})],
)
async def test_a_read_is_not_repeated_where_waiting_does_not_help_or_takes_too_long(failure: Reply) -> None:
    transport = FakeTransport(failure, ok({}))
    with pytest.raises(ApiError):
        await Client(transport).get(PODS, "ns", "a")
    assert len(transport.requests) == 1


async def test_a_crowd_of_reads_takes_turns_and_a_write_goes_before_those_that_wait() -> None:
    class Slow(FakeTransport):
        at_once = most = 0

        async def request(self, method: str, *arguments: Any, **words: Any) -> Reply:
            self.at_once += method == "GET"
            self.most = max(self.most, self.at_once)
            await asyncio.sleep(1)
            self.at_once -= method == "GET"
            return await super().request(method, *arguments, **words)

    transport = Slow(*(ok(pod("a", 2)) for _ in range(101)))
    client = Client(transport)
    reads = [asyncio.create_task(client.list(PODS, "ns")) for _ in range(100)]
    await asyncio.sleep(0.5)
    await client.send(merge())
    assert len(transport.requests) < 40
    assert 8 <= transport.most <= 32
    await asyncio.gather(*reads)
    assert len(transport.requests) == 101


async def test_each_request_is_observed_with_its_code_or_none() -> None:
    seen: list[tuple[str, str, int]] = []

    def observe(verb: str, resource: Resource, code: int, seconds: float) -> None:
        assert seconds >= 0
        seen.append((verb, str(resource), code))

    transport = FakeTransport(refusal(500, "InternalError"), ok({}), ok({}), Unreachable("cut"))
    client = Client(transport, observe=observe)
    await client.list(PODS)
    writes: list[Write] = [merge(), Delete(PODS, "ns", "a", "u1", "why")]
    await client.send(writes[0])
    with pytest.raises(Unreachable):
        await client.send(writes[1])
    assert seen == [("list", "pods", 500), ("list", "pods", 200), ("patch", "pods", 200), ("delete", "pods", 0)]


def test_a_proxys_page_becomes_one_sentence_without_html() -> None:
    error = refused(502, {"content-type": "text/html"}, b"<html><body><h1>502 Bad Gateway</h1></body></html>")
    assert (error.code, error.reason) == (502, "")
    assert "HTTP 502 Bad Gateway" in error.message and "<" not in error.message


@pytest.mark.parametrize(
    ("body", "said"), [(b"", "HTTP 404 Not Found"), (b"404 page\n not found\n", "404 page not found")]
)
def test_an_answer_without_a_status_still_says_something(body: bytes, said: str) -> None:
    assert said in refused(404, {}, body).message


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [("2", None, 2.0), ("", 5, 5.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 4, 4.0), ("", None, None)],
)
def test_retry_after_is_read_from_the_header_or_the_status(
    header: str, details: int | None, seconds: float | None
) -> None:
    detail = b"" if details is None else b',"details":{"retryAfterSeconds":%d}' % details
    body = b'{"kind":"Status","reason":"TooManyRequests","message":"busy"%s}' % detail
    assert refused(429, {"retry-after": header} if header else {}, body).retry_after == seconds


def test_an_error_event_is_an_error_with_its_code() -> None:
    error = of_error_event(b'{"kind":"Status","status":"Failure","code":410,"reason":"Expired","message":"too old"}')
    assert (error.code, error.reason, error.message) == (410, "Expired", "too old")


@pytest.mark.parametrize(
    ("answer", "uid"),
    [
        (b'{"kind":"Status","status":"Success","details":{"name":"a","uid":"u1"}}', "u1"),
        (b'{"kind":"Status","status":"Success","details":{"name":"a"}}', ""),
        (b'{"kind":"Status","status":"Failure","details":{"name":"a","uid":"u1"}}', ""),
        (b'{"kind":"Pod","metadata":{"uid":"u1"},"status":{"phase":"Running"}}', ""),
        (b"not json", ""),
    ],
)
def test_only_a_success_status_with_a_uid_says_that_an_object_is_gone(answer: bytes, uid: str) -> None:
    assert deleted_uid(answer) == uid


@pytest.mark.parametrize("body", [b'{"message":"\xff"}', b'{"message":"x'])
def test_a_refusal_that_cannot_be_read_is_one_all_the_same(body: bytes) -> None:
    assert refused(500, {}, body).code == 500
    assert deleted_uid(body) == ""
