"""What a walk is made of: values that hypothesis can draw, shorten and print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollout_lws.sandbox.behaviours.faults import PREFIX
from rollout_lws.sandbox.model_servers import PREFIX as SERVER
from tests.scenarios.containers import Containers
from tests.scenarios.kinds import LWS, LeaderWorkerSets
from tests.scenarios.routed import BY_ROUTE, Provider
from tests.scenarios.styles import CANARY_STYLE, Style

#: Annotations of the pod template by version; a version's name is its image's tag. "bad…" tags never become ready.
VERSIONS: dict[str, dict[str, str]] = {
    "v1": {"ready-after": "1s"},
    "v2": {"ready-after": "4s"},
    "v3": {"ready-after": "20s"},
    "bad": {"ready-after": "1s"},
    "crash": {"ready-after": "1s", "fail": "CrashLoopBackOff", "crash-after": "20s"},
    "last": {"ready-after": "1s"},
}
#: Seconds until its model server's first token, half of requests; the others are well.
FIRST_TOKENS = {"v3": "2"}
#: What each step has to pass where a plan has gates, and what is watched all through. Few requests decide.
STEP_GATE = {"name": "first-token", "metric": {"signal": "TimeToFirstToken", "max": "1s"}, "window": 60}
WATCHED = {"name": "all-through", "metric": {"signal": "TimeToFirstToken", "quantile": 90, "max": "1s"}, "window": 60}
#: Steps by name. Where the LWS has a route, a step that says nothing of traffic sends some requests all the same.
PLANS: dict[str, list[dict[str, Any]]] = {
    "all": [{"replicas": "100%"}],
    "usual": [{"replicas": 1, "pause": {"duration": 10}}, {"replicas": "50%", "pause": {}}, {"replicas": "100%"}],
    "counts": [{"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}}, {"replicas": 4, "pause": {}}],
    "shares": [{"replicas": "20%", "pause": {"duration": 5}}, {"replicas": "60%", "pause": {}}],
    "impatient": [{"replicas": 1, "pause": {"approvalTimeoutSeconds": 30}}, {"replicas": 3, "pause": {"duration": 1}}],
    "pair": [{"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": 2, "traffic": "50%", "pause": {}}],
    "green": [
        {"replicas": "50%", "traffic": "0%", "pause": {}},
        {"replicas": "100%", "traffic": "100%", "pause": {}},
    ],
}


@dataclass(frozen=True)
class Plan:
    """Where a walk begins and how it shall end: "finish", "abort" or "leave"."""

    replicas: int = 3
    size: int = 1
    unavailable: int | str = 1
    surge: int | str = 0
    steps: str = "usual"
    deadline: int = 600
    on_failure: str = "Pause"
    min_ready: int = 0
    threshold: int | None = None
    routed: bool = False
    gated: bool = False
    provider: Provider = BY_ROUTE
    style: Style = CANARY_STYLE
    kind: LeaderWorkerSets = LWS
    ending: str = "finish"


@dataclass(frozen=True)
class Act:
    """Something that happens, and how many seconds pass afterwards."""

    kind: str
    value: Any = None
    then: float = 0


def template(version: str, containers: Containers) -> dict[str, Any]:
    annotations: dict[str, str | None] = dict.fromkeys((PREFIX + "fail", PREFIX + "crash-after"))
    annotations |= {PREFIX + key: value for key, value in VERSIONS[version].items()}
    server = {"engine": "vLLM", "requests-per-second": "20", "first-token-seconds": FIRST_TOKENS.get(version, "0.3")}
    annotations |= {SERVER + key: value for key, value in server.items()}
    (container,) = containers.of(version)
    return {
        "metadata": {"labels": {"app": "llama"}, "annotations": annotations},
        "spec": {"containers": [{**container, "ports": [{"name": "http", "containerPort": 8000}]}]},
    }
