"""What becomes of a decision's writes: their order, what the caches learn, and what each kind of failure means."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from rollout_lws.controller.apply import Failure, Next, advice, carry_out, classify, refused, target
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS, Resource
from rollout_lws.objects.writes import Confirm, Create, Delete, Patch, Write
from rollout_lws.rollout.decision import BestEffort, Decision, ReleaseEvent

CREATE = Create(LEADER_WORKER_SETS, {"metadata": {"name": "llama-canary", "namespace": "prod"}}, "one more group")
PATCH = Patch(LEADER_WORKER_SETS, "prod", "llama", {"spec": {}}, "hold", resource_version="7")
STATUS = Patch(LEADER_WORKER_SETS, "prod", "llama", {"status": {}}, "tell", subresource="status")
DELETE = Delete(LEADER_WORKER_SETS, "prod", "llama-canary", "u1", "done with it")
LABEL = Patch(PODS, "prod", "llama-0", {"metadata": {"labels": {"a": "b"}}}, "mark")
OTHER_LABEL = Patch(PODS, "prod", "llama-1", {"metadata": {"labels": {"a": "b"}}}, "mark")


class Server:
    """Answers each write with its name, unless told to fail that one with an error."""

    def __init__(self, failing: Write | None = None, error: Exception | None = None) -> None:
        self._failing = failing
        self._error = error
        self.sent: list[str] = []
        self.absorbed: list[tuple[Resource, bytes]] = []
        self.written: list[str] = []
        self.told: list[tuple[str, int]] = []

    async def send(self, write: Write) -> bytes:
        self.sent.append(target(write))
        if write is self._failing and self._error is not None:
            raise self._error
        return target(write).encode()

    async def carry_out(self, decision: Decision) -> Failure | None:
        return await carry_out(
            decision,
            self,
            lambda resource, answer: self.absorbed.append((resource, answer)),
            lambda write: self.written.append(target(write)),
            lambda event: self.told.append((event.reason, len(self.written))),
        )


async def test_writes_are_sent_in_order_and_each_answer_enters_the_cache() -> None:
    server = Server()
    assert await server.carry_out(Decision(writes=(CREATE, PATCH, DELETE), best_effort=(BestEffort(LABEL),))) is None
    assert server.sent == [
        "leaderworkersets.leaderworkerset.x-k8s.io/prod/llama-canary",
        "leaderworkersets.leaderworkerset.x-k8s.io/prod/llama",
        "leaderworkersets.leaderworkerset.x-k8s.io/prod/llama-canary",
        "pods/prod/llama-0",
    ]
    assert [answer.decode() for _, answer in server.absorbed] == server.sent
    assert server.written == server.sent


SEEN = {"metadata": {"uid": "u1"}, "status": {"phase": "Healthy", "message": "before"}}
TOLD = replace(STATUS, body={"status": {"phase": "Progressing"}}, resource_version="7", over=SEEN)


class Touched(Server):
    """Somebody has left the object whose status is written as ``live``, at another version each time."""

    def __init__(self, live: dict[str, Any]) -> None:
        super().__init__()
        self.versions: list[str | None] = []
        self._live = live

    async def send(self, write: Write) -> bytes:
        if isinstance(write, Patch) and not write.body:
            assert (write.subresource, write.resource_version) == ("status", None)
            return json.dumps(self._live).encode()
        if isinstance(write, Patch) and write.subresource:
            self.versions.append(write.resource_version)
            if write.resource_version != "8":
                raise ApiError(409, "Conflict", "modified")
        return await super().send(write)


@pytest.mark.parametrize(
    ("writes", "uid", "status", "versions"),
    [
        ((PATCH, TOLD), "u1", {"phase": "Healthy", "message": "before"}, ["7", "8"]),
        ((PATCH, TOLD), "u1", {"phase": "Healthy", "requestedAction": {"type": "Abort"}}, ["7", "8"]),
        # Nothing was done that it would have to tell of; what it changes was changed; it is another object.
        ((TOLD, PATCH), "u1", {"phase": "Healthy"}, ["7"]),
        ((PATCH, TOLD), "u1", {"phase": "Paused"}, ["7"]),
        ((PATCH, TOLD), "u2", {"phase": "Healthy"}, ["7"]),
        ((PATCH, replace(TOLD, over=None)), "u1", {"phase": "Healthy"}, ["7"]),
    ],
)
async def test_what_was_done_is_on_record_whoever_touches_the_object_meanwhile(
    writes: tuple[Write, ...], uid: str, status: dict[str, Any], versions: list[str]
) -> None:
    server = Touched({"metadata": {"uid": uid, "resourceVersion": "8"}, "status": status})
    failure = await server.carry_out(Decision(writes=writes, events=(ReleaseEvent("Told", "a", "Normal", "Rollout"),)))
    assert server.versions == versions
    assert (failure is None, len(server.told)) == ((True, 1) if len(versions) == 2 else (False, 0))


@pytest.mark.parametrize(
    "answer", [b'{"metadata":{"uid":"u', b'{"kind":"Status"}', b"<html>", b'{"metadata":{}}', b"[]"]
)
async def test_an_answer_that_is_no_api_servers_is_none_and_the_decision_is_tried_again(answer: bytes) -> None:
    class Foreign(Touched):
        async def send(self, write: Write) -> bytes:
            return answer if isinstance(write, Patch) and not write.body else await super().send(write)

    failure = await Foreign({}).carry_out(Decision(writes=(PATCH, TOLD)))
    assert failure is not None
    assert (type(failure.error), failure.next) == (Unreachable, Next.BACK_OFF)


async def test_who_is_cancelled_finishes_the_write_at_hand_and_begins_no_other() -> None:
    answered: list[str] = []

    class Slow(Server):
        async def send(self, write: Write) -> bytes:
            self.sent.append(target(write))
            await asyncio.sleep(0.05)
            answered.append(target(write))
            return b""

    server = Slow()
    worker = asyncio.create_task(server.carry_out(Decision(writes=(CREATE, PATCH))))
    await asyncio.sleep(0.01)
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    assert server.sent == answered == [target(CREATE)]


async def test_nothing_is_sent_after_the_first_write_that_fails() -> None:
    server = Server(PATCH, ApiError(409, "Conflict", "stale"))
    failure = await server.carry_out(Decision(writes=(CREATE, PATCH, DELETE), best_effort=(BestEffort(LABEL),)))
    assert failure is not None
    assert failure.write is PATCH
    assert server.written == ["leaderworkersets.leaderworkerset.x-k8s.io/prod/llama-canary"]
    assert len(server.sent) == 2


async def test_deleting_what_is_gone_already_goes_on_with_the_next_write() -> None:
    server = Server(DELETE, ApiError(404, "NotFound", "gone"))
    assert await server.carry_out(Decision(writes=(DELETE, PATCH))) is None
    assert server.written == ["leaderworkersets.leaderworkerset.x-k8s.io/prod/llama"]


async def test_a_label_that_fails_neither_fails_the_decision_nor_keeps_the_others_back() -> None:
    server = Server(LABEL, ApiError(404, "NotFound", "gone"))
    assert await server.carry_out(Decision(best_effort=(BestEffort(LABEL), BestEffort(OTHER_LABEL)))) is None
    assert server.written == ["pods/prod/llama-1"]


async def test_the_event_of_a_best_effort_write_is_written_only_when_it_was_carried_out() -> None:
    best_effort = (
        BestEffort(LABEL, ReleaseEvent("Restored", "a")),
        BestEffort(OTHER_LABEL, ReleaseEvent("Restored", "b")),
    )
    server = Server(LABEL, ApiError(403, "Forbidden", "admission webhook denied the request: frozen"))
    assert await server.carry_out(Decision(best_effort=best_effort)) is None
    assert (server.written, server.told) == (["pods/prod/llama-1"], [("Restored", 1)])


async def test_best_effort_writes_that_no_role_allows_are_not_tried_one_by_one_and_keep_no_others_back() -> None:
    server = Server(LABEL, ApiError(403, "Forbidden", 'User "x" cannot patch resource "pods" in API group ""'))
    assert (
        await server.carry_out(Decision(best_effort=(BestEffort(LABEL), BestEffort(OTHER_LABEL), BestEffort(PATCH))))
        is None
    )
    assert server.sent == ["pods/prod/llama-0", target(PATCH)]


async def test_what_a_confirmation_precedes_is_left_when_it_fails() -> None:
    confirm = Confirm(LEADER_WORKER_SETS, "prod", "llama", "uid", 1, "as it was seen")
    server = Server(confirm, ApiError(409, "Conflict", "changed"))
    assert await server.carry_out(Decision(best_effort=(BestEffort(confirm), BestEffort(DELETE)))) is None
    assert server.written == []


async def test_labels_are_left_when_the_server_is_away() -> None:
    server = Server(LABEL, Unreachable("cut"))
    assert await server.carry_out(Decision(best_effort=(BestEffort(LABEL), BestEffort(OTHER_LABEL)))) is None
    assert server.sent == ["pods/prod/llama-0"]


NOTED = replace(PATCH, if_invalid=CREATE)
INVALID = ApiError(422, "Invalid", "data: field is immutable")


async def test_a_note_that_is_invalid_is_written_otherwise_and_the_decision_goes_on() -> None:
    server = Server(NOTED, INVALID)
    assert await server.carry_out(Decision(writes=(NOTED, STATUS))) is None
    assert server.written == [target(CREATE), target(STATUS)]
    assert [answer.decode() for _, answer in server.absorbed] == server.written


@pytest.mark.parametrize(
    ("error", "next_"),
    [
        (ApiError(403, "Forbidden", ""), Next.REFUSED),
        (ApiError(409, "Conflict", ""), Next.AT_ONCE),
        (ApiError(503, "ServiceUnavailable", ""), Next.BACK_OFF),
        (Unreachable("cut"), Next.BACK_OFF),
    ],
)
async def test_a_note_that_fails_otherwise_is_a_write_like_any_other(
    error: ApiError | Unreachable, next_: Next
) -> None:
    server = Server(NOTED, error)
    assert await server.carry_out(Decision(writes=(NOTED, STATUS))) == Failure(NOTED, error, next_)
    assert server.written == []


class Invalid(Server):
    """Finds the note invalid, and fails another write."""

    async def send(self, write: Write) -> bytes:
        if write is NOTED:
            raise INVALID
        return await super().send(write)


@pytest.mark.parametrize("error", [ApiError(403, "Forbidden", ""), ApiError(409, "AlreadyExists", "")])
async def test_without_any_note_the_decision_goes_on(error: ApiError) -> None:
    server = Invalid(CREATE, error)
    assert await server.carry_out(Decision(writes=(NOTED, STATUS))) is None
    assert server.written == [target(STATUS)]


async def test_a_note_is_tried_again_where_the_server_is_busy() -> None:
    busy = ApiError(429, "TooManyRequests", "", 1.0)
    failure = await Invalid(CREATE, busy).carry_out(Decision(writes=(NOTED, STATUS)))
    assert failure == Failure(CREATE, busy, Next.BACK_OFF, 1.0)


def test_a_message_that_quotes_a_whole_template_is_told_without_it() -> None:
    text = f'ControllerRevision.apps "m-1" is invalid: data: Invalid value: {"{...}" * 500}: field is immutable'
    failure = classify(ApiError(422, "Invalid", text), PATCH)
    assert failure is not None
    told = refused(failure)
    assert told is not None
    assert len(told.error) <= 610
    assert told.error.startswith('ControllerRevision.apps "m-1" is invalid: data: Invalid value')
    assert told.error.endswith("field is immutable")


@pytest.mark.parametrize(
    ("error", "write", "expected", "after"),
    [
        (ApiError(409, "Conflict", ""), PATCH, Next.AT_ONCE, None),
        (ApiError(409, "AlreadyExists", ""), CREATE, Next.AT_ONCE, None),
        (ApiError(409, "Conflict", "uid differs"), DELETE, Next.AT_ONCE, None),
        (ApiError(404, "NotFound", ""), PATCH, Next.AT_ONCE, None),
        (ApiError(404, "NotFound", ""), DELETE, None, None),
        (ApiError(429, "TooManyRequests", "", 3.0), PATCH, Next.BACK_OFF, 3.0),
        (ApiError(500, "InternalError", ""), PATCH, Next.BACK_OFF, None),
        (ApiError(503, "ServiceUnavailable", "", 1.0), CREATE, Next.BACK_OFF, 1.0),
        (Unreachable("cut"), PATCH, Next.BACK_OFF, None),
        (ApiError(403, "Forbidden", ""), PATCH, Next.REFUSED, None),
        (ApiError(422, "Invalid", ""), CREATE, Next.REFUSED, None),
    ],
)
def test_each_failure_has_one_meaning(
    error: ApiError | Unreachable, write: Write, expected: Next | None, after: float | None
) -> None:
    failure = classify(error, write)
    if expected is None:
        assert failure is None
    else:
        assert failure == Failure(write, error, expected, after)


def test_a_missing_permission_is_named_with_its_subresource() -> None:
    failure = classify(ApiError(403, "Forbidden", "no"), STATUS)
    assert failure is not None
    assert "patch leaderworkersets.leaderworkerset.x-k8s.io/status" in advice(failure)


def test_a_busy_server_needs_no_advice() -> None:
    failure = classify(ApiError(503, "ServiceUnavailable", ""), STATUS)
    assert failure is not None
    assert advice(failure) == ""


ROLLING_BACK = ReleaseEvent("RollingBack", "back to the stable version")


@pytest.mark.parametrize(
    ("events_after", "failing", "told"),
    [
        (None, None, [("RollingBack", 3)]),
        (None, DELETE, []),
        (1, None, [("RollingBack", 1)]),
        (1, DELETE, [("RollingBack", 1)]),
        (1, STATUS, []),
        (3, None, [("RollingBack", 3)]),
        (3, DELETE, []),
    ],
)
async def test_what_is_on_record_is_told_whatever_becomes_of_the_writes_after_it(
    events_after: int | None, failing: Write | None, told: list[tuple[str, int]]
) -> None:
    """No later decision would tell it: by the status it is old news."""
    server = Server(failing, ApiError(409, "Conflict", "it has changed"))
    decision = Decision(writes=(STATUS, PATCH, DELETE), events=(ROLLING_BACK,), events_after=events_after)
    assert (await server.carry_out(decision) is None) == (failing is None)
    assert server.told == told
