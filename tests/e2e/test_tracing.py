"""A real server that sends its traces to a real OTLP receiver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.served_model import Served, wait_ready
from tests.e2e.tiny_model import tiny_model
from tests.shim.environments import ROOT
from tests.telemetry.otlp_collector import COLLECTORS, attributes

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SECRET = "xylophone-prompt"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def start(model: Path, tmp_path: Path) -> Iterator[object]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(*flags: str, **variables: str) -> Served:
        port = _free_port()
        log = tmp_path / "server.log"
        command = [sys.executable, "-m", "headway.cli.main", "serve", str(model), "--port", str(port), "--max-model-len", "256", *flags]
        environment = {**os.environ, "HEADWAY_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT / "src"), **variables}
        with log.open("wb") as out:
            started.append(subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment))
        served = Served(started[-1], f"http://127.0.0.1:{port}", log)
        wait_ready(served)
        return served

    yield begin
    for process in started:
        process.kill()
        process.wait(20)


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(served: Served, **headers: str) -> str:
    body = {"prompt": SECRET, "max_tokens": 4, "ignore_eos": True, "temperature": 0.5}
    answer = httpx.post(served.url + "/v1/completions", json=body, headers=headers, trust_env=False, timeout=60)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


@pytest.mark.parametrize("protocol", list(COLLECTORS))
def test_each_request_is_a_span_below_its_callers(start: object, protocol: str) -> None:
    with COLLECTORS[protocol]() as collector:
        variables = {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": protocol, "OTEL_SERVICE_NAME": "answers"}
        served = start("--otlp-traces-endpoint", collector.endpoint, "--collect-detailed-traces", "all", **variables)  # type: ignore[operator]
        first = ask(served, traceparent=f"00-{TRACE}-{PARENT}-01", tracestate="v=1")
        ask(served)
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(30) == 0
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
def test_a_collector_that_is_down_hurts_neither_requests_nor_the_end(start: object, protocol: str) -> None:
    address = f"http://127.0.0.1:{_free_port()}/v1/traces"
    served = start("--otlp-traces-endpoint", address, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=protocol, OTEL_BSP_SCHEDULE_DELAY="50")  # type: ignore[operator]
    for _ in range(3):
        ask(served)
        time.sleep(0.1)
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(20) == 0
    assert "Traceback" not in served.log.read_text()
