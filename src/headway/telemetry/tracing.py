"""One OpenTelemetry span for each finished request, sent over OTLP. Names and attributes are vLLM's; never a text.

OpenTelemetry comes with `pip install 'headway[otel]'` and is imported here only when traces are asked for.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from headway.errors import ConfigError
from headway.telemetry.stats import RequestStats

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

TRACE_HEADERS = ("traceparent", "tracestate")  # W3C Trace Context
PROTOCOL_VARIABLE = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
_SPAN = "llm_request"
_SCOPE = "vllm.llm_engine"
_NANOSECONDS = 1e9

# attribute -> value of a finished request; None leaves the attribute out
_ATTRIBUTES: Mapping[str, Callable[[RequestStats], Any]] = {
    "gen_ai.request.id": lambda r: r.request_id,
    "gen_ai.request.n": lambda r: r.n,
    "gen_ai.request.max_tokens": lambda r: r.max_tokens,
    "gen_ai.request.temperature": lambda r: r.temperature,
    "gen_ai.request.top_p": lambda r: r.top_p,
    "gen_ai.response.finish_reasons": lambda r: [r.finish_reason],
    "gen_ai.usage.prompt_tokens": lambda r: r.prompt_tokens,
    "gen_ai.usage.completion_tokens": lambda r: r.all_generation_tokens,
    "gen_ai.latency.e2e": lambda r: r.e2e_seconds,
    "gen_ai.latency.time_in_queue": lambda r: r.queue_seconds,
    "gen_ai.latency.time_to_first_token": lambda r: _if_begun(r, r.queue_seconds + r.prefill_seconds),
    "gen_ai.latency.time_in_model_prefill": lambda r: _if_begun(r, r.prefill_seconds),
    "gen_ai.latency.time_in_model_decode": lambda r: _if_begun(r, r.decode_seconds),
    "gen_ai.latency.time_in_model_inference": lambda r: _if_begun(r, r.prefill_seconds + r.decode_seconds),
}


def trace_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of `headers` by which a caller says which trace it belongs to."""
    return {name: headers[name] for name in TRACE_HEADERS if name in headers}


class RequestTracer:
    """Makes spans of finished requests. Spans wait in a bounded queue and are sent by a thread of OpenTelemetry's.

    A collector that is down or slow costs spans, never requests: `on_request` only appends to the queue.
    """

    def __init__(self, endpoint: str, model_name: str):
        """`endpoint` as for vLLM: a collector's address, for HTTP with its path (`http://host:4318/v1/traces`).

        Raises ConfigError (`missing_package`, or a value of OTEL_EXPORTER_OTLP_TRACES_PROTOCOL that is unknown).
        """
        exporter = _exporter(endpoint)
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._model_name = model_name
        self._provider = TracerProvider(shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(_SCOPE)
        self._extract = TraceContextTextMapPropagator().extract

    def on_request(self, stats: RequestStats) -> None:
        """One finished sequence; the last of a request makes its span."""
        if not stats.last_of_request or stats.trace_headers is None:
            return
        from opentelemetry.trace import SpanKind, Status, StatusCode

        end = time.time_ns()
        span = self._tracer.start_span(
            _SPAN,
            context=self._extract(dict(stats.trace_headers)),
            kind=SpanKind.SERVER,
            start_time=end - int(stats.e2e_seconds * _NANOSECONDS),
        )
        span.set_attribute("gen_ai.response.model", self._model_name)
        for name, value_of in _ATTRIBUTES.items():
            value = value_of(stats)
            if value is not None:
                span.set_attribute(name, value)
        if stats.finish_reason == "error":
            span.set_status(Status(StatusCode.ERROR))
        span.end(end)

    def close(self, seconds: float) -> None:
        """Send what waits, for at most `seconds`; a collector that does not answer gets no more than that."""
        sending = threading.Thread(target=self._provider.shutdown, name="TraceEnd", daemon=True)
        sending.start()
        sending.join(seconds)


def _if_begun(request: RequestStats, seconds: float) -> float | None:
    return seconds if request.generation_tokens else None


def _exporter(endpoint: str) -> SpanExporter:
    protocol = os.environ.get(PROTOCOL_VARIABLE) or "grpc"
    try:
        if protocol == "grpc":
            _check_address(endpoint, ("grpc", "http", "https", ""), "grpc://HOST:PORT")
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as OverGrpc

            return OverGrpc(endpoint=endpoint, insecure=not endpoint.startswith("https://"))
        if protocol == "http/protobuf":
            _check_address(endpoint, ("http", "https"), "http://HOST:PORT/v1/traces")
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as OverHttp

            return OverHttp(endpoint=endpoint)
    except ImportError as error:
        raise ConfigError(
            f"--otlp-traces-endpoint needs OpenTelemetry, which is not installed ({error.name})",
            reason="missing_package", param="otlp_traces_endpoint", fix="pip install 'headway[otel]'",
        ) from error  # fmt: skip
    raise ConfigError(
        f"{PROTOCOL_VARIABLE} must be grpc or http/protobuf, got {protocol[:40]!r}", param=PROTOCOL_VARIABLE, fix="Set it to one of them."
    )


def _check_address(endpoint: str, schemes: tuple[str, ...], example: str) -> None:
    """The exporters take any text, and every span is lost later."""
    scheme, _, rest = endpoint.rpartition("://")
    try:
        parts = urlsplit(f"//{rest}")
        fits = scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise ConfigError(
            f"--otlp-traces-endpoint must be an address such as {example} with this protocol ({PROTOCOL_VARIABLE}), got {endpoint[:100]!r}",
            param="otlp_traces_endpoint", fix="Give the address of the collector.",
        )  # fmt: skip
