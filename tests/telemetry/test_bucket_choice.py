"""--custom-histogram-buckets, as prometheus_client's own parser reads the result."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headway.errors import ConfigError
from headway.telemetry.bucket_choice import GROUPS, chosen_buckets
from headway.telemetry.metric_families import FAMILIES
from headway.telemetry.metrics import EngineMetrics


def borders(given: dict[str, object], name: str) -> list[float]:
    metrics = EngineMetrics("m", max_model_len=100, buckets=chosen_buckets(given))
    metrics.set_max_model_len(100)
    families = {family.name: family for family in text_string_to_metric_families(metrics.render().decode())}
    return [float(s.labels["le"]) for s in families[name].samples if s.name == f"{name}_bucket"]


def test_a_group_a_metric_and_the_rest() -> None:
    given: dict[str, object] = {"request_latency": [0.1, 1], "vllm:request_queue_time_seconds": [5]}
    inf = float("inf")
    assert borders(given, "vllm:e2e_request_latency_seconds") == [0.1, 1, inf]
    assert borders(given, "vllm:request_queue_time_seconds") == [5, inf]
    assert borders(given, "vllm:time_to_first_token_seconds")[:2] == [0.001, 0.005]
    assert borders({"request_tokens": [7, 70]}, "vllm:request_prompt_tokens") == [7, 70, inf]
    assert borders({"inter_token_latency": [0.5]}, "vllm:time_per_output_token_seconds") == [0.5, inf], "aliases follow"


def test_every_histogram_is_in_reach_of_a_name() -> None:
    for family in FAMILIES:
        if family.kind == "histogram":
            assert chosen_buckets({family.name: [1]}) == {family.name: (1,)}
    for group in GROUPS:
        assert chosen_buckets({group: [1]})


@pytest.mark.parametrize("value", [[], [2, 1], [1, 1], ["a"], [float("nan")], [True], 5, None, "1,2", list(range(201))])
def test_borders_rise(value: object) -> None:
    with pytest.raises(ConfigError, match="needs 1 to 200 rising numbers"):
        chosen_buckets({"request_latency": value})


def test_unknown_names_draw_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'request_latency'"):
        chosen_buckets({"request_latencies": [1]})
