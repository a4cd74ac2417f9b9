{{- /* Generated from rollout_lws/cli/install/rbac.py by 'make generate'; do not edit. */}}
{{- define "rollout-lws.rules.controller" -}}
- apiGroups:
  - {{ .Values.apiGroup }}
  resources:
  - rollouts
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - {{ .Values.apiGroup }}
  resources:
  - batchreleases
  verbs:
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - {{ .Values.apiGroup }}
  resources:
  - rollouts/status
  - batchreleases/status
  verbs:
  - patch
- apiGroups:
  - leaderworkerset.x-k8s.io
  resources:
  - leaderworkersets
  verbs:
  - get
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - apps
  resources:
  - statefulsets
  verbs:
  - get
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - apps
  resources:
  - controllerrevisions
  verbs:
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - ''
  resources:
  - pods
  verbs:
  - list
  - watch
  - patch
  - delete
- apiGroups:
  - ''
  resources:
  - services
  verbs:
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - discovery.k8s.io
  resources:
  - endpointslices
  verbs:
  - list
  - watch
- apiGroups:
  - gateway.networking.k8s.io
  resources:
  - httproutes
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - gateway.networking.k8s.io
  resources:
  - grpcroutes
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - networking.istio.io
  resources:
  - virtualservices
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - networking.k8s.io
  resources:
  - ingresses
  verbs:
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - networking.istio.io
  resources:
  - destinationrules
  verbs:
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - inference.networking.k8s.io
  resources:
  - inferencepools
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - autoscaling
  resources:
  - horizontalpodautoscalers
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - policy
  resources:
  - poddisruptionbudgets
  verbs:
  - list
  - watch
- apiGroups:
  - ''
  resources:
  - events
  verbs:
  - list
  - watch
- apiGroups:
  - kueue.x-k8s.io
  resources:
  - workloads
  verbs:
  - list
  - watch
- apiGroups:
  - kueue.x-k8s.io
  resources:
  - admissionchecks
  verbs:
  - list
  - watch
- apiGroups:
  - events.k8s.io
  resources:
  - events
  verbs:
  - create
  - patch
- apiGroups:
  - apiextensions.k8s.io
  resources:
  - customresourcedefinitions
  verbs:
  - list
  - watch
{{- end }}

{{- define "rollout-lws.rules.cluster" -}}
- apiGroups:
  - kueue.x-k8s.io
  resources:
  - admissionchecks
  verbs:
  - list
  - watch
- apiGroups:
  - apiextensions.k8s.io
  resources:
  - customresourcedefinitions
  verbs:
  - list
  - watch
{{- end }}

{{- define "rollout-lws.rules.namespaced" -}}
- apiGroups:
  - {{ .Values.apiGroup }}
  resources:
  - rollouts
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - {{ .Values.apiGroup }}
  resources:
  - batchreleases
  verbs:
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - {{ .Values.apiGroup }}
  resources:
  - rollouts/status
  - batchreleases/status
  verbs:
  - patch
- apiGroups:
  - leaderworkerset.x-k8s.io
  resources:
  - leaderworkersets
  verbs:
  - get
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - apps
  resources:
  - statefulsets
  verbs:
  - get
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - apps
  resources:
  - controllerrevisions
  verbs:
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - ''
  resources:
  - pods
  verbs:
  - list
  - watch
  - patch
  - delete
- apiGroups:
  - ''
  resources:
  - services
  verbs:
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - discovery.k8s.io
  resources:
  - endpointslices
  verbs:
  - list
  - watch
- apiGroups:
  - gateway.networking.k8s.io
  resources:
  - httproutes
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - gateway.networking.k8s.io
  resources:
  - grpcroutes
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - networking.istio.io
  resources:
  - virtualservices
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - networking.k8s.io
  resources:
  - ingresses
  verbs:
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - networking.istio.io
  resources:
  - destinationrules
  verbs:
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - inference.networking.k8s.io
  resources:
  - inferencepools
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - autoscaling
  resources:
  - horizontalpodautoscalers
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - policy
  resources:
  - poddisruptionbudgets
  verbs:
  - list
  - watch
- apiGroups:
  - ''
  resources:
  - events
  verbs:
  - list
  - watch
- apiGroups:
  - kueue.x-k8s.io
  resources:
  - workloads
  verbs:
  - list
  - watch
- apiGroups:
  - events.k8s.io
  resources:
  - events
  verbs:
  - create
  - patch
{{- end }}

{{- define "rollout-lws.rules.gateJobs" -}}
- apiGroups:
  - batch
  resources:
  - jobs
  verbs:
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - batch
  resources:
  - cronjobs
  verbs:
  - list
  - watch
{{- end }}

{{- define "rollout-lws.rules.customNetwork" -}}
- apiGroups:
  - {{ (splitn "." 2 .)._1 | quote }}
  resources:
  - {{ (splitn "." 2 .)._0 | quote }}
  verbs:
  - list
  - watch
  - patch
{{- end }}

{{- define "rollout-lws.rules.scripts" -}}
- apiGroups:
  - ''
  resources:
  - configmaps
  verbs:
  - list
  - watch
  resourceNames:
  - {{ . | quote }}
{{- end }}

{{- define "rollout-lws.rules.leaderElection" -}}
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - create
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - get
  - list
  - watch
  - patch
  resourceNames:
  - rollout-lws-controller
{{- end }}

{{- define "rollout-lws.rules.guard" -}}
- apiGroups:
  - admissionregistration.k8s.io
  resources:
  - mutatingwebhookconfigurations
  - validatingwebhookconfigurations
  verbs:
  - get
  - list
  - watch
  - patch
  resourceNames:
  - rollout-lws-guard
{{- end }}
