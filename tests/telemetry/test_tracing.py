"""Spans as a real OTLP receiver gets them."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from headway.errors import ConfigError
from headway.telemetry.stats import RequestStats
from headway.telemetry.tracing import PROTOCOL_VARIABLE, RequestTracer, trace_headers
from tests.telemetry.otlp_collector import COLLECTORS, attributes

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
HEADERS = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
DONE = RequestStats(
    finish_reason="stop", prompt_tokens=7, generation_tokens=5, cached_tokens=0, preemptions=0, n=1, max_tokens=16, e2e_seconds=2.0,
    queue_seconds=0.25, prefill_seconds=0.5, decode_seconds=1.0, all_generation_tokens=5, request_id="cmpl-1", temperature=0.5, top_p=0.9,
    trace_headers=HEADERS,
)  # fmt: skip


def spans_of(monkeypatch: pytest.MonkeyPatch, *finished: RequestStats, protocol: str = "http/protobuf") -> list[Span]:
    monkeypatch.setenv(PROTOCOL_VARIABLE, protocol)
    with COLLECTORS[protocol]() as collector:
        tracer = RequestTracer(collector.endpoint, "tiny")
        for stats in finished:
            tracer.on_request(stats)
        tracer.close(20)
        return collector.spans


@pytest.mark.parametrize("protocol", list(COLLECTORS))
def test_a_finished_request_is_one_span(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    (span,) = spans_of(monkeypatch, DONE, protocol=protocol)
    assert (span.name, span.kind) == ("llm_request", Span.SPAN_KIND_SERVER)
    assert (span.trace_id.hex(), span.parent_span_id.hex(), span.trace_state) == (TRACE, PARENT, "vendor=1")
    assert span.end_time_unix_nano - span.start_time_unix_nano == 2_000_000_000
    assert abs(span.end_time_unix_nano - time.time_ns()) < 60e9
    assert attributes(span) == {
        "gen_ai.request.id": "cmpl-1",
        "gen_ai.request.n": 1,
        "gen_ai.request.max_tokens": 16,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.response.model": "tiny",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.prompt_tokens": 7,
        "gen_ai.usage.completion_tokens": 5,
        "gen_ai.latency.e2e": 2.0,
        "gen_ai.latency.time_in_queue": 0.25,
        "gen_ai.latency.time_to_first_token": 0.75,
        "gen_ai.latency.time_in_model_prefill": 0.5,
        "gen_ai.latency.time_in_model_decode": 1.0,
        "gen_ai.latency.time_in_model_inference": 1.5,
    }


def test_of_several_sequences_the_last_speaks_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    first = replace(DONE, n=2, last_of_request=False, all_generation_tokens=0)
    (span,) = spans_of(monkeypatch, first, replace(DONE, n=2, all_generation_tokens=9))
    assert attributes(span)["gen_ai.usage.completion_tokens"] == 9


def test_a_request_that_got_no_token_has_no_times_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = replace(DONE, finish_reason="error", generation_tokens=0, all_generation_tokens=0, max_tokens=None, trace_headers={})
    (span,) = spans_of(monkeypatch, failed)
    names = attributes(span)
    assert "gen_ai.latency.time_to_first_token" not in names
    assert "gen_ai.request.max_tokens" not in names
    assert (span.status.code, span.parent_span_id) == (Status.STATUS_CODE_ERROR, b"")


@pytest.mark.parametrize("broken", ["", "00-zz-00-01", "x" * 5000, f"00-{'0' * 32}-{PARENT}-01"])
def test_a_broken_parent_begins_a_new_trace(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    (span,) = spans_of(monkeypatch, replace(DONE, trace_headers={"traceparent": broken}))
    assert (len(span.trace_id), span.parent_span_id) == (16, b"")


def test_the_inner_requests_of_a_beam_search_are_no_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spans_of(monkeypatch, replace(DONE, trace_headers=None)) == []


def test_a_caller_that_is_not_sampled_costs_no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    unsampled = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
    assert spans_of(monkeypatch, replace(DONE, trace_headers=unsampled)) == []


def test_only_trace_headers_are_taken() -> None:
    assert trace_headers({**HEADERS, "authorization": "Bearer secret"}) == HEADERS
    assert trace_headers({"traceparent": "x"}) == {"traceparent": "x"}


def test_without_opentelemetry_the_pip_command_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.grpc.trace_exporter", None)
    with pytest.raises(ConfigError, match=r"pip install 'headway\[otel\]'") as caught:
        RequestTracer("grpc://127.0.0.1:4317", "tiny")
    assert caught.value.reason == "missing_package"


def test_an_unknown_protocol_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROTOCOL_VARIABLE, "http/json")
    with pytest.raises(ConfigError, match="must be grpc or http/protobuf, got 'http/json'"):
        RequestTracer("http://127.0.0.1:4318", "tiny")


@pytest.mark.parametrize(
    ("protocol", "endpoint", "says"),
    [
        ("grpc", "", "got ''"),
        ("grpc", "ftp://127.0.0.1:4317", "grpc://HOST:PORT"),
        ("grpc", "http://", "grpc://HOST:PORT"),
        ("grpc", "http://host:port", "grpc://HOST:PORT"),
        ("http/protobuf", "127.0.0.1:4318", "http://HOST:PORT/v1/traces"),
        ("http/protobuf", "grpc://127.0.0.1:4318", "http://HOST:PORT/v1/traces"),
    ],
)
def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, protocol: str, endpoint: str, says: str) -> None:
    monkeypatch.setenv(PROTOCOL_VARIABLE, protocol)
    with pytest.raises(ConfigError, match=says) as caught:
        RequestTracer(endpoint, "tiny")
    assert caught.value.param == "otlp_traces_endpoint"


@pytest.mark.parametrize("protocol", list(COLLECTORS))
def test_a_collector_that_is_down_holds_nobody_up(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    """More spans than the queue holds; the end returns while the last attempt to send still runs."""
    monkeypatch.setenv(PROTOCOL_VARIABLE, protocol)
    tracer = RequestTracer("http://127.0.0.1:9/v1/traces", "tiny")
    for _ in range(3000):
        tracer.on_request(DONE)
    tracer.close(0.2)
    assert any(thread.name == "TraceEnd" for thread in threading.enumerate())
