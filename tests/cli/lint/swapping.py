"""Manifests of a Rollout whose releases swap, and objects that select by LWS's label with its name."""

from __future__ import annotations

from tests.cli.lint.manifests import LWS, PLAIN_ROLLOUT, ROLLOUT, ROUTE, SERVICE, edited, unnumbered

_PROMOTION = ("    canary:\n", "    blueGreen:\n      promotion: Swap\n", "        - replicas: 100%\n", "")
SWAP = edited(ROLLOUT, *_PROMOTION)
PLAIN_SWAP = edited(PLAIN_ROLLOUT, *_PROMOTION)
WHOLE_SWAP = (SWAP, unnumbered(LWS), SERVICE, ROUTE)
BY_NAME = edited(SERVICE, "    app: chat\n", "    leaderworkerset.sigs.k8s.io/name: chat\n")
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: chat
spec:
  minAvailable: 1
  selector:
    matchLabels:
      leaderworkerset.sigs.k8s.io/name: chat
"""
POLICY = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: chat
spec:
  podSelector: {}
  ingress:
    - from:
        - podSelector:
            matchExpressions:
              - {key: leaderworkerset.sigs.k8s.io/name, operator: In, values: [chat]}
"""
MONITOR = """\
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: chat
spec:
  podMetricsEndpoints:
    - port: http
  selector:
    matchLabels:
      leaderworkerset.sigs.k8s.io/name: chat
"""
