{{- define "kiln.fullname" -}}
{{- if contains "kiln" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-kiln{{ end }}
{{- end }}

{{- define "kiln.selector" -}}
app.kubernetes.io/name: kiln
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kiln.labels" -}}
{{ include "kiln.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: kiln-{{ .Chart.Version }}
{{- end }}

{{/* Refuses values with which the daemon would not start. */}}
{{- define "kiln.check" -}}
{{- if .Values.network.enabled }}
{{- if not .Values.tls.existingSecret }}
{{- fail "network.enabled needs tls.existingSecret: kilnd listens beyond the pod only with TLS" }}
{{- end }}
{{- if not (or .Values.auth.existingSecret .Values.tls.clientCA .Values.auth.usersExist) }}
{{- fail "network.enabled needs users: set auth.existingSecret or tls.clientCA, or add users with kubectl exec and set auth.usersExist" }}
{{- end }}
{{- else if .Values.metrics.serviceMonitor.enabled }}
{{- fail "metrics.serviceMonitor needs network.enabled: otherwise metrics are served only inside of the pod" }}
{{- end }}
{{- if and .Values.tls.clientCA (not .Values.tls.existingSecret) }}
{{- fail "tls.clientCA needs tls.existingSecret, with ca.crt" }}
{{- end }}
{{- end }}

{{/* kilnd.toml. A value in JSON is one in TOML. Keys without a table come first. */}}
{{- define "kiln.toml" -}}
{{- $host := ternary .Values.network.address "127.0.0.1" .Values.network.enabled }}
{{- $own := dict
      "listen" (list "unix:/run/kiln/kilnd.sock" (printf "%s:7433" $host))
      "metrics" (dict "listen" (printf "%s:7434" $host)) }}
{{- if .Values.tls.existingSecret }}
{{- $tls := dict "certificate" "/etc/kiln-tls/tls.crt" "key" "/etc/kiln-tls/tls.key" }}
{{- if .Values.tls.clientCA }}{{ $_ := set $tls "client_ca" "/etc/kiln-tls/ca.crt" }}{{ end }}
{{- $_ := set $own "tls" $tls }}
{{- end }}
{{- $all := mergeOverwrite (deepCopy .Values.config) $own }}
{{- range $key, $value := $all }}
{{- if not (kindIs "map" $value) }}
{{ $key }} = {{ $value | toJson }}
{{- end }}
{{- end }}
{{- range $table, $keys := $all }}
{{- if kindIs "map" $keys }}

[{{ $table }}]
{{- range $key, $value := $keys }}
{{ $key }} = {{ $value | toJson }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "kiln.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* A volume of the StatefulSet. */}}
{{- define "kiln.claim" -}}
metadata:
  name: {{ .name }}
spec:
  accessModes: [ReadWriteOnce]
  {{- with .volume.storageClassName }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests:
      storage: {{ .volume.size }}
{{- end }}
