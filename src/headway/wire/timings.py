"""The `metrics` object of an answer."""

from __future__ import annotations

from typing_extensions import TypedDict


class RequestTimings(TypedDict):
    """Milliseconds; `tokens_per_second` counts from the request's arrival. Several sequences: from first to last of all."""

    queue_time_ms: float
    time_to_first_token_ms: float
    generation_time_ms: float
    mean_itl_ms: float | None
    tokens_per_second: float | None
