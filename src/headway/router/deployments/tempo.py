"""Tempo: how often workers are looked at and started again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tempo:
    """Seconds, except `failed_loads` and `quick_exits`. A worker that ran for `good_run` begins again with `first_backoff`. `quick_exits` within
    `quick_window` before the model was ever ready, or `failed_loads` in a row, fail whoever waits for the model."""

    poll_loading: float = 0.5
    poll_ready: float = 5.0
    probe_timeout: float = 2.0
    first_backoff: float = 1.0
    longest_backoff: float = 60.0
    good_run: float = 120.0
    grace: float = 10.0
    quick_window: float = 30.0
    quick_exits: int = 3
    failed_loads: int = 3
    first_pause: float = 0.1  # after a failed exchange; doubles
    longest_pause: float = 3.2
    join_wait: float = 0.002  # calls that are no questions wait so long for company


USUAL = Tempo()
