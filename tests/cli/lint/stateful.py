"""Manifests of a Rollout that releases a StatefulSet, with nothing wrong, and a database beside it."""

from __future__ import annotations

from tests.cli.lint.manifests import PLAIN_ROLLOUT, ROLLOUT, ROUTE, SERVICE, SHIFTED_PAIR, edited

_REF = (
    "    apiVersion: leaderworkerset.x-k8s.io/v1\n    kind: LeaderWorkerSet\n",
    "    apiVersion: apps/v1\n    kind: StatefulSet\n",
)
STS_ROLLOUT = edited(ROLLOUT, *_REF)
PLAIN_STS_ROLLOUT = edited(PLAIN_ROLLOUT, *_REF)
STS_PAIR = SHIFTED_PAIR.replace(*_REF)
STATEFUL_SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: chat
spec:
  replicas: 4
  serviceName: chat-pods
  podManagementPolicy: Parallel
  selector:
    matchLabels:
      app: chat
  template:
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
STS_SERVICE = edited(SERVICE, '    leaderworkerset.sigs.k8s.io/worker-index: "0"\n', "")
#: The one by which its pods find each other.
HEADLESS = """\
apiVersion: v1
kind: Service
metadata:
  name: chat-pods
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    app: chat
"""
WHOLE_STS = (STS_ROLLOUT, STATEFUL_SET, STS_SERVICE, HEADLESS, ROUTE)
#: Wrong in each way that is told of a released one.
DATABASE = """\
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
spec:
  replicas: many
  serviceName: db
  updateStrategy:
    rollingUpdate:
      partition: 0
  template:
    metadata:
      labels:
        app: db
    spec:
      containers:
        - name: postgres
          image: postgres
          args: [--primary, db-0.db]
          lifecycle:
            preStop:
              sleep:
                seconds: 600
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: [ReadWriteOnce]
"""
