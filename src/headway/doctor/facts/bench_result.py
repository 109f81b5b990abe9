"""Results that benchmark clients print (`vllm bench serve`, `headway bench`, SGLang's bench_serving use the same lines)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.sight import Sight, sight
from headway.doctor.finding import Quote

_TITLE: Final = sight("Serving Benchmark Result", pattern=r"=+ Serving Benchmark Result =+")
_FIELDS: Final[dict[str, Sight]] = {
    name: sight(anchor, pattern=rf"{pattern}\s+(?P<value>\d[\d,]*(?:\.\d+)?)")
    for name, anchor, pattern in (
        ("requests", "Successful requests:", r"Successful requests:"),
        ("concurrency", "aximum request concurrency:", r"[Mm]aximum request concurrency:"),
        ("seconds", "Benchmark duration (s):", r"Benchmark duration \(s\):"),
        ("output_rate", "Output token throughput (tok/s):", r"(?<!Peak )Output token throughput \(tok/s\):"),
        ("ttft_ms", "Mean TTFT (ms):", r"Mean TTFT \(ms\):"),
        ("tpot_ms", "Mean TPOT (ms):", r"Mean TPOT \(ms\):"),
        ("ttft_p99_ms", "P99 TTFT (ms):", r"P99 TTFT \(ms\):"),
    )
}
SIGHTS: Final[tuple[Sight, ...]] = (_TITLE, *_FIELDS.values())


@dataclass(frozen=True, slots=True)
class BenchResult:
    """One printed result: field -> value (requests, concurrency, seconds, output_rate, ttft_ms, tpot_ms, ttft_p99_ms)."""

    values: dict[str, float]
    quotes: dict[str, Quote]

    def get(self, name: str) -> float | None:
        return self.values.get(name)


def bench_results(log: Log) -> Sequence[BenchResult]:
    """In the order of the log: the lines between two titles belong together."""
    results: list[BenchResult] = []
    titles = log.hits(_TITLE)
    for index, title in enumerate(titles):
        end = titles[index + 1].line.number if index + 1 < len(titles) else None
        values: dict[str, float] = {}
        quotes: dict[str, Quote] = {}
        for name, seen in _FIELDS.items():
            hit = next((hit for hit in log.hits(seen) if _between(hit, title, end)), None)
            if hit is not None:
                values[name], quotes[name] = hit.number("value"), hit.quote()
        results.append(BenchResult(values, quotes))
    return results


def _between(hit: Hit, title: Hit, end: int | None) -> bool:
    same = hit.line.source == title.line.source and hit.line.number > title.line.number
    return same and (end is None or hit.line.number < end)
