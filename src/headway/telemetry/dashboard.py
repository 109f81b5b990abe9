"""The Grafana dashboard, as a table of panels. `python -m headway.telemetry.dashboard > examples/grafana/headway.json` prints it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

_PICK = 'model_name=~"$model_name",instance=~"$instance"'
_HOST = 'instance=~"$instance"'
_EVERY = "[$__rate_interval]"
_COLUMNS, _HEIGHT = 24, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """`queries` are pairs of PromQL and legend. `unit` is Grafana's name of a unit. `width` counts 24 columns."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    about: str
    kind: Literal["timeseries", "stat", "table"] = "timeseries"
    width: int = 8


def _rate(name: str, by: str = "", more: str = "") -> str:
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} (rate({name}{{{_PICK}{more}}}{_EVERY}))"


def _quantiles(histogram: str, *percents: int) -> tuple[tuple[str, str], ...]:
    buckets = f"sum by (le) (rate({histogram}_bucket{{{_PICK}}}{_EVERY}))"
    return tuple((f"histogram_quantile({percent / 100:g}, {buckets})", f"p{percent}") for percent in percents)


def _sum(gauge: str) -> str:
    return f"sum({gauge}{{{_PICK}}})"


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    ("Now", (
        Panel("Running", "short", ((_sum("vllm:num_requests_running"), "running"),), "Sequences in the running batch.", "stat", 4),
        Panel("Waiting", "short", ((_sum("vllm:num_requests_waiting"), "waiting"),), "Sequences that wait to be scheduled.", "stat", 4),
        Panel("KV cache", "percentunit", ((f"max(vllm:kv_cache_usage_perc{{{_PICK}}})", "in use"),), "The fullest server.", "stat", 4),
        Panel("Requests", "reqps", ((_rate("vllm:request_success_total"), "finished"),), "Finished sequences per second.", "stat", 4),
        Panel("Output", "none", ((_rate("vllm:generation_tokens_total"), "tokens/s"),), "Tokens generated per second.", "stat", 4),
        Panel("Servers", "short", (("count(vllm:num_requests_running)", "servers"),), "Servers that answer /metrics.", "stat", 4),
    )),
    ("Latency", (
        Panel("Time to first token", "s", _quantiles("vllm:time_to_first_token_seconds", 50, 90, 99), "From arrival to the first token."),
        Panel("Between tokens", "s", _quantiles("vllm:inter_token_latency_seconds", 50, 90, 99), "Gaps between two tokens of a sequence."),
        Panel("End to end", "s", _quantiles("vllm:e2e_request_latency_seconds", 50, 90, 99), "From arrival to the end of the answer."),
        Panel("In the queue", "s", _quantiles("vllm:request_queue_time_seconds", 50, 90, 99), "From arrival to the first scheduling."),
        Panel("Prefill", "s", _quantiles("vllm:request_prefill_time_seconds", 50, 90, 99), "From the first scheduling to the first token."),
        Panel("Decode", "s", _quantiles("vllm:request_decode_time_seconds", 50, 90, 99), "From the first token to the last."),
        Panel("Inference", "s", _quantiles("vllm:request_inference_time_seconds", 50, 90, 99), "Prefill plus decode."),
        Panel(
            "Time per output token", "s", _quantiles("vllm:request_time_per_output_token_seconds", 50, 90, 99),
            "Decode time of a sequence divided by its tokens after the first.",
        ),
        Panel("HTTP, until the last byte", "s", tuple(
            (f'histogram_quantile({p}, sum by (le) (rate(http_request_duration_seconds_bucket{{{_HOST}}}{_EVERY})))', f"p{p * 100:g}")
            for p in (0.5, 0.99)
        ), "Buckets are coarse (0.1, 0.5, 1 s), as in vLLM."),
    )),
    ("Throughput", (
        Panel("Tokens", "none", (
            (_rate("vllm:prompt_tokens_total"), "prompt"), (_rate("vllm:generation_tokens_total"), "generated"),
        ), "Tokens per second."),
        Panel("Prompt tokens by source", "none", ((_rate("vllm:prompt_tokens_by_source_total", "source"), "{{source}}"),),
              "Computed, or taken from the prefix cache."),
        Panel("Finished by reason", "reqps", ((_rate("vllm:request_success_total", "finished_reason"), "{{finished_reason}}"),),
              "Sequences per second."),
        Panel("Tokens in one step", "none", (
            *_quantiles("vllm:iteration_tokens_total", 50, 99),
            (f"{_rate('vllm:iteration_tokens_total_sum')} / {_rate('vllm:iteration_tokens_total_count')}", "mean"),
        ), "How full the steps are."),
        Panel("Steps", "ops", ((_rate("vllm:iteration_tokens_total_count"), "steps"),), "Engine steps per second."),
        Panel("HTTP requests", "reqps", ((f"sum by (handler, status) (rate(http_requests_total{{{_HOST}}}{_EVERY}))", "{{handler}} {{status}}"),),
              "By route and class of status."),
    )),
    ("Scheduler and KV cache", (
        Panel("Sequences", "short", (
            (_sum("vllm:num_requests_running"), "running"),
            (f"sum by (reason) (vllm:num_requests_waiting_by_reason{{{_PICK}}})", "waiting: {{reason}}"),
        ), "Running and waiting."),
        Panel("KV cache in use", "percentunit", ((f"vllm:kv_cache_usage_perc{{{_PICK}}}", "{{instance}}"),), "Fraction of the blocks."),
        Panel("Prefix cache hits", "percentunit", ((
            f"{_rate('vllm:prefix_cache_hits_total')} / {_rate('vllm:prefix_cache_queries_total')}", "tokens found"),),
            "Of the prompt tokens that were looked up."),
        Panel("Preemptions", "cps", ((_rate("vllm:num_preemptions_total"), "preemptions"),),
              "Sequences put back because the KV cache was full; their work is done twice."),
        Panel("Refused by a queue limit", "reqps", ((_rate("vllm:admission_rejections_total", "reason"), "{{reason}}"),),
              "Answered with 503."),
        Panel("KV cache configuration", "short", ((f"vllm:cache_config_info{{{_PICK}}}", "{{instance}}"),), "As labels.", "table"),
    )),
    ("Requests", (
        Panel("Prompt length", "none", _quantiles("vllm:request_prompt_tokens", 50, 99), "Tokens."),
        Panel("Answer length", "none", _quantiles("vllm:request_generation_tokens", 50, 99), "Tokens."),
        Panel("max_tokens", "none", _quantiles("vllm:request_params_max_tokens", 50, 99), "What requests ask for at most."),
    )),
    ("Errors and process", (
        Panel("Failed", "percentunit", (
            (f'{_rate("vllm:request_success_total", more=",finished_reason=~" + chr(34) + "error|abort" + chr(34))} / {_rate("vllm:request_success_total")}',
             "error or abort"),
        ), "Of the finished sequences; abort = the client left or the server ended."),
        Panel("HTTP errors", "reqps", ((f'sum by (status) (rate(http_requests_total{{{_HOST},status=~"4xx|5xx"}}{_EVERY}))', "{{status}}"),),
              "By class of status."),
        Panel("Memory", "bytes", ((f"process_resident_memory_bytes{{{_HOST}}}", "{{instance}}"),), "Resident memory of the process."),
        Panel("CPU", "none", ((f"rate(process_cpu_seconds_total{{{_HOST}}}{_EVERY})", "{{instance}}"),), "Cores in use."),
        Panel("Open files", "short", ((f"process_open_fds{{{_HOST}}}", "{{instance}}"),), "Connections included."),
    )),
)  # fmt: skip


def dashboard() -> dict[str, Any]:
    """The JSON that Grafana imports."""
    return {
        "title": "Headway",
        "uid": "headway",
        "tags": ["headway", "llm"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "templating": {"list": [_data_source(), _choice("model_name"), _choice("instance")]},
        "panels": list(_panels()),
    }


def _panels() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for title, panels in ROWS:
        number += 1
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": _place(0, top, _COLUMNS, 1), "panels": []}
        top += 1
        left = 0
        height = 4 if panels[0].kind == "stat" else _HEIGHT
        for panel in panels:
            if left + panel.width > _COLUMNS:
                left, top = 0, top + height
            number += 1
            yield _panel(panel, number, _place(left, top, panel.width, height))
            left += panel.width
        top += height


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + i), "datasource": _SOURCE, "expr": expr, "legendFormat": legend,
            **({"format": "table", "instant": True} if panel.kind == "table" else {}),
        }
        for i, (expr, legend) in enumerate(panel.queries)
    ]  # fmt: skip
    return {
        "id": number, "type": panel.kind, "title": panel.title, "description": panel.about, "datasource": _SOURCE, "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []}, "targets": targets,
    }  # fmt: skip


def _place(left: int, top: int, width: int, height: int) -> dict[str, int]:
    return {"x": left, "y": top, "w": width, "h": height}


def _data_source() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}, "hide": 0}


def _choice(label: str) -> dict[str, Any]:
    return {
        "name": label, "label": label, "type": "query", "datasource": _SOURCE, "refresh": 2, "multi": True, "includeAll": True,
        "allValue": ".*", "current": {"text": "All", "value": "$__all"},
        "query": {"query": f"label_values(vllm:num_requests_running, {label})", "refId": label},
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(dashboard(), indent=1))
