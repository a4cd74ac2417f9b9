"""The audit log's lines become entries: one a request, whatever the server wrote of it in between."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.objects.json_patch import operations
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.objects.writes import Patch
from tests.e2e import audit
from tests.e2e.audit import Entry
from tests.e2e.cluster import CONTROLLER as BOUND
from tests.e2e.cluster import beyond_the_role, invalid

CONTROLLER = "system:serviceaccount:rollouts:controller"
NINE = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)


def line(audit_id: str, second: int, stage: str, verb: str, code: int | None, **reference: str) -> str:
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": audit_id,
        "stage": stage,
        "requestURI": "/whatever",
        "verb": verb,
        "user": {"username": CONTROLLER, "uid": "7", "groups": ["system:authenticated"]},
        "sourceIPs": ["127.0.0.1"],
        "requestReceivedTimestamp": f"2026-11-02T09:00:{second:02}.000000Z",
        "stageTimestamp": "2026-11-02T09:00:59.000000Z",
    }
    if reference:
        event["objectRef"] = reference
    if code is not None:
        event["responseStatus"] = {"metadata": {}, "code": code}
    return json.dumps(event) + "\n"


LWS = {"resource": "leaderworkersets", "apiGroup": "leaderworkerset.x-k8s.io", "apiVersion": "v1"}
SAMPLE = "".join(
    [
        line("a", 2, "ResponseComplete", "patch", 409, **LWS, namespace="chat", name="llama"),
        # A watch that is still open, and one that has ended.
        line("b", 0, "ResponseStarted", "watch", 200, resource="pods", apiVersion="v1"),
        line("c", 1, "ResponseStarted", "watch", 200, **LWS),
        line("c", 1, "ResponseComplete", "watch", 200, **LWS),
        line("d", 3, "ResponseComplete", "update", 200, **LWS, namespace="chat", name="llama", subresource="status"),
        line("e", 4, "ResponseComplete", "get", 200),
    ]
)


def entry(
    second: int, verb: str, resource: str, namespace: str, name: str, code: int, subresource: str = "", **more: Any
) -> Entry:
    return Entry(NINE.replace(second=second), CONTROLLER, verb, resource, subresource, namespace, name, code, **more)


def test_each_request_is_one_entry_in_the_order_of_coming_in(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(SAMPLE)
    sets = "leaderworkersets.leaderworkerset.x-k8s.io"
    entries = audit.read(log)
    assert entries == [
        entry(0, "watch", "pods", "", "", 200, is_open=True),
        entry(1, "watch", sets, "", "", 200),
        entry(2, "patch", sets, "chat", "llama", 409),
        entry(3, "update", sets, "chat", "llama", 200, "status"),
        entry(4, "get", "", "", "", 200),
    ]
    assert [each.verb for each in entries if each.is_write] == ["patch", "update"]
    assert [each.verb for each in entries if each.was_refused] == ["patch"]


def test_a_line_that_is_still_being_written_is_not_there_yet(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(SAMPLE[:-20])
    assert len(audit.read(log)) == 4


def test_a_line_that_is_no_event_is_named(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(SAMPLE + '{"kind": "Event"}\n')
    with pytest.raises(audit.Unaudited, match=r"audit\.log:7 is no audit event .*auditID"):
        audit.read(log)


def test_a_policy_without_users_is_not_a_policy_for_everybody() -> None:
    assert audit.policy([])["rules"] == [{"level": "None"}]
    *_, theirs, others = rules(["b", "a"])
    assert (theirs, others) == ({"level": "Metadata", "users": ["a", "b"]}, {"level": "None"})


def test_a_policy_has_bodies_only_of_what_is_asked_for_in_full_and_of_windows() -> None:
    everybodys, windows, *_ = rules(["a"], [PODS])
    assert [each["resources"] for each in everybodys["resources"]] == [["pods", "pods/status"]]
    assert (everybodys["level"], "users" in everybodys) == ("RequestResponse", False)
    assert [each["resources"][0] for each in windows["resources"]] == ["leaderworkersets"]
    assert (windows["level"], windows["users"]) == ("Request", ["a"])


def rules(*asked: Any) -> list[dict[str, Any]]:
    found: Any = audit.policy(*asked)["rules"]
    return list(found)


def test_a_json_patch_is_read_as_the_merge_patch_that_it_was_made_of(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    event = json.loads(line("a", 1, "ResponseComplete", "patch", 200, **LWS, namespace="chat", name="llama"))
    body = {"spec": {"replicas": 3}, "metadata": {"annotations": {"a/b": None}}}
    patch = Patch(LEADER_WORKER_SETS, "chat", "llama", body, "why", uid="u1", generation=2)
    log.write_text(json.dumps({**event, "requestObject": operations(patch)}) + "\n")
    assert [each.body for each in audit.read(log)] == [body]


def test_what_the_role_does_not_grant_or_the_server_forbade_is_found(tmp_path: Path) -> None:
    secrets = {"resource": "secrets", "apiVersion": "v1"}
    lines = (
        line("a", 1, "ResponseComplete", "patch", 200, **LWS, namespace="chat", name="llama"),
        line("b", 2, "ResponseComplete", "patch", 403, **LWS, namespace="chat", name="llama"),
        line("c", 3, "ResponseComplete", "delete", 200, **LWS, namespace="chat", name="llama", subresource="status"),
        line("d", 4, "ResponseComplete", "get", 200, **secrets, namespace="chat", name="token"),
    )
    log = tmp_path / "audit.log"
    log.write_text("".join(lines).replace(CONTROLLER, BOUND))
    assert [each.at.second for each in beyond_the_role(log)] == [2, 3, 4]


def test_what_the_server_found_invalid_is_found_but_for_what_came_too_late(tmp_path: Path) -> None:
    refused = json.loads(line("a", 1, "ResponseComplete", "patch", 422, **LWS, namespace="chat", name="llama"))
    late = json.loads(line("b", 2, "ResponseComplete", "patch", 422, **LWS, namespace="chat", name="llama"))
    late["responseStatus"]["message"] = "the server rejected our request due to an error in our request"
    log = tmp_path / "audit.log"
    log.write_text("".join(f"{json.dumps(each)}\n" for each in (refused, late)).replace(CONTROLLER, BOUND))
    assert [each.at.second for each in invalid(log)] == [1]


def test_a_log_in_which_the_controller_asked_nothing_proves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(SAMPLE)
    with pytest.raises(AssertionError, match="empty"):
        beyond_the_role(log)
