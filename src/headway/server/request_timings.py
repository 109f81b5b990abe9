"""How long the parts of a request took, for the `metrics` of its answer."""

from __future__ import annotations

from collections.abc import Sequence

from headway.engine.outputs import RequestOutput
from headway.wire.timings import RequestTimings

_MS = 1000.0


def request_timings(finals: Sequence[RequestOutput]) -> RequestTimings | None:
    """None for answers to several prompts, whose times overlap, and for requests that made no token."""
    if len(finals) != 1 or not (times := finals[0].metrics):
        return None
    generation = times["last_token"] - times["first_token"]
    tokens = times["generated_tokens"]
    whole = times["last_token"] - times["arrival"]
    return {
        "queue_time_ms": (times["scheduled"] - times["arrival"]) * _MS,
        "time_to_first_token_ms": (times["first_token"] - times["arrival"]) * _MS,
        "generation_time_ms": generation * _MS,
        "mean_itl_ms": generation * _MS / (tokens - 1) if tokens > 1 else None,
        "tokens_per_second": tokens / whole if whole > 0 else None,
    }
