"""SelfSubjectAccessReviews of the sandbox: everything is allowed but what a fault forbids."""

from __future__ import annotations

import json

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import SELF_SUBJECT_ACCESS_REVIEWS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Effect
from rollout_lws.sandbox.request_pipeline import Gate
from rollout_lws.sandbox.routes import Request


async def allowed(gate: Gate, verb: str, resource: str) -> bool:
    body = {"spec": {"resourceAttributes": {"verb": verb, "resource": resource, "group": "", "namespace": "default"}}}
    asked = Request("POST", SELF_SUBJECT_ACCESS_REVIEWS.path(), body=json.dumps(body).encode())
    answer = await gate.answer(asked)
    assert answer.status == 201
    return bool(json.loads(answer.body)["status"]["allowed"])


@pytest.fixture
def gate() -> Gate:
    return Gate(ApiServer(lambda: 0.0))


async def test_the_user_may_do_everything(gate: Gate) -> None:
    assert await allowed(gate, "patch", "pods")


async def test_what_is_forbidden_for_good_is_said_to_be(gate: Gate) -> None:
    rule = gate.faults.add(Effect(refusal=ApiError(403, "Forbidden", "no")), "patch", "pods", count=None)
    assert not await allowed(gate, "patch", "pods")
    assert await allowed(gate, "get", "pods")
    assert await allowed(gate, "patch", "services")
    assert rule.seen == 0
    gate.faults.restore()
    assert await allowed(gate, "patch", "pods")


async def test_a_fault_that_passes_is_no_missing_permission(gate: Gate) -> None:
    gate.faults.add(Effect(refusal=ApiError(403, "Forbidden", "no")), "patch", "pods")
    gate.faults.refuse(503, "patch", "pods", count=None)
    assert await allowed(gate, "patch", "pods")
