"""Where the time to the first token goes: queue, prefill, and what lies between server and client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from headway.doctor.evidence.context import Context
from headway.doctor.facts.metrics import span_of
from headway.doctor.facts.requests import PREFILL, QUEUE, TTFT_CLIENT, TTFT_SERVER, RequestRow
from headway.doctor.finding import Quote


@dataclass(frozen=True, slots=True)
class FirstToken:
    """Seconds; medians of rows, or means of histograms (`rows` False). `total`: the first token at the server, at the
    client where only that is known. None = unknown."""

    queue: float | None
    prefill: float | None
    total: float | None
    count: int
    rows: bool
    quotes: tuple[Quote, ...]

    @property
    def queue_share(self) -> float | None:
        return self.queue / self.total if self.queue is not None and self.total else None


def first_token_of(rows: Sequence[RequestRow], context: Context) -> FirstToken | None:
    """From a table of requests, else from the histograms of scrapes; None when neither holds a time."""
    timed = [row for row in rows if total_of(row) is not None]
    if timed:
        queue = [value for row in timed if (value := row.seconds(*QUEUE)) is not None]
        prefill = [value for row in timed if (value := row.seconds(*PREFILL)) is not None]
        totals = sorted(total for row in timed if (total := total_of(row)) is not None)
        return FirstToken(
            median(queue) if queue else None,
            median(prefill) if prefill else None,
            totals[len(totals) // 2],
            len(timed),
            True,
            (timed[0].quote, timed[-1].quote)[: len(timed)],
        )
    span = span_of(context)
    if span is None:
        return None
    total = span.mean("time_to_first_token_seconds")
    queue_s, prefill_s = span.mean("request_queue_time_seconds"), span.mean("request_prefill_time_seconds")
    if total is None and queue_s is None:
        return None
    shown = ", ".join(
        f"mean {name} {value:.3f} s"
        for name, value in (("time_to_first_token", total), ("request_queue_time", queue_s), ("request_prefill_time", prefill_s))
        if value is not None
    )
    count = span.grown("time_to_first_token_seconds_count") or span.grown("request_queue_time_seconds_count") or 0
    if total is None and queue_s is not None:
        total = queue_s + (prefill_s or 0.0)
    return FirstToken(queue_s, prefill_s, total, int(count), False, (context.quote(f"metrics.{span.last.index}", shown),))


def total_of(row: RequestRow) -> float | None:
    """The first token at the server; at the client where the server's is unknown; queue plus prefill as the last resort."""
    value = row.seconds(*TTFT_SERVER, *TTFT_CLIENT)
    if value is not None:
        return value
    queue, prefill = row.seconds(*QUEUE), row.seconds(*PREFILL)
    return queue + prefill if queue is not None and prefill is not None else None
