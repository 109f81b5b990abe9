"""Reporting and scraping at the same time for a while: no torn histogram, no lost event."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headway.telemetry.metrics import EngineMetrics
from tests.telemetry.test_metrics import REQUEST, STEP

GAPS = tuple(0.001 * i for i in range(200))
COUNTED = ("_total", "_count", "_bucket", "_sum")
ITL = "vllm:inter_token_latency_seconds"


def scrape(metrics: EngineMetrics) -> dict[str, float]:
    """All samples that may only grow, by name and labels beside those of every sample."""
    found = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            if sample.name.endswith(COUNTED) and not sample.name.startswith("process"):
                own = sorted(value for label, value in sample.labels.items() if label not in ("model_name", "engine"))
                found[" ".join([sample.name, *own])] = sample.value
    return found


@pytest.fixture
def hurried_threads() -> Iterator[None]:
    """Threads change places a thousand times more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.long
@pytest.mark.usefixtures("hurried_threads")
def test_scrapes_stay_consistent_while_the_engine_reports() -> None:
    metrics = EngineMetrics("tiny", max_model_len=4096)
    stop = threading.Event()
    done = [0, 0, 0]

    def report(index: int) -> None:
        while not stop.is_set():
            metrics.on_step(replace(STEP, inter_token_seconds=GAPS))
            metrics.on_request(REQUEST)
            metrics.on_http("/v1/completions", "POST", 200, 0.01)
            done[index] += 1

    threads = [threading.Thread(target=report, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    try:
        last: dict[str, float] = {}
        until = time.monotonic() + 20
        while time.monotonic() < until:
            now = scrape(metrics)
            assert all(now[key] >= value for key, value in last.items()), "a counter went back"
            assert now[f"{ITL}_count"] % len(GAPS) == 0, "half a step was seen"
            assert now[f"{ITL}_count"] == now[f"{ITL}_bucket +Inf"]
            last = now
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    events = sum(done)
    final = scrape(metrics)
    assert events > 100
    assert final["vllm:prompt_tokens_total"] == STEP.prompt_tokens * events
    assert final["vllm:request_success_total stop"] == events
    assert final[f"{ITL}_count"] == len(GAPS) * events
    assert final["http_requests_total /v1/completions 2xx POST"] == events
