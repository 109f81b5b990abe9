"""The result of `headway bench serve` as the table that vLLM prints and as the JSON that its tools read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from headway.bench.measures import Exchange, ServeSummary

WIDTH = 50
TITLES = {
    "ttft": "Time to First Token",
    "tpot": "Time per Output Token (excl. 1st token)",
    "itl": "Inter-token Latency",
    "e2el": "End-to-end Latency",
}
_LABELS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL"}


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under what a load ran: what the JSON says besides the numbers."""

    backend: str
    model_id: str
    tokenizer_id: str
    num_prompts: int
    request_rate: float
    burstiness: float
    max_concurrency: int | None
    label: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()


def _row(name: str, value: object) -> str:
    shown = f"{value:<10.2f}" if isinstance(value, float) else f"{value:<10}"
    return f"{name:<40} {shown}".rstrip()


def table(summary: ServeSummary, conditions: Conditions, shown: Sequence[str]) -> str:
    """The printed result; `shown` names the measures that get a section."""
    rows = [
        f"{' Serving Benchmark Result ':=^{WIDTH}}",
        _row("Successful requests:", summary.completed),
        _row("Failed requests:", summary.failed),
    ]
    if conditions.max_concurrency is not None:
        rows.append(_row("Maximum request concurrency:", conditions.max_concurrency))
    if conditions.request_rate != float("inf"):
        rows.append(_row("Request rate configured (RPS):", conditions.request_rate))
    rows += [
        _row("Benchmark duration (s):", summary.duration),
        _row("Total input tokens:", summary.input_tokens),
        _row("Total generated tokens:", summary.output_tokens),
        _row("Request throughput (req/s):", summary.request_throughput),
    ]
    if summary.goodput is not None:
        rows.append(_row("Request goodput (req/s):", summary.goodput))
    rows += [
        _row("Output token throughput (tok/s):", summary.output_throughput),
        _row("Peak output token throughput (tok/s):", summary.peak_output_tokens),
        _row("Peak concurrent requests:", float(summary.peak_concurrency)),
        _row("Total token throughput (tok/s):", summary.total_token_throughput),
    ]
    for name in shown:
        spread, label = summary.spreads[name], _LABELS[name]
        rows.append(f"{TITLES[name]:-^{WIDTH}}")
        rows.append(_row(f"Mean {label} (ms):", spread.mean))
        rows.append(_row(f"Median {label} (ms):", spread.median))
        rows += [_row(f"P{_percent(p)} {label} (ms):", value) for p, value in spread.percentiles]
    rows.append("=" * WIDTH)
    return "\n".join(rows)


def result(
    summary: ServeSummary, conditions: Conditions, exchanges: Sequence[Exchange], now: datetime, *, detailed: bool
) -> dict[str, Any]:
    """The JSON record, keys as in vLLM; `detailed` adds one list per recorded thing, in the order of the prompts."""
    record: dict[str, Any] = {
        "date": now.strftime("%Y%m%d-%H%M%S"),
        "endpoint_type": conditions.backend,
        "backend": conditions.backend,
        "label": conditions.label,
        "model_id": conditions.model_id,
        "tokenizer_id": conditions.tokenizer_id,
        "num_prompts": conditions.num_prompts,
        **dict(conditions.metadata),
        "request_rate": conditions.request_rate if conditions.request_rate != float("inf") else "inf",
        "burstiness": conditions.burstiness,
        "max_concurrency": conditions.max_concurrency,
        "duration": summary.duration,
        "completed": summary.completed,
        "failed": summary.failed,
        "total_input_tokens": summary.input_tokens,
        "total_output_tokens": summary.output_tokens,
        "request_throughput": summary.request_throughput,
        "request_goodput": summary.goodput,
        "output_throughput": summary.output_throughput,
        "total_token_throughput": summary.total_token_throughput,
        "max_output_tokens_per_s": summary.peak_output_tokens,
        "max_concurrent_requests": summary.peak_concurrency,
        "rtfx": 0.0,  # of audio; there is none
    }
    for name, spread in summary.spreads.items():
        record |= {f"mean_{name}_ms": spread.mean, f"median_{name}_ms": spread.median, f"std_{name}_ms": spread.std}
        record |= {f"p{_percent(p)}_{name}_ms": value for p, value in spread.percentiles}
    if detailed:
        record |= _details(exchanges)
    return record


def _details(exchanges: Sequence[Exchange]) -> dict[str, Any]:
    return {
        "input_lens": [e.prompt_tokens for e in exchanges],
        "output_lens": [e.output_tokens for e in exchanges],
        "ttfts": [e.ttft for e in exchanges],
        "itls": [e.itls for e in exchanges],
        "latencies": [e.latency for e in exchanges],
        "start_times": [e.start for e in exchanges],
        "queue_times": [e.queued for e in exchanges],
        "generated_texts": [e.text for e in exchanges],
        "errors": [e.error for e in exchanges],
    }


def result_path(folder: str | None, name: str | None, conditions: Conditions, now: datetime) -> Path:
    """Where the record goes: the given name, or one made of backend, rate, concurrency, model and time."""
    if name is None:
        rate = "inf" if conditions.request_rate == float("inf") else f"{conditions.request_rate:g}"
        many = "" if conditions.max_concurrency is None else f"-concurrency{conditions.max_concurrency}"
        model = conditions.model_id.rstrip("/").split("/")[-1]
        label = conditions.label or conditions.backend
        name = f"{label}-{rate}qps{many}-{model}-{now.strftime('%Y%m%d-%H%M%S')}.json"
    return Path(folder or ".") / name


def save(record: Mapping[str, Any], path: Path, *, append: bool) -> None:
    """Write the record; with `append`, as one more line behind what is there. Makes the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record)
    if append and path.exists() and path.stat().st_size:
        text = "\n" + text
    with path.open("a" if append else "w", encoding="utf-8") as out:
        out.write(text)


def _percent(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
