"""Scrapes by family, whatever the prefix; growth, means and quantiles between two of them."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from headway.doctor.collect.metrics import parse_metrics
from headway.doctor.evidence.context import Context
from headway.doctor.facts.metrics import grown, read_scrape, span_of


def test_prefixes_labels_and_total() -> None:
    scrape = read_scrape(0, {"t": 3, 'vllm:a_total{engine="0",model_name="x,y"}': 2, "vllm:a_total{engine=1,model_name=z}": 3, "headway:b": 7, "sglang_c": 1})
    assert scrape.t == 3
    assert scrape.total("a") == 5
    assert scrape.total("a", engine="1") == 3
    assert scrape.by("engine", "a") == {"0": 2, "1": 3}
    assert scrape.total("b") == 7
    assert scrape.total("c") == 1
    assert scrape.total("d") is None


def test_one_family_under_two_prefixes_counts_once() -> None:
    scrape = read_scrape(0, {"vllm:running{engine=0}": 4, "vllm:running{engine=1}": 5, "vllm_running{engine=0}": 4})
    assert scrape.total("running") == 9
    assert scrape.highest("running") == 5


def test_words_and_not_a_number_are_left_out() -> None:
    scrape = read_scrape(0, {"vllm:x": float("nan"), "vllm:y": "many", "vllm:z": True, "t": "noon"})
    assert scrape.families == {}
    assert scrape.t is None


def test_growth_of_a_counter() -> None:
    assert grown(3, 10) == 7
    assert grown(10, 3) == 3
    assert grown(None, 3) is None


def _histogram_text(values: list[float]) -> str:
    registry = CollectorRegistry()
    histogram = Histogram("vllm:wait_seconds", "x", ["engine"], buckets=(0.1, 1, 10), registry=registry)
    for value in values:
        histogram.labels("0").observe(value)
    return generate_latest(registry).decode()


def test_mean_and_quantile_of_an_interval_only() -> None:
    before, after = _histogram_text([0.05] * 90), _histogram_text([0.05] * 90 + [4.0] * 10)
    span = span_of(Context({"metrics": [{"t": 0, **parse_metrics(before)}, {"t": 5, **parse_metrics(after)}]}))
    assert span is not None
    assert span.seconds == 5
    assert span.mean("wait_seconds") == pytest.approx(4.0)
    assert span.quantile("wait_seconds", 0.5) == pytest.approx(5.5)  # the middle of (1, 10]
    since_start = span_of(Context({"metrics": [parse_metrics(after)]}))
    assert since_start is not None
    assert since_start.since_start
    assert since_start.mean("wait_seconds") == pytest.approx(0.445)
    assert since_start.quantile("wait_seconds", 0.9) == pytest.approx(0.1)
    assert since_start.rate("wait_seconds_count") is None


def test_ready_made_mean() -> None:
    span = span_of(Context({"metrics": [{"vllm:wait_seconds_avg": 2.5}]}))
    assert span is not None
    assert span.mean("wait_seconds") == 2.5


def test_no_metrics() -> None:
    assert span_of(Context({})) is None
