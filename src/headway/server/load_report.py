"""The load of the engine in a header of answers (ORCA), for balancers that route by it."""

from __future__ import annotations

import orjson
from starlette.responses import Response

from headway.server.engine_port import StatusPort

ASKED_BY = "endpoint-load-metrics-format"
HEADER = "endpoint-load-metrics"


def report_load(response: Response, form: str | None, status: StatusPort) -> None:
    """`form` is what the client asked for: json or text, whatever the case; anything else asks for nothing, as in vLLM."""
    named = {"kv_cache_usage_perc": status.kv_usage, "num_requests_waiting": float(status.waiting)}
    kind = (form or "").strip().lower()
    if kind == "json":
        response.headers[HEADER] = "JSON " + orjson.dumps({"named_metrics": named}).decode()
    elif kind == "text":
        response.headers[HEADER] = "TEXT " + ", ".join(f"named_metrics.{name}={value:g}" for name, value in named.items())
