{{- define "hopmesh.name" -}}
{{- if contains "hopmesh" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-hopmesh" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "hopmesh.selector" -}}
app.kubernetes.io/name: hopmesh
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hopmesh.labels" -}}
{{ include "hopmesh.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "." | quote }}
{{- end }}

{{- define "hopmesh.secret" -}}
{{ .Values.join.secret | default (printf "%s-join" (include "hopmesh.name" .)) }}
{{- end }}
