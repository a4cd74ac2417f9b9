"""Manifests in which nearly everything is written out that lint, or a rule that it asks, ever reads."""

from __future__ import annotations

METADATA = """\
  labels: {a: b}
  annotations: {c: d}
  uid: 5c1d
  generation: 3
  resourceVersion: "5"
  creationTimestamp: null
  deletionTimestamp: "2026-01-01T00:00:00Z"
  deletionGracePeriodSeconds: 30
  finalizers: [example.org/kept]
  ownerReferences:
    - {apiVersion: v1, kind: Owner, name: o, uid: 6d2e, controller: false, blockOwnerDeletion: true}
  managedFields: [{manager: kubectl}]
  generateName: chat-
  selfLink: /x
"""
_CONTAINERS = """\
          terminationGracePeriodSeconds: 60
          nodeSelector: {a: b}
          tolerations: [{key: a}]
          volumes: [{name: cache, emptyDir: {}}]
          initContainers: [{name: fetch, command: [fetch]}]
          containers:
            - name: server
              image: registry.example.org/server:v1
              args: [serve]
              command: [server]
              env: [{name: A, value: b}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
              ports: [{containerPort: 8000, name: http}]
              resources: {limits: {nvidia.com/gpu: 8, memory: 4Gi}, requests: {memory: 4Gi}}
              volumeMounts: [{name: cache, mountPath: /cache}]
              startupProbe:
                {httpGet: {path: /h, port: 8000}, periodSeconds: 10, failureThreshold: 60, initialDelaySeconds: 5}
              readinessProbe: {httpGet: {path: /h, port: http, scheme: HTTP}, timeoutSeconds: 1, successThreshold: 1}
              livenessProbe: {tcpSocket: {port: 8000}, terminationGracePeriodSeconds: 5}
              lifecycle: {preStop: {exec: {command: [sleep, "5"]}}, postStart: {sleep: {seconds: 3}}}
"""
LWS = f"""\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: chat
{METADATA}\
spec:
  replicas: 4
  startupPolicy: LeaderCreated
  rolloutStrategy:
    type: RollingUpdate
    rollingUpdateConfiguration: {{partition: 0, maxUnavailable: 1, maxSurge: 25%}}
  networkConfig: {{subdomainPolicy: Shared}}
  leaderWorkerTemplate:
    size: 2
    restartPolicy: RecreateGroupOnPodRestart
    subGroupPolicy: {{subGroupSize: 2}}
    volumeClaimTemplates:
      - metadata: {{name: cache}}
        spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
    leaderTemplate:
        metadata: {{labels: {{app: chat}}}}
        spec:
{_CONTAINERS}\
    workerTemplate:
      metadata: {{labels: {{app: chat}}}}
      spec: {{containers: [{{name: worker, image: registry.example.org/server:v1}}]}}
"""
SCALED = f"""\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: chat
{METADATA}\
spec:
  scaleTargetRef: {{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: chat}}
  minReplicaCount: 1
  maxReplicaCount: 3
  triggers: []
"""
BUDGET = f"""\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: chat
{METADATA}\
spec:
  minAvailable: 1
  selector: {{matchLabels: {{app: chat}}, matchExpressions: [{{key: app, operator: In, values: [chat]}}]}}
"""
