{{/*
Names are fixed: a cluster has one installation, whose ClusterRoles and definitions all namespaces share, and the command
line looks for it by them.
*/}}
{{- define "rollout-lws.name" -}}
rollout-lws-controller
{{- end }}

{{/* Labels of every object. */}}
{{- define "rollout-lws.labels" -}}
app.kubernetes.io/name: rollout-lws
app.kubernetes.io/part-of: rollout-lws
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels by which the controller's pods are found; a Deployment cannot change them. */}}
{{- define "rollout-lws.selectorLabels" -}}
app.kubernetes.io/name: rollout-lws
app.kubernetes.io/component: controller
{{- end }}

{{/* repository[:tag][@digest] */}}
{{- define "rollout-lws.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "image.repository is missing: name the image, such as --set image.repository=registry.example.com/rollout-lws" $image.repository -}}
{{- $tag := $image.tag -}}
{{- if not (or $tag $image.digest) -}}
{{- $tag = .Chart.AppVersion -}}
{{- end -}}
{{- $repository -}}
{{- with $tag }}:{{ . }}{{ end -}}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end }}

{{/* Who the controller is to roles. */}}
{{- define "rollout-lws.subjects" -}}
- kind: ServiceAccount
  name: {{ include "rollout-lws.name" . }}
  namespace: {{ .Release.Namespace | quote }}
{{- end }}
