{{/*
A Deployment. Takes: root, component, settings (its part of the values), command, args, env; drain (seconds from SIGTERM to the end of the process);
ready and live (paths of probes); replicas false when something else sets them; volumes and mounts of its own; annotations.
*/}}
{{- define "headway.deployment" -}}
{{- $values := .root.Values }}
{{- $before := 5 }}{{/* seconds until nobody sends new requests any more: endpoints are withdrawn while this sleep runs */}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "headway.fullname" . }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "headway.labels" . | nindent 4 }}
spec:
  {{- if .replicas }}
  replicas: {{ .settings.replicas }}
  {{- end }}
  progressDeadlineSeconds: {{ add .settings.startupSeconds 120 }}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  selector:
    matchLabels: {{- include "headway.selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "headway.labels" . | nindent 8 }}
      {{- with .annotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ add $before .drain 5 }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: {type: RuntimeDefault}
      {{- with $values.image.pullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "headway.selector" . | nindent 14 }}
      {{- with .settings.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .settings.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .settings.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: "{{ $values.image.repository }}:{{ $values.image.tag | default .root.Chart.AppVersion }}"
          imagePullPolicy: {{ $values.image.pullPolicy }}
          command: {{- toYaml .command | nindent 12 }}
          args: {{- toYaml .args | nindent 12 }}
          env:
            {{- include "headway.environment" . | nindent 12 }}
            {{- with .env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
            {{- with .settings.env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            {{- range include "headway.ports" . | fromYamlArray }}
            - {name: {{ .name }}, containerPort: {{ .port }}}
            {{- end }}
          {{- $period := 5 }}
          startupProbe:
            httpGet: {path: {{ .ready }}, port: http}
            periodSeconds: {{ $period }}
            timeoutSeconds: 3
            failureThreshold: {{ max 1 (div .settings.startupSeconds $period) }}
          readinessProbe:
            httpGet: {path: {{ .ready }}, port: http}
            periodSeconds: {{ $period }}
            timeoutSeconds: 3
            failureThreshold: 2
          livenessProbe:
            httpGet: {path: {{ .live }}, port: http}
            periodSeconds: {{ $period }}
            timeoutSeconds: 5
            failureThreshold: {{ max 1 (div .settings.livenessSeconds $period) }}
          lifecycle:
            preStop:
              exec: {command: ["sleep", {{ $before | toString | quote }}]}
          resources: {{- toYaml .settings.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: cache, mountPath: /cache}
            - {name: tmp, mountPath: /tmp}
            {{- if $values.models.volume }}
            - {name: models, mountPath: /models, readOnly: true}
            {{- end }}
            {{- with concat (.mounts | default list) .settings.volumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: cache
          {{- toYaml ($values.models.cache | default (dict "emptyDir" (dict "sizeLimit" "20Gi"))) | nindent 10 }}
        - {name: tmp, emptyDir: {sizeLimit: 1Gi}}
        {{- with $values.models.volume }}
        - name: models
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- with concat (.volumes | default list) .settings.volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}

{{/* The variables of every pod. */}}
{{- define "headway.environment" -}}
{{- $values := .root.Values -}}
- {name: HOME, value: /cache}
- {name: HEADWAY_CACHE, value: /cache/headway}
- {name: HF_HOME, value: /cache/huggingface}
{{- if $values.models.offline }}
- {name: HF_HUB_OFFLINE, value: "1"}
{{- end }}
{{- with $values.models.hub }}
- {name: HF_ENDPOINT, value: {{ . | quote }}}
{{- end }}
{{- with $values.proxy.http }}
- {name: HTTP_PROXY, value: {{ . | quote }}}
{{- end }}
{{- with $values.proxy.https }}
- {name: HTTPS_PROXY, value: {{ . | quote }}}
{{- end }}
{{- if or $values.proxy.http $values.proxy.https }}
- {name: NO_PROXY, value: {{ $values.proxy.none | quote }}}
{{- end }}
{{- if $values.models.token.secret }}
{{ include "headway.secretVariable" (dict "name" "HF_TOKEN" "from" $values.models.token) }}
{{- end }}
{{- end }}

{{- define "headway.secretVariable" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef: {name: {{ .from.secret }}, key: {{ .from.key }}}
{{- end }}

{{/* The keys of engines and runtimes, which the router has to know as well. */}}
{{- define "headway.engineKey" -}}
{{- if .Values.engine.apiKey.secret }}
{{- include "headway.secretVariable" (dict "name" "VLLM_API_KEY" "from" .Values.engine.apiKey) }}
{{- end }}
{{- end }}

{{- define "headway.runtimeKey" -}}
{{- if .Values.runtime.apiKey.secret }}
{{- include "headway.secretVariable" (dict "name" "VLLM_SRUN_API_KEY" "from" .Values.runtime.apiKey) }}
{{- end }}
{{- end }}
