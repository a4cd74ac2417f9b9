"""What pods answer through the API server's proxy: what their annotations say."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.errors import Unreachable
from rollout_lws.kube.transport import Relay
from rollout_lws.objects.resources import PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Effect, Faults
from rollout_lws.sandbox.model_servers import PREFIX as SERVER
from rollout_lws.sandbox.pod_answers import PREFIX
from rollout_lws.sandbox.routes import Response
from rollout_lws.sandbox.transport import DirectTransport

pytestmark = pytest.mark.looptime

ANSWERS = {
    "warm-up": "POST /v1/completions 503",
    "evals": 'GET /evals 200 {"result": "Failed",\n "message": "3 of 40"}',
    "text": "GET /text 200 plain words",
    "broken": "whatever",
    "other-method": "PUT /v1 200",
}


def create_pod(server: ApiServer, *, ready: bool = True, **more: str) -> None:
    annotations = {PREFIX + name: text for name, text in ANSWERS.items()} | more
    server.create(
        PODS,
        {
            "metadata": {"name": "a", "namespace": "default", "annotations": annotations},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    )
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    server.patch(PODS, "default", "a", {"status": status}, subresource="status")


async def ask(server: ApiServer, method: str, path: str, faults: Faults | None = None) -> Response:
    relay = Relay(method, {}, b"{}" if method == "POST" else None, 5.0, 1024)
    return await DirectTransport(server, faults).relay(f"/api/v1/namespaces/default/pods/a%3A8000/proxy{path}", relay)


@pytest.mark.parametrize(
    ("method", "path", "answer"),
    [
        ("POST", "/v1/completions", (503, b"", "text/plain")),
        ("GET", "/evals", (200, b'{"result": "Failed",\n "message": "3 of 40"}', "application/json")),
        ("GET", "/text", (200, b"plain words", "text/plain")),
    ],
)
async def test_what_annotations_say(server: ApiServer, method: str, path: str, answer: Any) -> None:
    create_pod(server)
    told = await ask(server, method, path)
    assert (told.status, told.body, told.headers["content-type"]) == answer


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/completions"), ("POST", "/evals"), ("GET", "/")])
async def test_what_they_do_not_say_no_pod_answers(server: ApiServer, method: str, path: str) -> None:
    create_pod(server)
    told = await ask(server, method, path)
    assert (told.status, b"error trying to reach pod a" in told.body) == (503, True)


async def test_a_model_server_answers_what_annotations_do_not(server: ApiServer) -> None:
    create_pod(server, **{f"{SERVER}engine": "vLLM"})
    assert (await ask(server, "GET", "/metrics")).status == 200
    assert (await ask(server, "POST", "/metrics")).status == 404
    assert (await ask(server, "POST", "/v1/completions")).status == 503


async def test_a_pod_that_is_not_ready_answers_nothing(server: ApiServer) -> None:
    create_pod(server, ready=False)
    assert b"error trying to reach pod a" in (await ask(server, "GET", "/evals")).body


async def test_a_request_for_a_pod_may_be_refused_or_late(server: ApiServer) -> None:
    create_pod(server)
    faults = Faults()
    faults.refuse(503, "create", "pods/proxy")
    assert b"unable to handle" in (await ask(server, "POST", "/v1/completions", faults)).body
    faults.add(Effect(delay=6), "get", "pods/proxy")
    with pytest.raises(Unreachable, match="got no answer in 5 s"):
        await ask(server, "GET", "/evals", faults)
