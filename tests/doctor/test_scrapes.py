"""Rules on metrics alone: scrapes in Prometheus' text format, without a log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headway.doctor.case import Case
from headway.doctor.collect.metrics import parse_metrics
from headway.doctor.diagnosis import Report, diagnose
from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.log import Log
from headway.doctor.rules.catalogue import rules

SCRAPES = Path(__file__).parent / "scrapes"


def _report(*names: str, **more: Any) -> Report:
    samples = [{"t": 30.0 * index, **parse_metrics((SCRAPES / f"{name}.prom").read_text())} for index, name in enumerate(names)]
    tree: Mapping[str, Any] = {"metrics": samples, **more}
    return diagnose(Case(Log(), Context(tree)), rules())


def _answers(report: Report) -> list[str]:
    return [finding.rule.id for finding in report.findings if finding.is_answer]


def test_growing_counter_of_preemptions() -> None:
    report = _report("preempting-1", "preempting-2")
    assert _answers(report)[0] == "T3"
    assert "152 preemptions" in report.findings[0].found.cause.en


def test_the_same_scrape_once_does_not_say_that_the_counter_grows() -> None:
    assert "T3" not in _answers(_report("preempting-2"))


def test_full_cache_is_seen_in_one_scrape() -> None:
    assert _answers(_report("preempting-2")) == ["T2"]


@pytest.mark.parametrize("names", [("healthy-1",), ("healthy-2",), ("healthy-1", "healthy-2")])
def test_healthy_server_gives_no_answer(names: tuple[str, ...]) -> None:
    assert _answers(_report(*names)) == []


def test_old_names_and_a_cap_from_the_command() -> None:
    report = _report("old-names", command="vllm serve mistralai/Mistral-7B-Instruct-v0.3 --max-num-seqs 64")
    assert _answers(report) == ["T1"]
    assert report.findings[0].found.fixes[0].command == "--max-num-seqs 128"
    assert "1504 tokens/s" in report.findings[0].found.cause.en


def test_restarted_server_is_no_growth() -> None:
    """A counter that fell starts again at zero: it grew by its new value."""
    report = _report("preempting-2", "healthy-1")
    assert "T3" not in _answers(report)
