"""Scrapes: names and labels, texts that are none, a watch."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from headway.doctor.collect.metrics import parse_metrics, scrape, watch
from headway.errors import DoctorError
from tests.doctor.collect.web import answering

SCRAPES = Path(__file__).parents[1] / "scrapes"


def test_names_labels_and_values() -> None:
    found = parse_metrics('# TYPE vllm:x counter\nvllm:x_total{model_name="a b",engine="0"} 3.0\nvllm:x_created{engine="0"} 1e9\nplain 1.5\n')
    assert found == {"vllm:x_total{engine=0,model_name=a b}": 3.0, "plain": 1.5}


@pytest.mark.parametrize("text", ["<html>not found</html>", "a b c d", "x{y 1", 'x{y="1} 2\n', "name value\n"])
def test_a_broken_text_is_refused(text: str) -> None:
    with pytest.raises(DoctorError) as caught:
        parse_metrics(text)
    assert caught.value.reason == "metrics_invalid"


def test_an_address_without_metrics() -> None:
    with answering({}) as url, httpx.Client() as client, pytest.raises(DoctorError, match="HTTP 404") as caught:
        scrape(client, url)
    assert caught.value.reason == "metrics_unreachable"


def test_nobody_there() -> None:
    with httpx.Client() as client, pytest.raises(DoctorError, match="does not answer"):
        scrape(client, "http://127.0.0.1:1")


def test_a_watch_tells_each_sample_with_its_time() -> None:
    seen: list[float] = []
    with answering({"/metrics": (200, (SCRAPES / "healthy-1.prom").read_text())}) as url, httpx.Client() as client:
        taken = watch(client, url, 3, 0.05, lambda sample: seen.append(sample["t"]))
    assert [sample["t"] for sample in taken] == seen
    assert seen[0] == 0.0
    assert seen == sorted(seen)
    assert len(taken[0]) > 20
