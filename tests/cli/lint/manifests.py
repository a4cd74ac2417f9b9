"""Manifests that have nothing wrong with them, to be broken one line at a time, and what lint finds in texts."""

from __future__ import annotations

from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.linter import Report, lint
from rollout_lws.cli.lint.manifests import Scope
from rollout_lws.cli.manifests import Source

ROLLOUT = """\
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata:
  name: chat
spec:
  workloadRef:
    apiVersion: leaderworkerset.x-k8s.io/v1
    kind: LeaderWorkerSet
    name: chat
  strategy:
    canary:
      trafficRoutings:
        - service: chat-api
          gateway:
            httpRouteName: chat
      steps:
        - replicas: 1
          traffic: 20%
          pause: {}
        - replicas: 50%
          traffic: 40%
          pause:
            duration: 600
        - replicas: 100%
"""
PLAIN_ROLLOUT = ROLLOUT.replace(
    """\
      trafficRoutings:
        - service: chat-api
          gateway:
            httpRouteName: chat
""",
    "",
)
for _traffic in ("          traffic: 20%\n", "          traffic: 40%\n"):
    PLAIN_ROLLOUT = PLAIN_ROLLOUT.replace(_traffic, "")
LWS = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: chat
spec:
  replicas: 4
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      metadata:
        labels:
          app: chat
      spec:
        containers:
          - name: server
            image: registry.example.org/server:v1
            args: [serve]
            readinessProbe:
              httpGet:
                path: /health
                port: 8000
            lifecycle:
              preStop:
                exec:
                  command: [sleep, "10"]
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: chat-api
spec:
  selector:
    app: chat
    leaderworkerset.sigs.k8s.io/worker-index: "0"
  ports:
    - port: 80
"""
ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: chat
spec:
  parentRefs:
    - name: inference
  rules:
    - backendRefs:
        - name: chat-api
          port: 80
"""
INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: chat
spec:
  ingressClassName: nginx
  rules:
    - http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: chat-api
                port:
                  number: 80
"""
POOLS = """\
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata:
  name: chat
spec:
  targetPorts:
    - number: 8000
  selector:
    matchLabels:
      app: chat
      leaderworkerset.sigs.k8s.io/worker-index: "0"
---
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata:
  name: chat-next
spec:
  targetPorts:
    - number: 8000
  selector:
    matchLabels:
      app: chat
      leaderworkerset.sigs.k8s.io/worker-index: "0"
"""
HPA = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: chat
spec:
  maxReplicas: 8
  scaleTargetRef:
    apiVersion: leaderworkerset.x-k8s.io/v1
    kind: LeaderWorkerSet
    name: chat
"""
HPA_OF_ROLLOUT = HPA.replace("leaderworkerset.x-k8s.io/v1", "rollouts.kruise.io/v1beta1").replace(
    "kind: LeaderWorkerSet", "kind: Rollout"
)
WHOLE = (ROLLOUT, LWS, SERVICE, ROUTE)
#: Stands in front of the character that a finding is expected at.
HERE = "»"


def edited(text: str, *changes: str) -> str:
    """``text`` with each second of ``changes`` instead of the one before it, which stands there exactly once."""
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert text.count(old) == 1, (old, text)
        text = text.replace(old, new)
    return text


#: A pair: the two LWSs, their Services, a route with all weight at the first one, and the Rollout.
PAIR = edited(
    ROLLOUT,
    "    name: chat\n  strategy:\n    canary:\n",
    """\
    name: chat
  counterpartRef:
    apiVersion: leaderworkerset.x-k8s.io/v1
    kind: LeaderWorkerSet
    name: chat-green
  touch: RouteOnly
  strategy:
    canary:
      capacity: Pair
""",
    "        - service: chat-api\n",
    "        - service: chat-api\n          counterpartService: green-api\n",
    "        - replicas: 100%\n",
    "",
)
GREEN = edited(LWS, "  name: chat\n", "  name: chat-green\n", "          app: chat\n", "          app: chat-green\n")
GREEN_SERVICE = edited(SERVICE, "  name: chat-api", "  name: green-api", "    app: chat\n", "    app: chat-green\n")
PAIR_ROUTE = edited(
    ROUTE,
    "          port: 80\n",
    """\
          port: 80
          weight: 100
        - name: green-api
          port: 80
          weight: 0
""",
)
_POOL = "group: inference.networking.k8s.io\n          kind: InferencePool\n          name:"
PAIR_ROUTE_TO_POOLS = edited(
    PAIR_ROUTE,
    "- name: chat-api\n          port: 80\n",
    f"- {_POOL} chat\n",
    "- name: green-api\n          port: 80\n",
    f"- {_POOL} chat-next\n",
)
WHOLE_PAIR = (PAIR, LWS, GREEN, SERVICE, GREEN_SERVICE, PAIR_ROUTE)


def unnumbered(lws: str) -> str:
    """The LWS without a number of groups."""
    return edited(lws, "  replicas: 4\n", "")


#: A pair whose Rollout scales both sides.
SCALED_PAIR = edited(PAIR, "  touch: RouteOnly\n", "  activeSide: chat\n")
WHOLE_SCALED_PAIR = (SCALED_PAIR, unnumbered(LWS), unnumbered(GREEN), SERVICE, GREEN_SERVICE, PAIR_ROUTE)
#: One whose active side gives up groups as the other one gets some.
SHIFTED_PAIR = edited(
    SCALED_PAIR,
    "      capacity: Pair\n",
    "      capacity: Pair\n      shift: {}\n",
    "          traffic: 20%\n",
    "          traffic: auto\n",
    "          traffic: 40%\n",
    "          traffic: auto\n",
)
#: Decode, which the Services select, and prefill, as one version of each side.
SET_PAIR = edited(
    SCALED_PAIR,
    "  activeSide: chat\n",
    "  activeSide: chat\n  companions:\n    - {name: prefill, counterpart: prefill-green, replicas: 50%}\n",
)
PREFILL = edited(unnumbered(LWS), "  name: chat\n", "  name: prefill\n", "app: chat\n", "app: prefill\n")
GREEN_PREFILL = edited(PREFILL, "  name: prefill\n", "  name: prefill-green\n", "app: prefill", "app: prefill-green")
WHOLE_SET_PAIR = (SET_PAIR, *WHOLE_SCALED_PAIR[1:], PREFILL, GREEN_PREFILL)
#: The same with one pool a side, which selects both workloads by a label of their templates.
POOLED_SET_PAIR = (
    edited(
        SET_PAIR,
        "          counterpartService: green-api\n",
        "",
        "            httpRouteName: chat\n",
        "            httpRouteName: chat\n            inferencePool: {stable: chat, canary: chat-next}\n",
    ),
    *(
        edited(each, f"app: {name}\n", f"app: {name}\n          side: {side}\n")
        for each, name, side in (
            (WHOLE_SCALED_PAIR[1], "chat", "blue"),
            (WHOLE_SCALED_PAIR[2], "chat-green", "green"),
            (PREFILL, "prefill", "blue"),
            (GREEN_PREFILL, "prefill-green", "green"),
        )
    ),
    SERVICE,
    *(
        edited(each, "app: chat\n", f"side: {side}\n")
        for each, side in zip(POOLS.split("---\n"), ("blue", "green"), strict=True)
    ),
    PAIR_ROUTE_TO_POOLS,
)
#: Scales what HPA scales.
SCALED_OBJECT = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: chat
spec:
  scaleTargetRef:
    apiVersion: leaderworkerset.x-k8s.io/v1
    kind: LeaderWorkerSet
    name: chat
"""


def asking(rollout: str, here: str = "", number: int = 4) -> str:
    """The Rollout with a number of groups of its own, by default as many as LWS has."""
    return edited(rollout, "  workloadRef", f"  {here}replicas: {number}\n  workloadRef")


def joined(*texts: str) -> str:
    return "---\n".join(texts)


def places(text: str) -> list[tuple[int, int]]:
    """Line and column, from 1, of each character after a mark, as they are without the marks."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        *before, _ = line.split(HERE)
        found += [(number, sum(map(len, before[: at + 1])) + 1) for at in range(len(before))]
    return found


def report(*texts: str, group: str | None = None) -> Report:
    """What is found in files ``0.yaml``, ``1.yaml`` … of these texts, without their marks."""
    named = (Source(f"{number}.yaml", text.replace(HERE, "")) for number, text in enumerate(texts))
    return lint(named, Scope(group))


def found(*texts: str, group: str | None = None) -> list[Finding]:
    return list(report(*texts, group=group).findings)
