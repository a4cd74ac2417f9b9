"""A release of a large model that was played in virtual time up to a moment, at which the clock stands still."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from rollout_lws.cli.rollouts import summary
from rollout_lws.controller.controller import Controller
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, LEADER_WORKER_SETS, NAMESPACES
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Cluster, Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.patching.patches import APPLY_PATCH, MERGE_PATCH
from rollout_lws.sandbox.transport import DirectTransport
from rollout_lws.settings import Settings
from tests.browser.stage import ROLLOUTS
from tests.definitions import definitions
from tests.virtual_time import LoopClock

Object = dict[str, Any]
NAME, NAMESPACE = "chat", "inference"
ORIGIN = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
_MINUTE, _HOUR = 60.0, 3600.0
#: Until the new version comes, for the stable one to have an age.
_BEFORE = 26 * _HOUR + 40 * _MINUTE
#: Virtual seconds in which each part of the release has to happen.
_PATIENCE = 4 * _HOUR
_MANIFESTS = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: chat, namespace: inference}
spec:
  replicas: 12
  leaderWorkerTemplate:
    size: 4
    restartPolicy: RecreateGroupOnPodRestart
    leaderTemplate:
      metadata: {labels: {app: chat, role: leader}, annotations: {ENGINE}}
      spec: {containers: [{name: vllm, image: "IMAGE", ports: [{name: http, containerPort: 80}], RESOURCES}]}
    workerTemplate:
      metadata: {labels: {app: chat}}
      spec: {containers: [{name: vllm, image: "IMAGE", RESOURCES}]}
---
apiVersion: v1
kind: Service
metadata: {name: chat-api, namespace: inference}
spec: {selector: {app: chat, role: leader}, ports: [{port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: inference, namespace: inference}
spec: {gatewayClassName: sandbox, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: chat, namespace: inference}
spec:
  parentRefs: [{name: inference}]
  rules: [{matches: [{path: {type: PathPrefix, value: /v1}}], backendRefs: [{name: chat-api, port: 80}]}]
---
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata: {name: chat, namespace: inference}
spec:
  workloadRef: {apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: chat}
  strategy:
    canary:
      trafficRoutings: [{service: chat-api, gateway: {httpRouteName: chat}, drainSeconds: 600}]
      steps:
      - {replicas: 1, traffic: 10%, gates: [FIRST_TOKEN, ERRORS], pause: {}}
      - {replicas: 4, traffic: 30%, gates: [FIRST_TOKEN, ERRORS], pause: {}}
      - {replicas: 6, traffic: 50%, pause: {duration: 1800}}
      - {replicas: 100%}
"""
_TEXTS = {
    "ENGINE": "sandbox.rollouts.kruise.io/model-server-engine: vLLM,"
    ' sandbox.rollouts.kruise.io/model-server-requests-per-second: "4",'
    ' sandbox.rollouts.kruise.io/model-server-first-token-seconds: "0.31"',
    "RESOURCES": 'resources: {limits: {nvidia.com/gpu: "8"}}',
    "FIRST_TOKEN": "{name: first-token, window: 900, metric: {signal: TimeToFirstToken, quantile: 95, max: 1500ms}}",
    "ERRORS": "{name: errors, window: 900, metric: {signal: ErrorRate, max: 1%}}",
}
OLD, NEW = (f"registry.example.com/vllm-openai:{tag}" for tag in ("v0.18.1", "v0.19.0"))


def _manifests(image: str) -> list[Object]:
    text = _MANIFESTS.replace("IMAGE", image)
    for name, value in _TEXTS.items():
        text = text.replace(name, value)
    return list(yaml.safe_load_all(text))


async def played() -> ApiServer:
    """The server with all that there is when the second step has been measured; to be run in virtual time."""
    loop = asyncio.get_running_loop()
    server = ApiServer(lambda: ORIGIN.timestamp() + loop.time(), seed=7)
    for each in definitions():
        server.create(CUSTOM_RESOURCE_DEFINITIONS, each)
    server.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    timing = Timing(17 * _MINUTE, terminate_after=40.0, leader_longer=1 * _MINUTE)
    cluster = Cluster(server, Options(nodes=80, timing=timing))
    cluster.start()
    controller = Controller(
        Client(DirectTransport(server)), Settings(scrape_through="api-server"), LoopClock(ORIGIN), Metrics(), None
    )
    async with controller.running():
        await _play(server)
    cluster.stop()
    now = server.clock()
    server.clock = lambda: now
    return server


async def _play(server: ApiServer) -> None:
    for each in _manifests(OLD):
        resource = next(
            kind.resource for kind in server.served if (kind.resource.api_version, kind.resource.kind) == _kind(each)
        )
        server.patch(resource, NAMESPACE, each["metadata"]["name"], each, APPLY_PATCH, field_manager="kubectl")

    await _until(server, "Healthy")
    await asyncio.sleep(_BEFORE)
    template = _manifests(NEW)[0]["spec"]["leaderWorkerTemplate"]
    server.patch(
        LEADER_WORKER_SETS, NAMESPACE, NAME, {"spec": {"leaderWorkerTemplate": template}}, MERGE_PATCH,
        field_manager="kubectl-set",
    )  # fmt: skip
    await _until(server, "AwaitingApproval")
    await asyncio.sleep(23 * _MINUTE)
    action = {"type": "Approve", "id": "first-step", "by": "mara@example.com"}
    server.patch(ROLLOUTS, NAMESPACE, NAME, {"status": {"requestedAction": action}}, MERGE_PATCH, subresource="status")
    await _until(server, "Analyzing")
    await _until(server, "AwaitingApproval")
    await asyncio.sleep(4 * _MINUTE)


def _kind(manifest: Object) -> tuple[str, str]:
    return manifest["apiVersion"], manifest["kind"]


async def _until(server: ApiServer, state: str) -> None:
    """Wait for the release to be in this state; time that is virtual would else go on for ever."""
    changed = asyncio.Event()
    unsubscribe = server.store.subscribe(lambda _: changed.set())
    async with asyncio.timeout(_PATIENCE):
        while summary(server.get(ROLLOUTS, NAMESPACE, NAME))["state"] != state:
            changed.clear()
            await changed.wait()
    unsubscribe()


#: Of other teams: namespace, name, state, phase, message, step, weight, groups (new, stable), minutes since.
_OTHERS = (
    ("code", "completions", "Stalled", "Progressing", "group 2 does not load: OOMKilled", 2, 5, 3, 8, 22),
    ("code", "review", "AwaitingApproval", "Progressing", "step 3 of 4 waits for approval", 3, 50, 4, 8, 74),
    ("research", "reasoning-671b", "Loading", "Progressing", "3 of 4 groups load their weights", 1, 0, 4, 16, 11),
    ("inference", "vision", "WaitingForQuota", "Progressing", "1 group waits for quota of h100", 2, 10, 2, 6, 47),
    ("inference", "embeddings", "Healthy", "Healthy", "", 0, None, 0, 6, 3 * 1440),
    ("inference", "rerank", "Healthy", "Healthy", "", 0, None, 0, 4, 9 * 1440),
    ("speech", "transcribe", "Promoting", "Progressing", "5 of 9 old groups are renewed", 4, 100, 9, 4, 31),
    ("speech", "voices", "Aborted", "Aborted", "gate errors: 2.4% of requests failed, at most 1%", 2, 0, 0, 5, 190),
)  # fmt: skip


def others(now: datetime) -> list[Object]:
    """Rollouts with statuses as controllers leave them."""
    return [_other(now, *each) for each in _OTHERS]


def _other(
    now: datetime, namespace: str, name: str, state: str, phase: str, message: str, step: int, weight: int | None,
    new: int, stable: int, minutes: int,
) -> Object:  # fmt: skip
    spec = _manifests(OLD)[-1]["spec"]
    told: Object = {"state": state, "since": (now - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    status: Object = {"phase": phase, "message": message, "summary": told}
    if step:
        status |= {"currentStepIndex": step, "traffic": {"applied": {"weight": weight or 0}}}
        told |= {"step": f"{step}/4"}
    status["groups"] = {"stable": {"ready": stable, "total": stable}}
    if new:
        status["groups"]["new"] = {"ready": max(1, new - (state == "Loading") * 3), "total": new}
    return {
        "apiVersion": ROLLOUTS.api_version,
        "kind": ROLLOUTS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**spec, "workloadRef": {**spec["workloadRef"], "name": name}},
        "status": status,
    }
