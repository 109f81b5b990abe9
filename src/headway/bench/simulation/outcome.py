"""What a replay comes to: latencies, promises kept, throughput, use of the machines, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headway.bench.simulation.fleet import Fleet, Replay
from headway.bench.simulation.request_trace import RequestTrace
from headway.errors import ConfigError

PERCENTS: Final = (50, 90, 99)
_PICTURE_COLUMNS: Final = 60


@dataclass(frozen=True, slots=True)
class Promises:
    """Limits in seconds, None = none. A request keeps `itl` when the mean of the gaps between its tokens does. `share` of the requests must keep
    all of them for a fleet to be good enough."""

    ttft: float | None = None
    itl: float | None = None
    e2e: float | None = None
    share: float = 0.99

    def __post_init__(self) -> None:
        if any(limit is not None and not 0 < limit < float("inf") for limit in (self.ttft, self.itl, self.e2e)) or not 0 < self.share <= 1:
            raise ConfigError("promises must be over 0, and the share of requests that keep them over 0 to 1", param="slo")


def outcome(trace: RequestTrace, fleet: Fleet, replay: Replay, promises: Promises, price_per_hour: float = 0.0) -> dict[str, Any]:
    """JSON-ready. Seconds; rates per second. Refused requests keep no promise and count in nothing else.

    Times to the first token and to the last include `request_seconds`. The clock runs from the first arrival to the last token.
    """
    book, extra = replay.book, fleet.times.request_seconds
    first, done = np.frombuffer(book.first, dtype=np.float64), np.frombuffer(book.done, dtype=np.float64)
    served = done >= 0
    ttft, e2e = first[served] - trace.arrival[served] + extra, done[served] - trace.arrival[served] + extra
    output = trace.output[served].astype(np.int64)
    itl = (e2e - ttft) / np.maximum(output - 1, 1)
    kept = {
        name: float(np.count_nonzero(values <= limit) / len(trace))
        for name, values, limit in (("ttft", ttft, promises.ttft), ("itl", itl, promises.itl), ("e2e", e2e, promises.e2e))
        if limit is not None
    }
    good = np.ones(len(ttft), dtype=bool)
    for values, limit in ((ttft, promises.ttft), (itl, promises.itl), (e2e, promises.e2e)):
        if limit is not None:
            good &= values <= limit
    seconds = max(replay.end + extra, 1e-9) if served.any() else 0.0
    hours = fleet.replicas * seconds / 3600
    tokens = int(output.sum())
    attained = float(np.count_nonzero(good) / len(trace))
    return {
        "replicas": fleet.replicas,
        "placement": fleet.placement,
        "requests": len(trace),
        "completed": int(served.sum()),
        "refused": replay.refused,
        "seconds": seconds,
        "prompt_tokens": int(trace.prompt[served].sum(dtype=np.int64)),
        "output_tokens": tokens,
        "requests_per_second": len(ttft) / seconds if seconds else 0.0,
        "output_tokens_per_second": tokens / seconds if seconds else 0.0,
        "ttft": _spread(ttft),
        "itl": {"mean": _known(book.gaps.mean), **{f"p{p}": _known(book.gaps.percentile(p)) for p in PERCENTS}},
        "e2e": _spread(e2e),
        "attained": attained,
        "attained_by": kept,
        "good_enough": attained >= promises.share,
        "utilization": {"mean": float(np.mean(replay.busy) / seconds) if seconds else 0.0, "least": _share(min(replay.busy), seconds), "most": _share(max(replay.busy), seconds)},
        "steps": book.steps,
        "preemptions": book.preemptions,
        "prefix_hit_share": book.cached_tokens / book.looked_up_tokens if book.looked_up_tokens else 0.0,
        "replica_hours": hours,
        "cost": hours * price_per_hour,
        "cost_per_million_output_tokens": hours * price_per_hour / tokens * 1e6 if tokens else 0.0,
        "ttft_over_time": _over_time(trace.arrival[served], ttft),
        "arrivals_seconds": trace.seconds / _PICTURE_COLUMNS,
        "arrivals_over_time": np.histogram(trace.arrival, bins=_PICTURE_COLUMNS)[0].tolist(),
    }


def smallest_good(outcomes: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Of several fleets, the one with the fewest replicas that is good enough."""
    return min((each for each in outcomes if each["good_enough"]), key=lambda each: each["replicas"], default=None)


def _spread(values: NDArray[np.float64]) -> dict[str, float | None]:
    if not len(values):
        return {"mean": None, **{f"p{p}": None for p in PERCENTS}}
    return {"mean": float(values.mean()), **{f"p{p}": float(np.percentile(values, p)) for p in PERCENTS}}


def _over_time(arrival: NDArray[np.float64], values: NDArray[np.float64]) -> list[float | None]:
    """The 99th percentile by moment of arrival, in equal pieces of the trace; None where nobody came."""
    if not len(values):
        return []
    edges = np.linspace(0, max(float(arrival[-1]), 1e-9), _PICTURE_COLUMNS + 1)
    places = np.searchsorted(arrival, edges[1:-1])
    return [float(np.percentile(piece, 99)) if len(piece) else None for piece in np.split(values, places)]


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _known(value: float) -> float | None:
    return None if value != value else value
