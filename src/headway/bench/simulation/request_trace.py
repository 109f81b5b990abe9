"""RequestTrace: when requests arrive, how long their prompts and answers are, and which beginnings they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headway.errors import ConfigError

MOST_REQUESTS: Final = 5_000_000
MOST_TOKENS: Final = 1 << 24  # of one prompt, of one answer
MOST_SECONDS: Final = 366 * 86_400.0
NO_PREFIX: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class RequestTrace:
    """One entry per request, in the order of arrival. `arrival` in seconds (float64, from 0 on, not falling), `prompt` and `output` in tokens
    (int32, at least 1), `prefix` the number of the beginning that a prompt shares with others (int32, -1 = none), `shared` how many of its
    tokens that are (int32, at most `prompt`)."""

    arrival: NDArray[np.float64]
    prompt: NDArray[np.int32]
    output: NDArray[np.int32]
    prefix: NDArray[np.int32]
    shared: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.arrival)

    @property
    def seconds(self) -> float:
        """From the first arrival to the last."""
        return float(self.arrival[-1] - self.arrival[0])


def request_trace(arrival: Sequence[float] | NDArray[Any], prompt: Sequence[int] | NDArray[Any], output: Sequence[int] | NDArray[Any],
                  prefix: Sequence[int] | NDArray[Any] | None = None, shared: Sequence[int] | NDArray[Any] | None = None) -> RequestTrace:  # fmt: skip
    """Sorted by arrival (equal times keep their order), the first at 0. Values were checked by who read them.

    Raises ConfigError (`trace_invalid`) for an empty trace or one of too many requests.
    """
    if not 1 <= len(arrival) <= MOST_REQUESTS:
        raise ConfigError(f"a trace has from 1 to {MOST_REQUESTS:,} requests, found {len(arrival):,}", reason="trace_invalid", param="trace")
    times = np.asarray(arrival, dtype=np.float64)
    order = np.argsort(times, kind="stable")
    none = np.full(len(times), NO_PREFIX) if prefix is None else np.asarray(prefix)
    nothing = np.zeros(len(times)) if shared is None else np.asarray(shared)
    prompts = np.asarray(prompt).astype(np.int32)[order]
    return RequestTrace(
        times[order] - times.min(), prompts, np.asarray(output).astype(np.int32)[order], none.astype(np.int32)[order],
        np.minimum(nothing.astype(np.int32)[order], prompts),
    )  # fmt: skip
