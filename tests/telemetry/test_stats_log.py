"""The periodic line: what it says, when it comes, when it stays away."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from headway.errors import ConfigError
from headway.telemetry.stats import StepStats
from headway.telemetry.stats_log import StatsLog, interval_from_environment, start_timer
from headway.telemetry.transfer_stats import TransferStats


class Clock:
    """Time that moves only when told, and the alarms that were set."""

    def __init__(self) -> None:
        self.now = 100.0
        self.alarms: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def timer(self, seconds: float, call: Callable[[], None]) -> Clock:
        self.alarms.append((self.now + seconds, call))
        return self

    def cancel(self) -> None:
        self.alarms.clear()

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while self.alarms and self.alarms[0][0] <= until:
            self.now, call = self.alarms.pop(0)
            call()
        self.now = until


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def messages(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, logger="headway.telemetry.stats_log")
    return lambda: list(caplog.messages)


STEP = StepStats(
    running=2, waiting=1, kv_usage=0.1234, scheduled_tokens=30, prompt_tokens=0, cached_prompt_tokens=0,
    generation_tokens=2, prefix_queries=0, prefix_hits=0, preemptions=0, preempted_tokens=0,
)  # fmt: skip


def test_the_line_is_the_one_that_tools_parse(clock: Clock, messages: Callable[[], list[str]]) -> None:
    stats = StatsLog(0, 10, clock=clock, timer=clock.timer)
    stats.observe(replace(STEP, prompt_tokens=150, cached_prompt_tokens=50, prefix_queries=150, prefix_hits=50, generation_tokens=1))
    clock.advance(5)
    stats.observe(replace(STEP, generation_tokens=24, running=3, waiting=0))
    assert messages() == []
    clock.advance(5)
    assert messages() == [
        "Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 2.5 tokens/s, Running: 3 reqs, "
        "Waiting: 0 reqs, GPU KV cache usage: 12.3%, Prefix cache hit rate: 33.3%"
    ]


def test_one_idle_line_then_silence_then_a_fresh_window(clock: Clock, messages: Callable[[], list[str]]) -> None:
    stats = StatsLog(1, 10, clock=clock, timer=clock.timer)
    stats.observe(replace(STEP, running=0, waiting=0, kv_usage=0.0, generation_tokens=100))
    clock.advance(500)
    assert [m.split(", ")[1] for m in messages()] == ["Avg generation throughput: 10.0 tokens/s", "Avg generation throughput: 0.0 tokens/s"]
    stats.observe(replace(STEP, generation_tokens=50))
    clock.advance(10)
    assert "Avg generation throughput: 5.0 tokens/s" in messages()[-1], "the quiet time must not thin the average"


def test_close_ends_the_line(clock: Clock, messages: Callable[[], list[str]]) -> None:
    stats = StatsLog(0, 10, clock=clock, timer=clock.timer)
    stats.observe(STEP)
    stats.close()
    clock.advance(100)
    stats.end_window()
    assert messages() == []


def test_preemptions_are_told_at_once_and_then_summed(clock: Clock, messages: Callable[[], list[str]]) -> None:
    stats = StatsLog(0, 10, clock=clock, timer=clock.timer)
    stats.observe(replace(STEP, preemptions=1, preempted_tokens=40))
    for _ in range(3):
        clock.advance(1)
        stats.observe(replace(STEP, preemptions=2, preempted_tokens=100))
    told = [m for m in messages() if "preempted" in m]
    assert len(told) == 1
    assert "preempted 1 sequence(s)" in told[0]
    assert "at most 40 tokens" in told[0]
    clock.advance(60)
    told = [m for m in messages() if "preempted" in m]
    assert len(told) == 2, "what was held back is told even if no step follows"
    assert "preempted 6 sequence(s)" in told[1]
    assert "at most 300 tokens" in told[1]


def test_interval_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_LOG_STATS_INTERVAL", "2.5")
    assert StatsLog().interval == 2.5
    for wrong in ("0", "-1", "soon", "inf", "nan"):
        monkeypatch.setenv("VLLM_LOG_STATS_INTERVAL", wrong)
        with pytest.raises(ConfigError, match="VLLM_LOG_STATS_INTERVAL"):
            interval_from_environment()


def test_the_real_timer_calls_back_and_can_be_cancelled() -> None:
    import threading

    rang = threading.Event()
    start_timer(0.01, rang.set)
    assert rang.wait(10)
    never = threading.Event()
    start_timer(30, never.set).cancel()
    assert not never.is_set()


def test_what_drafts_came_to(clock: Clock, messages: Callable[[], list[str]]) -> None:
    stats = StatsLog(0, 10, clock=clock, timer=clock.timer)
    stats.observe(replace(STEP, drafts=((4, 4), (4, 0))))
    stats.observe(replace(STEP, drafts=((2, 1),)))
    clock.advance(10)
    assert messages()[-1] == (
        "Engine 000: SpecDecoding metrics: Mean acceptance length: 2.67, Accepted throughput: 0.50 tokens/s, Drafted throughput: 1.00 tokens/s, "
        "Accepted: 5 tokens, Drafted: 10 tokens, Per-position acceptance rate: 0.667, 0.333, 0.333, 0.333, Avg Draft acceptance rate: 50.0%"
    )
    stats.observe(STEP)
    clock.advance(10)
    assert "SpecDecoding" not in messages()[-1]


def test_what_transfers_came_to(clock: Clock, messages: Callable[[], list[str]]) -> None:
    stats = StatsLog(0, 10, clock=clock, timer=clock.timer)
    stats.observe_transfer(TransferStats("pulled", seconds=0.5, nbytes=4_000_000))
    stats.observe_transfer(TransferStats("pulled", seconds=0.1, nbytes=2_000_000))
    stats.observe_transfer(TransferStats("timed_out"))
    stats.observe(STEP)
    clock.advance(10)
    assert messages()[-1] == (
        "Engine 000: KV Transfer metrics: Num successful transfers=2, Avg xfer time (ms)=300.000, P90 xfer time (ms)=500.000, "
        "Avg MB per transfer=3.000, Throughput (MB/s)=10.000"
    )
    stats.observe(STEP)
    clock.advance(10)
    assert "KV Transfer" not in messages()[-1]
