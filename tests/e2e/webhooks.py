"""LeaderWorkerSet's webhooks as a real API server calls them: AdmissionReview v1 over TLS.

Inside the sandbox they are functions that the server calls. The rules are the same ones here; this is the wire.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, PODS, Resource
from rollout_lws.sandbox.apiserver import Operation
from rollout_lws.sandbox.behaviours.lws import admission, pod_admission
from tests.json_patch import json_patch

#: Largest review that is read: it holds the old object and the new one, each at most what etcd takes.
_LARGEST_BODY = 8 * 2**20
_VERBS = {"CREATE": "create", "UPDATE": "update"}


@dataclass(frozen=True, slots=True)
class Webhook:
    """One registered webhook. ``judge`` gives the object to go on with, or raises ApiError to refuse it.

    ``label`` is the one that an object must have to be sent here, "" for all objects.
    """

    name: str
    path: str
    resource: Resource
    operations: tuple[str, ...]
    judge: Callable[[Operation], Mapping[str, Any]]
    mutating: bool = True
    label: str = ""


def _defaulted(operation: Operation) -> Mapping[str, Any]:
    return admission.defaulted(operation.object) if admission.concerned(operation) else operation.object


def _validated(operation: Operation) -> Mapping[str, Any]:
    if admission.concerned(operation):
        refusal = admission.refused(admission.defaulted(operation.object), operation.old)
        if refusal:
            raise ApiError(403, "Forbidden", refusal)
    return operation.object


_LWS_PATH = "leaderworkerset-x-k8s-io-v1-leaderworkerset"
_ALWAYS = ("CREATE", "UPDATE")
WEBHOOKS = (
    Webhook(admission.MUTATING, f"/mutate-{_LWS_PATH}", LEADER_WORKER_SETS, _ALWAYS, _defaulted),
    Webhook(admission.VALIDATING, f"/validate-{_LWS_PATH}", LEADER_WORKER_SETS, _ALWAYS, _validated, mutating=False),
    Webhook("mpod.kb.io", "/mutate--v1-pod", PODS, ("CREATE",), pod_admission.admit, label=LWS_NAME),
)


def reviewed(webhook: Webhook, review: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to an AdmissionReview; ValueError says in one sentence why it is none."""
    asked = review.get("request")
    if review.get("kind") != "AdmissionReview" or review.get("apiVersion") != "admission.k8s.io/v1":
        raise ValueError("send an AdmissionReview of admission.k8s.io/v1")
    if not isinstance(asked, Mapping) or not isinstance(asked.get("object"), dict) or "uid" not in asked:
        raise ValueError("the AdmissionReview holds no request with a uid and an object: register CREATE and UPDATE")
    verb = _VERBS.get(str(asked.get("operation")))
    if verb is None:
        raise ValueError(f"{webhook.name} looks at CREATE and UPDATE, not at {asked.get('operation')}")
    operation = Operation(
        verb, webhook.resource, asked["object"], asked.get("oldObject"), str(asked.get("subResource") or "")
    )
    response: dict[str, Any] = {"uid": asked["uid"], "allowed": True}
    try:
        after = webhook.judge(operation)
    except ApiError as error:
        response["allowed"] = False
        response["status"] = {"code": error.code, "reason": error.reason, "message": error.message}
    else:
        changes = json_patch(operation.object, after) if webhook.mutating else []
        if changes:
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(changes)).decode()}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


@asynccontextmanager
async def served(certificate: bytes, key: bytes, port: int = 0) -> AsyncIterator[str]:
    """The webhooks on 127.0.0.1 (port 0 takes a free one) with this PEM certificate, which must be for that address,
    and its key; gives their URL without a path.
    """
    application = web.Application(client_max_size=_LARGEST_BODY)
    for webhook in WEBHOOKS:
        application.router.add_post(webhook.path, partial(_answer, webhook))
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=_context(certificate, key)).start()
        host, bound = runner.addresses[0][:2]
        yield f"https://{host}:{bound}"
    finally:
        await runner.cleanup()


async def _answer(webhook: Webhook, request: web.Request) -> web.Response:
    try:
        review = msgspec.json.decode(await request.read(), type=dict[str, Any])
        answer = reviewed(webhook, review)
    except (msgspec.DecodeError, ValueError) as error:
        return web.Response(status=400, text=f"{error}\n")
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json")


def _context(certificate: bytes, key: bytes) -> ssl.SSLContext:
    """The library takes a key from a file only, so it is one for a moment, in a directory that is nobody else's."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory() as directory:
        both = Path(directory) / "tls.pem"
        both.touch(0o600)
        both.write_bytes(certificate + b"\n" + key)
        context.load_cert_chain(both)
    return context
