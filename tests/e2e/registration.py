"""Tells an API server to call LeaderWorkerSet's webhooks, and learns when it does."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import msgspec

from rollout_lws.kube.client import Client
from rollout_lws.kube.status import refused
from rollout_lws.kube.transport import Transport
from rollout_lws.objects.resources import LEADER_WORKER_SETS, Resource
from rollout_lws.objects.writes import Create
from rollout_lws.sandbox.behaviours.lws import admission
from tests.e2e.webhooks import WEBHOOKS, Webhook

_GROUP, _VERSION = "admissionregistration.k8s.io", "v1"
MUTATING = Resource(_GROUP, _VERSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False)
VALIDATING = Resource(
    _GROUP, _VERSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)
_NAMES = {MUTATING: "lws-mutating-webhook-configuration", VALIDATING: "lws-validating-webhook-configuration"}
#: An API server answers in this many seconds, or the webhook is taken for broken.
_TIMEOUT = 10
_FIRST_WAIT, _LONGEST_WAIT = 0.01, 0.5


def configurations(url: str, authority: bytes) -> list[tuple[Resource, dict[str, Any]]]:
    """The two objects that register the webhooks at ``url``, whose certificate the PEM ``authority`` vouches for."""
    return [
        (resource, _configuration(resource, [each for each in WEBHOOKS if each.mutating == mutating], url, authority))
        for resource, mutating in ((MUTATING, True), (VALIDATING, False))
    ]


def _configuration(resource: Resource, webhooks: list[Webhook], url: str, authority: bytes) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": _NAMES[resource]},
        "webhooks": [_entry(each, url, base64.b64encode(authority).decode()) for each in webhooks],
    }


def _entry(webhook: Webhook, url: str, authority: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": webhook.name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": _TIMEOUT,
        "clientConfig": {"url": url + webhook.path, "caBundle": authority},
        "rules": [
            {
                "apiGroups": [webhook.resource.group],
                "apiVersions": [webhook.resource.version],
                "resources": [webhook.resource.plural],
                "operations": list(webhook.operations),
                "scope": "Namespaced",
            }
        ],
    }
    if webhook.label:
        entry["objectSelector"] = {"matchExpressions": [{"key": webhook.label, "operator": "Exists"}]}
    return entry


async def register(transport: Transport, url: str, authority: bytes, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109
    """Register the webhooks and come back when they are called: a LeaderWorkerSet made a moment too early would get
    pods that know of no group. TimeoutError after ``timeout`` seconds, the API server's last answer in its text.
    """
    client = Client(transport)
    for resource, body in configurations(url, authority):
        await client.send(Create(resource, body, "LeaderWorkerSet's webhooks"))
    answer, wait = "no answer", _FIRST_WAIT
    try:
        async with asyncio.timeout(timeout):
            # An API server tells nobody when it has taken a configuration in: it shows in its answers only.
            while answer := await uncalled(transport):
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
    except TimeoutError:
        raise TimeoutError(
            f"the webhooks at {url} are not called {timeout:g} s after their registration: {answer}"
        ) from None


async def uncalled(transport: Transport) -> str:
    """How it shows that LeaderWorkerSet's webhooks, the real ones' or ours, are not called; "" when they are."""
    return await _defaulting(transport) or await _validating(transport)


async def _defaulting(transport: Transport) -> str:
    """What is wrong with the answer to a LeaderWorkerSet with a word that only the mutating webhook replaces."""
    code, answer = await _dry_run(transport, {"leaderWorkerTemplate": {**_GROUPS, "restartPolicy": "Default"}})
    if code >= 400:
        return _message(code, answer)
    policy = msgspec.json.decode(answer)["spec"]["leaderWorkerTemplate"]["restartPolicy"]
    return "" if policy == "None" else f"restartPolicy is {policy}"


async def _validating(transport: Transport) -> str:
    """What is wrong with the answer to a LeaderWorkerSet that only the validating webhook refuses."""
    stuck = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}}
    code, answer = await _dry_run(transport, {"leaderWorkerTemplate": _GROUPS, "rolloutStrategy": stuck})
    if code < 400:
        return "maxUnavailable 0 with maxSurge 0 was taken"
    message = _message(code, answer)
    return "" if admission.VALIDATING in message and "maxUnavailable" in message else message


_GROUPS = {"workerTemplate": {"spec": {"containers": [{"name": "main", "image": "none"}]}}}


async def _dry_run(transport: Transport, spec: Mapping[str, Any]) -> tuple[int, bytes]:
    """Code and body of the answer to a creation that is not to happen."""
    body = {
        "apiVersion": LEADER_WORKER_SETS.api_version,
        "kind": LEADER_WORKER_SETS.kind,
        "metadata": {"name": "are-webhooks-called", "namespace": "default"},
        "spec": spec,
    }
    answer = await transport.request(
        "POST",
        LEADER_WORKER_SETS.path("default"),
        params={"dryRun": "All"},
        body=msgspec.json.encode(body),
        content_type="application/json",
        timeout=_TIMEOUT,
    )
    return answer.status, answer.body


def _message(code: int, answer: bytes) -> str:
    return refused(code, {}, answer).message
