"""A real server that sends its traces to a real OTLP receiver."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.tiny_server import ask, end, free_port, tiny_server
from tests.telemetry.otlp_collector import COLLECTORS, attributes

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SECRET = "xylophone-prompt"
PROTOCOL = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"


@pytest.mark.parametrize("protocol", list(COLLECTORS))
def test_each_request_is_a_span_below_its_callers(tmp_path: Path, protocol: str) -> None:
    with COLLECTORS[protocol]() as collector:
        flags = ("--otlp-traces-endpoint", collector.endpoint, "--collect-detailed-traces", "all")
        with tiny_server(tmp_path, *flags, OTEL_SERVICE_NAME="answers", **{PROTOCOL: protocol}) as served:
            first = ask(served, SECRET, traceparent=f"00-{TRACE}-{PARENT}-01", tracestate="v=1")
            ask(served, SECRET)
            end(served)
        child, root = sorted(collector.wait(2), key=lambda span: span.start_time_unix_nano)
        assert collector.scopes == {"vllm.llm_engine"}
        assert collector.resource("service.name") == "answers"
        assert SECRET.encode() not in collector.raw
    assert (child.trace_id.hex(), child.parent_span_id.hex()) == (TRACE, PARENT)
    assert (root.parent_span_id, root.trace_id != child.trace_id) == (b"", True)
    said = attributes(child)
    assert first in said["gen_ai.request.id"]
    assert (said["gen_ai.request.temperature"], said["gen_ai.usage.completion_tokens"]) == (0.5, 4)
    assert 0 < said["gen_ai.latency.time_to_first_token"] <= said["gen_ai.latency.e2e"]
    assert "--collect-detailed-traces has no effect" in served.log.read_text()


@pytest.mark.parametrize("protocol", list(COLLECTORS))
def test_a_collector_that_is_down_hurts_neither_requests_nor_the_end(tmp_path: Path, protocol: str) -> None:
    flags = ("--otlp-traces-endpoint", f"http://127.0.0.1:{free_port()}/v1/traces")
    with tiny_server(tmp_path, *flags, OTEL_BSP_SCHEDULE_DELAY="50", **{PROTOCOL: protocol}) as served:
        for _ in range(3):
            ask(served)
            time.sleep(0.1)  # a batch for each
        end(served)
    log = served.log.read_text()
    assert "Traceback" not in log
    assert log.count("opentelemetry") + log.count("Failed to export") <= 4
