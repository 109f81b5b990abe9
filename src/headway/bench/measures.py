"""The arithmetic of measurement: the one place where throughput, latencies, percentiles and goodput are defined.

Times are in seconds unless a name ends in _ms. Everything is a pure function of what was recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor
from statistics import fmean, median, pstdev


@dataclass(slots=True)
class Exchange:
    """What one request to a server did.

    `start` is on a monotonic clock. `ttft` is start to the first token, `itls` the gaps between the frames that
    carried tokens after it (the first token has no gap), `latency` start to the last token. `output_tokens` is the
    server's own count, or that of the text when it sent none.
    """

    prompt_tokens: int
    output_tokens: int = 0
    start: float = 0.0
    ttft: float = 0.0
    itls: list[float] = field(default_factory=list)
    latency: float = 0.0
    queued: float = 0.0  # due until sent: the wait for a place under --max-concurrency
    text: str = ""
    error: str = ""  # empty = succeeded

    @property
    def ok(self) -> bool:
        return not self.error

    @property
    def tpot(self) -> float | None:
        """Time per output token without the first: (latency - ttft) / (output_tokens - 1); None for one token."""
        return (self.latency - self.ttft) / (self.output_tokens - 1) if self.output_tokens > 1 else None


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, median, population standard deviation and percentiles of one measure, in milliseconds."""

    mean: float
    median: float
    std: float
    percentiles: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class ServeSummary:
    """What a load on a server came to."""

    duration: float
    completed: int
    failed: int
    input_tokens: int
    output_tokens: int
    request_throughput: float
    goodput: float | None  # requests/s that kept every promise; None when none was asked for
    output_throughput: float
    total_token_throughput: float
    peak_output_tokens: float  # most output tokens in one second
    peak_concurrency: int
    spreads: Mapping[str, Spread]  # ttft, tpot, itl, e2el


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile by linear interpolation between closest ranks (numpy's default). NaN when there are no values."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread_ms(seconds: Sequence[float], percents: Sequence[float]) -> Spread:
    """Spread of times given in seconds; zeros when there are none, as vLLM prints."""
    ms = [1000 * value for value in seconds] or [0.0]
    return Spread(fmean(ms), median(ms), pstdev(ms), tuple((p, percentile(ms, p)) for p in percents))


def meets(exchange: Exchange, goals_ms: Mapping[str, float]) -> bool:
    """Whether a successful request kept all of `goals_ms` (keys ttft, tpot, e2el). A single token has a tpot of 0."""
    reached = {"ttft": exchange.ttft, "tpot": exchange.tpot or 0.0, "e2el": exchange.latency}
    return all(1000 * reached[name] <= limit for name, limit in goals_ms.items())


def peak_concurrency(exchanges: Sequence[Exchange]) -> int:
    """The largest number of requests that were under way at once. An end and a start at one instant do not overlap."""
    moments = [(e.start, 1) for e in exchanges] + [(e.start + e.latency, -1) for e in exchanges]
    now = most = 0
    for _, change in sorted(moments):
        now += change
        most = max(most, now)
    return most


def peak_tokens_per_second(exchanges: Sequence[Exchange]) -> float:
    """The most output tokens that arrived within one second of the clock that starts with the first request.

    A frame may carry several tokens: each request's tokens are spread evenly over its frames.
    """
    if not exchanges:
        return 0.0
    origin = min(e.start for e in exchanges)
    seconds: dict[int, float] = {}
    for exchange in exchanges:
        moment = exchange.start + exchange.ttft - origin
        share = exchange.output_tokens / (len(exchange.itls) + 1)
        for gap in (0.0, *exchange.itls):
            moment += gap
            seconds[floor(moment)] = seconds.get(floor(moment), 0.0) + share
    return max(seconds.values())


def summarize(
    exchanges: Sequence[Exchange], duration: float, percents: Sequence[float], goals_ms: Mapping[str, float]
) -> ServeSummary:
    """Sum up a load of `duration` seconds. Failed requests count as failed and in nothing else."""
    good = [e for e in exchanges if e.ok]
    inputs, outputs = sum(e.prompt_tokens for e in good), sum(e.output_tokens for e in good)
    measured = {
        "ttft": [e.ttft for e in good],
        "tpot": [tpot for e in good if (tpot := e.tpot) is not None],
        "itl": [gap for e in good for gap in e.itls],
        "e2el": [e.latency for e in good],
    }
    return ServeSummary(
        duration=duration,
        completed=len(good),
        failed=len(exchanges) - len(good),
        input_tokens=inputs,
        output_tokens=outputs,
        request_throughput=len(good) / duration,
        goodput=sum(meets(e, goals_ms) for e in good) / duration if goals_ms else None,
        output_throughput=outputs / duration,
        total_token_throughput=(inputs + outputs) / duration,
        peak_output_tokens=peak_tokens_per_second(good),
        peak_concurrency=peak_concurrency(good),
        spreads={name: spread_ms(values, percents) for name, values in measured.items()},
    )
