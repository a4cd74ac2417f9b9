"""Bodies that no typed client could send: each is refused with a Status, and nothing of it is kept."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.patching.patches import MERGE_PATCH
from rollout_lws.sandbox.rest import Rest
from rollout_lws.sandbox.routes import Request

PODS = "/api/v1/namespaces/default/pods"
SPEC = {"containers": [{"name": "a", "image": "x"}]}


def ask(rest: Rest, method: str, path: str, body: Any, content_type: str = "application/json") -> tuple[int, str]:
    answer = rest.handle(Request(method, path, {}, {"content-type": content_type}, json.dumps(body).encode()))
    return answer.status, json.loads(answer.body)["message"]


@pytest.mark.parametrize(
    ("metadata", "code", "named"),
    [
        ({"name": 5}, 400, "metadata.name"),
        ({"name": "p", "labels": ["a"]}, 400, "metadata.labels"),
        ({"name": "p", "finalizers": "a/b"}, 400, "metadata.finalizers"),
        ({"name": "p", "ownerReferences": [None]}, 422, "metadata.ownerReferences.uid"),
        (
            {"name": "p", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]},
            422,
            'Pod "p" is invalid: metadata.ownerReferences.uid: Invalid value: "": must not be empty',
        ),
    ],
)
def test_metadata_of_another_shape_is_refused_whole(metadata: dict[str, Any], code: int, named: str) -> None:
    server = ApiServer(time.time)
    version = server.store.version
    status, message = ask(Rest(server), "POST", PODS, {"metadata": metadata, "spec": SPEC})
    assert (status, named in message) == (code, True)
    assert server.store.version == version
    assert ask(Rest(server), "GET", f"{PODS}/p", None)[0] == 404


@pytest.mark.parametrize("patch", [5, [], {"metadata": 5}])
def test_a_patch_of_another_shape_is_refused(patch: Any) -> None:
    rest = Rest(ApiServer(time.time))
    rest.handle(Request("POST", PODS, body=json.dumps({"metadata": {"name": "p"}, "spec": SPEC}).encode()))
    assert ask(rest, "PATCH", f"{PODS}/p", patch, MERGE_PATCH)[0] == 400


def test_whatever_else_cannot_be_read_is_an_internal_error_with_a_status() -> None:
    status, message = ask(Rest(ApiServer(time.time)), "POST", PODS, {"metadata": {"name": "p"}, "spec": 5})
    assert (status, message.startswith("Internal error occurred: TypeError")) == (500, True)
