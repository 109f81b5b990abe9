"""What an answer tells while it passes: when it began, how many tokens it has, whether it came to its end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import orjson

from headway.router.metrics.registry import RouterMetrics
from headway.router.upstream.answer_shape import is_chunk, reported_error
from headway.router.upstream.latencies import LatencyBook

_DONE = b"[DONE]"


class StreamMeter:
    """Reads each event of a chat completions stream once, without changing it."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.first: float | None = None
        self.last: float | None = None
        self.tokens: int | None = None
        self.events = 0
        self.done = False
        self.finished = False
        self.reported: str | None = None

    def read(self, events: bytes) -> int:
        """Whole events; comments are passed over. Returns how many bytes of them are good: all, or those before the final event (`done`), before
        one that tells of an error (`reported`), or before the first that is no chunk."""
        at = 0
        for line in events.splitlines(keepends=True):
            if line.startswith(b"data:"):
                data = line[5:].strip()
                if data == _DONE:
                    self.done = True
                    return at
                try:
                    chunk = orjson.loads(data)
                except orjson.JSONDecodeError:
                    return at
                self.reported = reported_error(chunk)
                if self.reported is not None or not is_chunk(chunk):
                    return at
                self.note(chunk)
            at += len(line)
        return at

    def note(self, chunk: Mapping[str, Any]) -> None:
        usage = chunk.get("usage")
        if isinstance(usage, Mapping) and isinstance(usage.get("completion_tokens"), int):
            self.tokens = usage["completion_tokens"]
        choices = chunk.get("choices")
        if not choices or not isinstance(choices, list):
            return
        now = time.monotonic()
        self.first = self.first or now
        self.last = now
        self.events += 1
        self.finished = self.finished or any(
            isinstance(choice, Mapping) and choice.get("finish_reason") for choice in choices
        )

    def report(self, model: str, book: LatencyBook, metrics: RouterMetrics) -> None:
        """Call at the end of a stream that was complete."""
        if self.first is None or self.last is None:
            return
        _note(model, "ttft", self.first - self.began, book, metrics)
        later = (self.tokens or self.events) - 1
        if later > 0 and self.last > self.first:
            _note(model, "tpot", (self.last - self.first) / later, book, metrics)
        _note(model, "completion", time.monotonic() - self.began, book, metrics)


def report_whole(model: str, answer: Any, seconds: float, book: LatencyBook, metrics: RouterMetrics) -> None:
    """An answer in one piece says nothing about its first token; its time per token is over all of them."""
    usage = answer.get("usage") if isinstance(answer, Mapping) else None
    tokens = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
    if isinstance(tokens, int) and tokens > 0:
        _note(model, "tpot", seconds / tokens, book, metrics)
    _note(model, "completion", seconds, book, metrics)


_FAMILIES: Mapping[Any, str] = {
    "ttft": "llm_model_ttft_seconds",
    "tpot": "llm_model_tpot_seconds",
    "completion": "llm_model_completion_latency_seconds",
}


def _note(model: str, metric: Any, seconds: float, book: LatencyBook, metrics: RouterMetrics) -> None:
    book.note(model, metric, seconds)
    metrics.observe(_FAMILIES[metric], seconds, model)
