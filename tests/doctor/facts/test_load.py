"""One series of samples from what different programs print."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headway.doctor.collect.metrics import parse_metrics
from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.log.scan import read_logs
from headway.doctor.facts.load import SIGHTS, clock_seconds, load_of, preempted, shape_of
from headway.telemetry.metrics import EngineMetrics
from headway.telemetry.stats import NOTHING

NEW = (
    "(APIServer pid=7) INFO 08-04 20:51:18 [loggers.py:310] Engine 000: Avg prompt throughput: 93.9 tokens/s, Avg generation throughput: 803.0 tokens/s, Running: 47 reqs, "
    "Waiting: 25 reqs, Deferred: 2 reqs, Preemptions: 14, GPU KV cache usage: 99.1%, Prefix cache hit rate: 12.5%, External prefix cache hit rate: 44.0%\n"
)
OLD = (
    "INFO 08-05 11:33:17 metrics.py:417] Avg prompt throughput: 1239.8 tokens/s, Avg generation throughput: 25.9 tokens/s, Running: 5 reqs, Swapped: 0 reqs, Pending: 3 reqs, "
    "GPU KV cache usage: 35.1%, CPU KV cache usage: 0.0%.\nINFO 08-05 11:33:17 metrics.py:433] Prefix cache hit rate: GPU: 94.35%, CPU: 0.00%\n"
)
SGLANG = (
    "[2026-03-04 15:13:22] Prefill batch, #new-seq: 1, #new-token: 90, #cached-token: 10, token usage: 0.00, #running-req: 1, #queue-req: 1, input throughput (token/s): 136.69, cuda graph: False\n"
    "[2026-03-04 15:13:23] Decode batch, #running-req: 14, #full token: 685000, full token usage: 0.49, mamba num: 12, mamba usage: 0.67, accept len: 2.77, cuda graph: True, "
    "gen throughput (token/s): 150.05, #queue-req: 2\n"
)
TENSORRT = (
    "[01/16/2026-06:20:18] [TRT-LLM] [RANK 0] [I] iter = 5560, host_step_time = 20.0ms, num_scheduled_requests: 5, states = {'num_ctx_requests': 1, 'num_ctx_tokens': 100, 'num_generation_tokens': 4}\n"
)
LLAMA = (
    "slot print_timing: id  0 | task 0 |\nprompt eval time =     182.10 ms /    20 tokens (    9.11 ms per token,   109.83 tokens per second)\n"
    "       eval time =    3300.10 ms /   100 tokens (   33.00 ms per token,    30.30 tokens per second)\n"
)


def _log(tmp_path: Path, text: str) -> Log:
    (tmp_path / "log.txt").write_text(text)
    return read_logs([tmp_path / "log.txt"], SIGHTS)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (NEW, (47, 25, 0.991, 93.9, 803.0, 0.125, 14)),
        (OLD, (5, 3, 0.351, 1239.8, 25.9, 0.9435, None)),
        (SGLANG, (14, 2, 0.49, 136.69, 150.05, 0.1, None)),
        (TENSORRT, (5, None, None, 5000.0, 200.0, None, None)),
        (LLAMA, (1, None, None, 109.83, 30.30, None, None)),
    ],
    ids=["vllm", "vllm-old", "sglang", "tensorrt-llm", "llama.cpp"],
)
def test_printed_statistics(tmp_path: Path, text: str, wanted: tuple[float | None, ...]) -> None:
    (sample,) = load_of(_log(tmp_path, text), Context({}))
    found = (sample.running, sample.waiting, sample.usage, sample.prompt_rate, sample.generation_rate, sample.hit_rate, sample.preemptions)
    assert found == pytest.approx(wanted)
    assert sample.quote.line is not None


def test_several_scrapes_go_before_lines(tmp_path: Path) -> None:
    context = Context({"metrics": [{"t": 0, "vllm:num_requests_running": 1, "vllm:generation_tokens_total": 100}, {"t": 10, "vllm:num_requests_running": 2, "vllm:generation_tokens_total": 500}]})
    samples = load_of(_log(tmp_path, NEW), context)
    assert [sample.running for sample in samples] == [1, 2]
    assert [sample.generation_rate for sample in samples] == [None, 40]


def test_scrapes_without_requests_leave_the_lines_in_place(tmp_path: Path) -> None:
    context = Context({"metrics": [{"t": 0, "vllm:num_preemptions_total": 5}, {"t": 10, "vllm:num_preemptions_total": 12}]})
    (sample,) = load_of(_log(tmp_path, NEW), context)
    assert (sample.running, sample.waiting, sample.preemptions) == (47, 25, 7)


def test_one_scrape_has_no_rates() -> None:
    (sample,) = load_of(Log(), Context({"metrics": [{"vllm:num_requests_running": 3, "vllm:gpu_cache_usage_perc": 0.5, "vllm:generation_tokens_total": 100}]}))
    assert (sample.running, sample.usage, sample.generation_rate) == (3, 0.5, None)


def test_hit_rate_of_the_interval() -> None:
    metrics = [
        {"t": 0, "vllm:num_requests_running": 1, "vllm:prefix_cache_queries_total": 1000, "vllm:prefix_cache_hits_total": 900},
        {"t": 9, "vllm:num_requests_running": 1, "vllm:prefix_cache_queries_total": 2000, "vllm:prefix_cache_hits_total": 910},
    ]
    assert load_of(Log(), Context({"metrics": metrics}))[1].hit_rate == pytest.approx(0.01)


def test_preemptions_of_lines_add_up_and_restarts_count_from_zero(tmp_path: Path) -> None:
    lines = [NEW, NEW.replace("Preemptions: 14, ", ""), NEW.replace("Preemptions: 14", "Preemptions: 6")]
    samples = load_of(_log(tmp_path, "".join(lines)), Context({}))
    assert [sample.preemptions for sample in samples] == [14, 14, 20]
    metrics = [{"t": t, "vllm:num_requests_running": 1, "vllm:num_preemptions_total": value} for t, value in enumerate((10, 14, 3))]
    assert preempted(load_of(Log(), Context({"metrics": metrics}))) == 7


def test_shape_leaves_idle_samples_out(tmp_path: Path) -> None:
    idle = NEW.replace("47", "0").replace("25 reqs", "0 reqs")
    shape = shape_of(load_of(_log(tmp_path, idle + NEW + NEW + idle), Context({})))
    assert shape is not None
    assert (shape.samples, shape.running, shape.waiting, shape.waiting_share) == (2, 47, 25, 1.0)
    assert shape.per_request == pytest.approx(803 / 47)
    assert shape_of(load_of(_log(tmp_path, idle), Context({}))) is None


def test_clock() -> None:
    assert clock_seconds("11-29 09:14:03") == clock_seconds("2026-11-29T09:14:03Z")
    assert clock_seconds("no time") is None


def test_our_own_metrics_under_all_their_names() -> None:
    """Old spellings are exported beside the new ones: each number counts once."""
    metrics = EngineMetrics("m", max_model_len=128)
    samples = []
    for second in (0, 10):
        metrics.on_step(replace(NOTHING, running=3, waiting=2, kv_usage=0.5, generation_tokens=40, prompt_tokens=100, prefix_queries=100, prefix_hits=25, preemptions=1))
        samples.append({"t": second, **parse_metrics(metrics.render().decode())})
    before, after = load_of(Log(), Context({"metrics": samples}))
    assert (before.running, before.waiting, before.usage, before.preemptions, before.engines) == (3, 2, 0.5, 1, 1)
    assert (after.generation_rate, after.prompt_rate, after.hit_rate) == (4, 10, 0.25)
    assert preempted((before, after)) == 1
