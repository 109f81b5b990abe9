"""The line about throughput every few seconds while there is work, and the line about preemptions."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from headway.errors import ConfigError
from headway.telemetry.draft_counts import DraftCounts
from headway.telemetry.stats import StepStats
from headway.telemetry.transfer_counts import TransferCounts
from headway.telemetry.transfer_stats import TransferStats

_log = logging.getLogger(__name__)
_HIT_RATE_STEPS = 1000  # the hit rate is over that many latest steps that looked something up


class Alarm(Protocol):
    """Something that will call back once, unless cancelled."""

    def cancel(self) -> None: ...


def interval_from_environment() -> float:
    """VLLM_LOG_STATS_INTERVAL in seconds, 10 by default. Raises ConfigError unless it is a positive number."""
    text = os.environ.get("VLLM_LOG_STATS_INTERVAL", "10")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ConfigError(
            f"VLLM_LOG_STATS_INTERVAL must be a number of seconds above 0, found {text!r}",
            param="VLLM_LOG_STATS_INTERVAL",
            fix="Set it to 10, or unset it.",
        )
    return seconds


def start_timer(seconds: float, call: Callable[[], None]) -> Alarm:
    """Call `call` after `seconds` on a thread that does not keep the process alive."""
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
    return timer


class StatsLog:
    """Averages of one window of `interval` seconds, logged when it ends.

    A window opens with the first step after a quiet time; as long as windows have work they follow each other without
    gaps, and one more line shows the engine idle. Nothing runs and nothing is logged while there is no work.
    `observe` is called by the engine's thread, the window ends on a timer's.
    """

    def __init__(
        self,
        engine: int | str = 0,
        interval: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        timer: Callable[[float, Callable[[], None]], Alarm] = start_timer,
    ):
        self.interval = interval_from_environment() if interval is None else interval
        self._name = f"{int(engine):03d}"
        self._clock, self._timer = clock, timer
        self._lock = threading.Lock()
        self._alarm: Alarm | None = None
        self._opened_at = 0.0
        self._prompt = self._generated = 0
        self._drafts = DraftCounts()
        self._transfers = TransferCounts()
        self._steps = 0
        self._running = self._waiting = 0
        self._kv_usage = 0.0
        self._lookups: deque[tuple[int, int]] = deque(maxlen=_HIT_RATE_STEPS)
        self._preempted = self._lost = 0
        self._preemption_told_at: float | None = None

    def observe(self, step: StepStats) -> None:
        """Count one engine step."""
        with self._lock:
            now = self._clock()
            if self._alarm is None:
                self._open(now)
            self._steps += 1
            # What came from the cache cost nothing: the throughput is that of tokens computed.
            self._prompt += step.prompt_tokens - step.cached_prompt_tokens
            self._generated += step.generation_tokens
            self._running, self._waiting, self._kv_usage = step.running, step.waiting, step.kv_usage
            if step.prefix_queries:
                self._lookups.append((step.prefix_queries, step.prefix_hits))
            self._drafts.add(step.drafts)
            if step.preemptions:
                self._preempted += step.preemptions
                self._lost += step.preempted_tokens
            self._tell_preemptions(now)

    def observe_transfer(self, transfer: TransferStats) -> None:
        """Count KV blocks that moved; those of a quiet time are told with the next window."""
        with self._lock:
            self._transfers.add(transfer)

    def end_window(self) -> None:
        """Log the window that is open; the timer calls it. Opens the next one if there was work in this one."""
        with self._lock:
            if self._alarm is None:
                return
            now = self._clock()
            self._tell_preemptions(now)
            self._log_line(max(now - self._opened_at, 1e-9))
            self._alarm = None
            if self._steps:
                self._open(now)

    def close(self) -> None:
        """Stop the timer; for the engine's shutdown."""
        with self._lock:
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm = None

    def _open(self, now: float) -> None:
        self._opened_at = now
        self._prompt = self._generated = self._steps = 0
        self._drafts = DraftCounts()
        self._alarm = self._timer(self.interval, self.end_window)

    def _log_line(self, seconds: float) -> None:
        queries = sum(asked for asked, _ in self._lookups)
        hits = sum(found for _, found in self._lookups)
        _log.info(
            "Engine %s: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, "
            "Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: %.1f%%, Prefix cache hit rate: %.1f%%",
            self._name,
            self._prompt / seconds,
            self._generated / seconds,
            self._running,
            self._waiting,
            self._kv_usage * 100,
            100 * hits / queries if queries else 0.0,
        )
        if self._drafts.drafts:
            _log.info("Engine %s: %s", self._name, self._drafts.line(seconds))
        if (moved := self._transfers.line) is not None:
            _log.info("Engine %s: %s", self._name, moved)
        self._transfers = TransferCounts()

    def _tell_preemptions(self, now: float) -> None:
        """Warn at once, then at most once per interval with the sum of what came since."""
        told = self._preemption_told_at
        if not self._preempted or (told is not None and now - told < self.interval):
            return
        _log.warning(
            "Engine %s: preempted %d sequence(s), since the KV cache is full: at most %d tokens have to be computed again. "
            "Raise --kv-cache-memory-bytes or lower --max-num-seqs.",
            self._name,
            self._preempted,
            self._lost,
        )
        self._preempted = self._lost = 0
        self._preemption_told_at = now
