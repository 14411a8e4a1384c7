{{- define "mergeway.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "mergeway.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "mergeway.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "mergeway.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "mergeway.selectorLabels" -}}
app.kubernetes.io/name: {{ include "mergeway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "mergeway.labels" -}}
{{- $own := dict
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service
  "app.kubernetes.io/part-of" "mergeway"
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") -}}
{{- $selector := include "mergeway.selectorLabels" . | fromYaml -}}
{{- merge (dict) $selector $own .Values.commonLabels | toYaml -}}
{{- end -}}

{{- define "mergeway.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "mergeway.fullname" .) -}}
{{- else -}}
{{- required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "mergeway.image" -}}
{{- $registry := .Values.image.registry | default .Values.global.imageRegistry -}}
{{- $repository := ternary (printf "%s/%s" $registry .Values.image.repository) .Values.image.repository (ne $registry "") -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "mergeway.envoyImage" -}}
{{- include "mergeway.imageOf" (dict "image" .Values.dataPlane.envoy "global" .Values.global) -}}
{{- end -}}

{{- define "mergeway.cloudflaredImage" -}}
{{- include "mergeway.imageOf" (dict "image" .Values.dataPlane.tunnel "global" .Values.global) -}}
{{- end -}}

{{- define "mergeway.imageOf" -}}
{{- $image := .image -}}
{{- $registry := $image.registry | default .global.imageRegistry -}}
{{- $repository := ternary (printf "%s/%s" $registry $image.repository) $image.repository (ne $registry "") -}}
{{- ternary (printf "%s@%s" $repository $image.digest) (printf "%s:%s" $repository $image.tag) (ne $image.digest "") -}}
{{- end -}}

{{/* host:port under which data plane pods find every replica of the controller */}}
{{- define "mergeway.streamService" -}}
{{- printf "%s.%s.svc:%d" (include "mergeway.fullname" .) .Release.Namespace (int .Values.ports.stream) -}}
{{- end -}}

{{/*
Reading and telling: what is watched, and the statuses and events written about it. What has a
status is also read by itself, when somebody else has written it in the meantime.
*/}}
{{- define "mergeway.readRules" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources:
    - gateways
    - listenersets
    - httproutes
    - grpcroutes
    - tlsroutes
    - tcproutes
    - udproutes
    - backendtlspolicies
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [referencegrants]
  verbs: [list, watch]
- apiGroups: [gateway.networking.x-k8s.io]
  resources: [xlistenersets]
  verbs: [get, list, watch]
- apiGroups: [mergeway.dev]
  resources: [gatewayparameters]
  verbs: [list, watch]
- apiGroups: [mergeway.dev]
  resources: [trafficpolicies, clientpolicies, backendpolicies, tenantpolicies]
  verbs: [get, list, watch]
# Who uses which hostnames, where TenantPolicies hold claims.
- apiGroups: [mergeway.dev]
  resources: [hostnameclaims]
  verbs: [list, watch, create, update, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [list, watch]
# Listed and watched by their metadata alone; the content is read of those that something refers
# to.
- apiGroups: [""]
  resources: [secrets, configmaps]
  verbs: [get, list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources:
    - gateways/status
    - listenersets/status
    - httproutes/status
    - grpcroutes/status
    - tlsroutes/status
    - tcproutes/status
    - udproutes/status
    - backendtlspolicies/status
  verbs: [patch]
- apiGroups: [gateway.networking.x-k8s.io]
  resources: [xlistenersets/status]
  verbs: [patch]
- apiGroups: [mergeway.dev]
  resources: [trafficpolicies/status, clientpolicies/status, backendpolicies/status, tenantpolicies/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}

{{/*
Making: what serves a Gateway, in the Gateway's own namespace. Server-side apply needs create and
patch.
*/}}
{{- define "mergeway.infrastructureRules" -}}
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, create, patch, delete]
- apiGroups: [""]
  resources: [services, serviceaccounts]
  verbs: [list, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, create, patch, delete]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list, create, patch, delete]
# Clusters with the admission plugin OwnerReferencesPermissionEnforcement ask for it before an
# object may be owned by a Gateway.
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways/finalizers]
  verbs: [update]
{{- if .Values.dataPlane.tunnel.enabled }}
# The token of a Gateway's tunnel is handed to its pods in a Secret.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create, patch]
# A Gateway that has a tunnel goes when its tunnel has gone.
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways]
  verbs: [patch]
{{- end }}
{{- end -}}

{{/* Combinations that could be installed and would then not do what they say. */}}
{{- define "mergeway.refuse" -}}
{{- $several := or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) -}}
{{- if and $several (not .Values.controller.leaderElection.enabled) -}}
{{- fail "without controller.leaderElection.enabled every replica would write: set replicas to 1 and autoscaling.enabled to false" -}}
{{- end -}}
{{- if and .Values.controller.watchNamespaces (not (has .Release.Namespace .Values.controller.watchNamespaces)) -}}
{{- if and .Values.gatewayClass.create .Values.gatewayClass.parameters -}}
{{- fail (printf "gatewayClass.parameters are kept in namespace %s: add it to controller.watchNamespaces" .Release.Namespace) -}}
{{- end -}}
{{- if .Values.gateway.create -}}
{{- fail (printf "the Gateway of gateway.create would be in namespace %s: add it to controller.watchNamespaces" .Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) -}}
{{- fail "autoscaling.minReplicas must not be greater than autoscaling.maxReplicas" -}}
{{- end -}}
{{- end -}}
