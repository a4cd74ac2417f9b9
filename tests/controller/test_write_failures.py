"""What a status is told of writes that fail: a refusal at once, what may pass by itself only when it lasts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rollout_lws.controller.apply import classify
from rollout_lws.controller.write_failures import PATIENCE_SECONDS, WriteFailures
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.objects.permissions import SOURCE
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.objects.writes import Create, Patch, Write
from rollout_lws.rollout.observation import RefusedWrite

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(seconds=PATIENCE_SECONDS)
KEY = "llama"
CREATE = Create(LEADER_WORKER_SETS, {"metadata": {"name": "llama-canary", "namespace": "prod"}}, "two groups")
STATUS = Patch(LEADER_WORKER_SETS, "prod", "llama", {"status": {}}, "tell", subresource="status")


def annotated(*failures: tuple[ApiError | Unreachable, Write, datetime]) -> WriteFailures[str]:
    failing: WriteFailures[str] = WriteFailures()
    for error, write, moment in failures:
        failure = classify(error, write)
        assert failure is not None
        failing.note(KEY, failure, moment)
    return failing


def test_a_refusal_is_told_at_once_with_verb_object_and_permission() -> None:
    told = annotated((ApiError(403, "Forbidden", "no"), CREATE, NOW)).of(KEY, NOW)
    assert told == RefusedWrite(
        what="create LeaderWorkerSet llama-canary",
        error="no",
        advice="To go on, allow the controller's account to create leaderworkersets.leaderworkerset.x-k8s.io in"
        f" namespace prod ({SOURCE}); it is tried again until then",
    )


def test_a_subresource_is_named() -> None:
    told = annotated((ApiError(422, "Invalid", "no"), STATUS, NOW)).of(KEY, NOW)
    assert told is not None
    assert told.what == "patch LeaderWorkerSet llama (status)"


def test_a_busy_server_is_told_only_when_it_stays_busy() -> None:
    error = ApiError(503, "ServiceUnavailable", "busy")
    failing = annotated((error, CREATE, NOW), (error, CREATE, LATER))
    assert failing.of(KEY, LATER - timedelta(seconds=1)) is None
    assert failing.of(KEY, LATER) == RefusedWrite("create LeaderWorkerSet llama-canary", "busy", "")


def test_another_write_that_fails_starts_the_patience_anew() -> None:
    error = ApiError(409, "Conflict", "changed")
    assert annotated((error, CREATE, NOW), (error, STATUS, LATER)).of(KEY, LATER) is None


def test_a_server_that_does_not_answer_tells_nothing() -> None:
    assert annotated((Unreachable("cut"), CREATE, NOW)).of(KEY, LATER) is None


def test_what_went_through_is_forgotten() -> None:
    failing = annotated((ApiError(403, "Forbidden", "no"), CREATE, NOW))
    failing.forget(KEY)
    assert failing.of(KEY, LATER) is None
