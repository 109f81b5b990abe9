{{/* Names and labels. Those with a component take (dict "root" . "component" "engine"). */}}

{{- define "headway.fullname" -}}
{{ printf "%s-%s" .root.Release.Name .component | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "headway.selector" -}}
app.kubernetes.io/name: headway
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "headway.labels" -}}
{{ include "headway.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* What listens, by component and name of the port. The first one is asked by the probes. */}}
{{- define "headway.ports" -}}
{{- if eq .component "engine" -}}
- {name: http, port: 8000}
{{- else if eq .component "runtime" -}}
- {name: http, port: 8100}
{{- else -}}
- {name: http, port: 8899}
- {name: metrics, port: 9190}
{{- end -}}
{{- end }}

{{/* host:port inside the cluster; the name ends in .svc so that proxy.none holds for it. */}}
{{- define "headway.address" -}}
{{ include "headway.fullname" . }}.{{ .root.Release.Namespace }}.svc:{{ (first (include "headway.ports" . | fromYamlArray)).port }}
{{- end }}

{{- define "headway.servedName" -}}
{{ .Values.engine.servedName | default .Values.engine.model }}
{{- end }}
