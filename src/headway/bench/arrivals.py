"""When requests are sent: gaps drawn from a gamma distribution, at a constant or a rising rate."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from headway.errors import ConfigError

STRATEGIES = ("linear", "exponential")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The plan of a load.

    `rate` is in requests/s, infinity sends all at once. `burstiness` is the shape of the gamma distribution of the
    gaps: 1 is a Poisson process, less is burstier, more is more even. With a `ramp` the rate rises from `start_rate`
    to `end_rate` over the load and `rate` is not used.
    """

    rate: float = float("inf")
    burstiness: float = 1.0
    ramp: Literal["linear", "exponential"] | None = None
    start_rate: float = 0.0
    end_rate: float = 0.0

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise ConfigError(f"--request-rate must be above 0 or inf, found {self.rate}", param="request_rate")
        if not 0 < self.burstiness < float("inf"):
            raise ConfigError(f"--burstiness must be above 0, found {self.burstiness}", param="burstiness")
        if self.ramp is not None and not 0 < self.start_rate <= self.end_rate < float("inf"):
            raise ConfigError(
                f"A ramp needs 0 < start <= end, found {self.start_rate} and {self.end_rate}",
                param="ramp_up_start_rps",
                fix="Give --ramp-up-start-rps and --ramp-up-end-rps.",
            )


def rate_at(arrivals: Arrivals, index: int, count: int) -> float:
    """The rate in requests/s at request `index` of `count`."""
    if arrivals.ramp is None:
        return arrivals.rate
    done = index / max(count - 1, 1)
    if arrivals.ramp == "linear":
        return arrivals.start_rate + (arrivals.end_rate - arrivals.start_rate) * done
    return float(arrivals.start_rate * (arrivals.end_rate / arrivals.start_rate) ** done)


def send_times(arrivals: Arrivals, count: int, rng: random.Random) -> list[float]:
    """Seconds after the start at which each of `count` requests is sent; the first at 0.

    With a constant rate the drawn times are scaled so that the last request is due at (count - 1) / rate: the mean
    rate is the one asked for in every run, only the spacing is random.
    """
    if arrivals.ramp is None and arrivals.rate == float("inf"):
        return [0.0] * count
    times = [0.0]
    for index in range(1, count):
        mean_gap = 1 / rate_at(arrivals, index, count)
        times.append(times[-1] + rng.gammavariate(arrivals.burstiness, mean_gap / arrivals.burstiness))
    if arrivals.ramp is None and times[-1] > 0:
        scale = (count - 1) / arrivals.rate / times[-1]
        times = [moment * scale for moment in times]
    return times[:count]
