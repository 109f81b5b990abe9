"""What /metrics says, read back with prometheus_client's own parser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headway.telemetry.metric_families import FAMILIES, FINISH_REASONS, one_two_five
from headway.telemetry.metrics import CONTENT_TYPE, EngineMetrics
from headway.telemetry.metrics_doc import metrics_markdown
from headway.telemetry.stats import AdapterUse, RequestStats, StepStats

DOC = Path(__file__).parents[2] / "docs" / "metrics.md"

# Names that dashboards of vLLM 0.32 ask for, and those of older guides.
CONTRACT = ["num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "num_preemptions_total", "prompt_tokens_total", "generation_tokens_total", "request_success_total", "prefix_cache_queries_total", "prefix_cache_hits_total", "time_to_first_token_seconds_bucket", "inter_token_latency_seconds_bucket", "e2e_request_latency_seconds_count", "request_queue_time_seconds_sum", "request_prefill_time_seconds_sum", "request_decode_time_seconds_sum", "request_inference_time_seconds_sum", "request_prompt_tokens_bucket", "request_generation_tokens_bucket", "request_params_n_bucket", "request_params_max_tokens_bucket", "iteration_tokens_total_bucket", "cache_config_info", "request_time_per_output_token_seconds_bucket"]
LEGACY = ["vllm_time_to_first_token_seconds_bucket", "vllm_time_per_output_token_seconds_bucket", "vllm_num_requests_running", "vllm_gpu_cache_usage_perc", "vllm_request_success_total", "vllm:gpu_cache_usage_perc", "vllm:time_per_output_token_seconds_bucket"]


STEP = StepStats(
    running=2, waiting=1, kv_usage=0.25, scheduled_tokens=30, prompt_tokens=28, cached_prompt_tokens=16,
    generation_tokens=2, prefix_queries=27, prefix_hits=16, preemptions=0, preempted_tokens=0,
)  # fmt: skip
REQUEST = RequestStats(
    finish_reason="stop", prompt_tokens=28, generation_tokens=5, cached_tokens=16, preemptions=0, n=1,
    max_tokens=7, e2e_seconds=1.0, queue_seconds=0.1, prefill_seconds=0.2, decode_seconds=0.4,
)  # fmt: skip


def samples(metrics: EngineMetrics) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def value(metrics: EngineMetrics, name: str, **labels: str) -> float:
    rows = [v for have, v in samples(metrics)[name] if labels.items() <= have.items()]
    assert len(rows) == 1, rows
    return rows[0]


@pytest.fixture
def metrics() -> EngineMetrics:
    made = EngineMetrics("tiny", max_model_len=128)
    made.set_cache_info({"block_size": 16, "num_gpu_blocks": 100, "enable_prefix_caching": True})
    return made


def test_all_names_are_there_before_the_first_request(metrics: EngineMetrics) -> None:
    found = samples(metrics)
    assert [n for n in CONTRACT if "vllm:" + n not in found] == []
    assert [n for n in LEGACY if n not in found] == []
    assert {tuple(have.values()) for have, _ in found["vllm:num_requests_running"]} == {("0", "tiny")}
    assert {have["finished_reason"]: v for have, v in found["vllm:request_success_total"]} == dict.fromkeys(FINISH_REASONS, 0.0)
    assert {have["reason"] for have, _ in found["vllm:admission_rejections_total"]} == {"max_num_queued_reqs", "max_num_queued_tokens"}


def test_legacy_names_can_be_left_out() -> None:
    text = EngineMetrics("tiny", max_model_len=128, legacy_names=False).render().decode()
    assert "vllm_" not in text
    assert "gpu_cache_usage" not in text


def test_a_step_moves_gauges_counters_and_their_aliases_alike(metrics: EngineMetrics) -> None:
    metrics.on_step(replace(STEP, first_token_seconds=(0.02, 0.3), inter_token_seconds=(0.01, 0.011, 90.0)))
    metrics.on_step(replace(STEP, running=0, waiting=0, kv_usage=0.5, preemptions=3))
    assert value(metrics, "vllm:num_requests_running") == value(metrics, "vllm_num_requests_running") == 0
    assert value(metrics, "vllm:kv_cache_usage_perc") == value(metrics, "vllm:gpu_cache_usage_perc") == 0.5
    assert value(metrics, "vllm:prompt_tokens_total") == 56
    assert value(metrics, "vllm:prompt_tokens_by_source_total", source="local_compute") == 24
    assert value(metrics, "vllm:prompt_tokens_by_source_total", source="local_cache_hit") == 32
    assert value(metrics, "vllm:num_preemptions_total") == 3
    assert value(metrics, "vllm:iteration_tokens_total_bucket", le="32.0") == 2
    assert value(metrics, "vllm:iteration_tokens_total_bucket", le="16.0") == 0
    for name in ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds", "vllm_time_per_output_token_seconds"):
        assert value(metrics, name + "_bucket", le="0.01") == 1, "a value equal to the bound belongs to it"
        assert value(metrics, name + "_bucket", le="0.025") == 2
        assert value(metrics, name + "_bucket", le="+Inf") == value(metrics, name + "_count") == 3
        assert value(metrics, name + "_sum") == pytest.approx(90.021)


def test_a_finished_sequence(metrics: EngineMetrics) -> None:
    metrics.on_request(replace(REQUEST, time_per_output_token=0.1))
    assert value(metrics, "vllm:request_success_total", finished_reason="stop") == 1
    assert value(metrics, "vllm_request_success_total", finished_reason="stop") == 1
    assert value(metrics, "vllm:request_inference_time_seconds_sum") == pytest.approx(0.6)
    assert value(metrics, "vllm:request_prefill_kv_computed_tokens_sum") == 12
    assert value(metrics, "vllm:request_time_per_output_token_seconds_count") == 1
    assert value(metrics, "vllm:request_params_max_tokens_sum") == 7


def test_a_sequence_aborted_in_the_queue_has_no_prefill_time(metrics: EngineMetrics) -> None:
    metrics.on_request(replace(REQUEST, finish_reason="abort", generation_tokens=0, cached_tokens=0, max_tokens=None))
    assert value(metrics, "vllm:request_prefill_time_seconds_count") == 0
    assert value(metrics, "vllm:request_params_max_tokens_count") == 0
    assert value(metrics, "vllm:e2e_request_latency_seconds_count") == 1


def test_n_is_counted_once_per_request(metrics: EngineMetrics) -> None:
    metrics.on_request(replace(REQUEST, n=2, generation_tokens=9, last_of_request=False))
    metrics.on_request(replace(REQUEST, n=2, generation_tokens=4, longest_generation_tokens=9))
    assert value(metrics, "vllm:request_success_total", finished_reason="stop") == 2
    assert value(metrics, "vllm:request_params_n_count") == 1
    assert value(metrics, "vllm:request_params_n_sum") == 2
    assert value(metrics, "vllm:request_max_num_generation_tokens_sum") == 9


def test_token_buckets_follow_the_context_length_once_it_is_known() -> None:
    metrics = EngineMetrics("tiny")
    assert [have["le"] for have, _ in samples(metrics)["vllm:request_prompt_tokens_bucket"]] == ["+Inf"]
    metrics.set_max_model_len(60)
    bounds = [have["le"] for have, _ in samples(metrics)["vllm:request_prompt_tokens_bucket"]]
    assert bounds == ["1.0", "2.0", "5.0", "10.0", "20.0", "50.0", "+Inf"]


@pytest.mark.parametrize(("limit", "series"), [(0, ()), (1, (1,)), (5, (1, 2, 5)), (99, (1, 2, 5, 10, 20, 50)), (100, (1, 2, 5, 10, 20, 50, 100))])
def test_one_two_five(limit: int, series: tuple[int, ...]) -> None:
    assert one_two_five(limit) == series


def test_http_counts_by_route_and_leaves_probes_out(metrics: EngineMetrics) -> None:
    metrics.on_http("/v1/completions", "POST", 200, 0.2)
    metrics.on_http("/v1/completions", "POST", 404, 0.001)
    metrics.on_http("/metrics", "GET", 200, 0.2)
    metrics.on_http("none", "X-MADE-UP-1", 404, 0.2)
    metrics.on_http("none", "X-MADE-UP-2", 404, 0.2)
    assert value(metrics, "http_requests_total", status="2xx") == 1
    assert value(metrics, "http_requests_total", status="4xx", method="POST", handler="/v1/completions") == 1
    assert len(samples(metrics)["http_requests_total"]) == 3
    assert value(metrics, "http_requests_total", method="other") == 2
    assert value(metrics, "http_request_duration_seconds_bucket", le="0.1", method="POST") == 1


def test_rejections_and_cache_info(metrics: EngineMetrics) -> None:
    metrics.on_rejection("max_num_queued_tokens")
    assert value(metrics, "vllm:admission_rejections_total", reason="max_num_queued_tokens") == 1
    [(labels, one)] = samples(metrics)["vllm:cache_config_info"]
    assert one == 1
    assert labels == {"block_size": "16", "num_gpu_blocks": "100", "enable_prefix_caching": "True", "model_name": "tiny", "engine": "0"}


def test_two_engines_do_not_share_numbers(metrics: EngineMetrics) -> None:
    other = EngineMetrics("tiny", max_model_len=128)
    metrics.on_step(STEP)
    assert value(other, "vllm:prompt_tokens_total") == 0


def test_labels_with_quotes_are_escaped() -> None:
    metrics = EngineMetrics('a"b\\c\nd', max_model_len=8)
    assert {have["model_name"] for have, _ in samples(metrics)["vllm:num_requests_running"]} == {'a"b\\c\nd'}


def test_every_family_has_a_type_and_a_help_line_exactly_once(metrics: EngineMetrics) -> None:
    metrics.on_http("/v1/completions", "POST", 200, 0.2)
    metrics.on_step(replace(STEP, adapters=AdapterUse(2, ("a", "b"), ())))
    lines = metrics.render().decode().splitlines()
    for family in FAMILIES:
        kind = "gauge" if family.kind == "info" else family.kind
        assert lines.count(f"# TYPE {family.exposed} {kind}") == 1
        assert sum(line.startswith(f"# HELP {family.exposed} ") for line in lines) == 1
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")


def test_the_documentation_is_current() -> None:
    assert DOC.read_text(encoding="utf-8") == metrics_markdown(), "run `make docs`"


def test_memory_is_told_by_part_and_what_is_unknown_is_left_out() -> None:
    metrics = EngineMetrics("m", max_model_len=10)
    assert b"headway:memory_bytes{" not in metrics.render()
    metrics.set_memory({"weights": 100, "kv_cache": 50, "activations": None})
    text = metrics.render().decode()
    assert 'headway:memory_bytes{model_name="m",part="weights"} 100.0' in text
    assert 'headway:memory_bytes{model_name="m",part="kv_cache"} 50.0' in text
    assert 'part="activations"' not in text


def test_adapters_are_told_as_they_are_now() -> None:
    metrics = EngineMetrics("m", max_model_len=10)
    metrics.on_step(STEP)
    assert "vllm:lora_requests_info" not in samples(metrics)
    for running, waiting in ((("a",), ("b", "c")), (("b", "c"), ())):
        metrics.on_step(replace(STEP, adapters=AdapterUse(2, running, waiting)))
        ((labels, when),) = samples(metrics)["vllm:lora_requests_info"]
        assert labels == {
            "max_lora": "2", "running_lora_adapters": ",".join(running), "waiting_lora_adapters": ",".join(waiting), "model_name": "m", "engine": "0",
        }  # fmt: skip
        assert when > 1e9
