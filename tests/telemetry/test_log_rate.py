"""Complaints of an exporter whose collector is down."""

from __future__ import annotations

import logging

import pytest

from headway.telemetry import log_rate
from headway.telemetry.log_rate import AtMostEvery


def record(line: int, message: str) -> logging.LogRecord:
    return logging.LogRecord("opentelemetry.x", logging.WARNING, "exporter.py", line, message, (), None)


def test_one_of_each_place_per_period_and_how_many_were_held(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(log_rate.time, "monotonic", lambda: now)
    every = AtMostEvery(60)
    assert [every.filter(record(1, "down")), every.filter(record(1, "down")), every.filter(record(2, "full"))] == [True, False, True]
    now += 60
    last = record(1, "down")
    assert every.filter(last)
    assert last.getMessage() == "down (1 more like it since)"
