"""The borders that `--custom-histogram-buckets` asks for, checked and spread over the families that they concern."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from itertools import pairwise
from math import isfinite
from typing import Any

from headway.errors import ConfigError
from headway.telemetry.metric_families import (
    BETWEEN_TOKENS,
    FAMILIES,
    FIRST_TOKEN,
    HTTP_SECONDS,
    ITERATION,
    LATENCY,
    SEQUENCES,
    UP_TO_CONTEXT,
    Buckets,
)

# A group of families that share their borders can be named as one; so can a single family, by its metric's name.
GROUPS: Mapping[str, Buckets] = {
    "request_latency": LATENCY,
    "time_to_first_token": FIRST_TOKEN,
    "inter_token_latency": BETWEEN_TOKENS,
    "iteration_tokens": ITERATION,
    "request_tokens": UP_TO_CONTEXT,
    "request_params_n": SEQUENCES,
    "http_request_duration": HTTP_SECONDS,
}
_MOST_BORDERS = 200
_FLAG = "custom_histogram_buckets"


def chosen_buckets(given: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """Family name -> borders. A family's own entry wins over that of its group. Raises ConfigError."""
    histograms = {family.name: family.buckets for family in FAMILIES if family.kind == "histogram"}
    checked = {key: _borders(key, value) for key, value in given.items()}
    chosen: dict[str, tuple[float, ...]] = {}
    for key, borders in checked.items():
        if key in GROUPS:
            chosen |= {name: borders for name, buckets in histograms.items() if buckets == GROUPS[key]}
        elif key not in histograms:
            near = difflib.get_close_matches(key, [*GROUPS, *histograms], 1)
            raise ConfigError(
                f"--custom-histogram-buckets names {key[:100]!r}, which is neither a group ({', '.join(GROUPS)}) nor a histogram",
                param=_FLAG, fix=f"Did you mean {near[0]!r}?" if near else "docs/metrics.md lists the histograms.",
            )  # fmt: skip
    return chosen | {key: borders for key, borders in checked.items() if key in histograms}


def _borders(key: str, value: Any) -> tuple[float, ...]:
    numbers = value if isinstance(value, list | tuple) else ()
    fine = all(isinstance(n, int | float) and not isinstance(n, bool) and isfinite(n) for n in numbers)
    if not fine or not 0 < len(numbers) <= _MOST_BORDERS or any(a >= b for a, b in pairwise(numbers)):
        raise ConfigError(
            f"--custom-histogram-buckets: {key[:100]!r} needs 1 to {_MOST_BORDERS} rising numbers, got {str(value)[:100]}", param=_FLAG,
            fix='Write it like {"request_latency": [0.1, 0.5, 1, 5]}; +Inf is added.',
        )  # fmt: skip
    return tuple(numbers)
