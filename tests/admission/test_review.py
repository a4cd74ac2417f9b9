"""AdmissionReview v1: what is read of one, what is answered, and what is no question at all."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from rollout_lws.admission.review import ALLOWED, BadReview, Outcome, Response, answer, denied, failed, read, warned


def review(**members: Any) -> bytes:
    asked = {"uid": "1", "operation": "UPDATE", "name": "llama", "namespace": "prod", **members.pop("request", {})}
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked, **members}
    ).encode()


def test_a_request_is_read_with_objects_as_they_came() -> None:
    found = read(
        review(request={"userInfo": {"username": "ann", "groups": []}, "object": {"a": [1]}, "oldObject": None})
    )
    assert (found.uid, found.operation, found.namespace, found.name) == ("1", "UPDATE", "prod", "llama")
    assert found.user_info.username == "ann"
    assert (bytes(found.object), bytes(found.old_object)) == (b'{"a": [1]}', b"null")
    assert bytes(read(review()).object) == b"null"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "no AdmissionReview: "),
        (b"[]", "no AdmissionReview: "),
        (b"\xff", "no AdmissionReview: "),
        (b'{"request": ' + b"[" * 100_000, "no AdmissionReview: "),
        (b'{"request": {"uid": "1", "operation": "", "object": ' + b"[" * 100_000, "no AdmissionReview: "),
        (b"{}", "it of no version: send AdmissionReview of admission.k8s.io/v1"),
        (review(apiVersion="admission.k8s.io/v1beta1"), "AdmissionReview of admission.k8s.io/v1beta1: send Admis"),
        (review(kind="ConversionReview"), "ConversionReview of admission.k8s.io/v1: send AdmissionReview of"),
        (review(request={"uid": ""}), "the AdmissionReview has no request with a uid"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', "the AdmissionReview has no request"),
    ],
)
def test_what_is_no_question_is_told_in_a_line(body: bytes, told: str) -> None:
    with pytest.raises(BadReview) as refused:
        read(body)
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


def answered(response: Response) -> dict[str, Any]:
    found = json.loads(answer("1", response))
    assert (found["apiVersion"], found["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = found["response"]
    assert response.pop("uid") == "1"
    return response


def test_each_verdict_has_its_answer() -> None:
    assert answered(ALLOWED) == {"allowed": True}
    assert answered(denied("no: do that")) == {
        "allowed": False,
        "status": {"code": 403, "reason": "Forbidden", "message": "no: do that"},
    }
    assert answered(warned("mind this")) == {"allowed": True, "warnings": ["mind this"]}
    assert answered(failed("it sleeps")) == {
        "allowed": True,
        "warnings": ["the guard of rollout-lws has not judged this: it sleeps"],
    }
    operation = {"op": "add", "path": "/spec/replicas", "value": 2}
    repaired = answered(Response(Outcome.REPAIRED, patch=(operation,)))
    assert (repaired["allowed"], repaired["patchType"]) == (True, "JSONPatch")
    assert json.loads(base64.b64decode(repaired["patch"])) == [operation]


def test_a_warning_is_one_line_that_api_servers_pass_on() -> None:
    (told,) = answered(warned("a\n" + "ö" * 300))["warnings"]
    assert told.startswith("a ö")
    assert told.endswith("ö...")
    assert len(told.encode()) <= 256
