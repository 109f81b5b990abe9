"""StepTimes: how long one step of an engine takes, as a function of what it computes. Fitted from records, or reckoned from a device."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_object
from headway.errors import ConfigError

FORMAT: Final = "headway-step-times/1"
_MOST_KNOTS: Final = 64
_MOST_SECONDS: Final = 1e5


@dataclass(frozen=True, slots=True)
class StepWork:
    """What a step computes. `prefill_pairs`: of query and key, over the chunks; `decode_context`: keys that the decoding rows see, over the
    rows; `sampled`: rows that go through the head."""

    prefill_tokens: int = 0
    prefill_chunks: int = 0
    prefill_pairs: int = 0
    decode_rows: int = 0
    decode_context: int = 0
    sampled: int = 0

    @property
    def tokens(self) -> int:
        return self.prefill_tokens + self.decode_rows


@dataclass(frozen=True, slots=True)
class Curve:
    """Seconds over a count, linear between knots (rising, the first 0), from the last on with the slope of the last piece. Never falls."""

    knots: tuple[int, ...]
    seconds: tuple[float, ...]

    def __call__(self, count: int) -> float:
        i = min(bisect_right(self.knots, count), len(self.knots) - 1) - 1
        if i < 0:
            return self.seconds[0]
        low, high = self.knots[i], self.knots[i + 1]
        return self.seconds[i] + (self.seconds[i + 1] - self.seconds[i]) * (count - low) / (high - low)


@dataclass(frozen=True, slots=True)
class StepTimes:
    """seconds = by_tokens(tokens) + by_sampled(sampled) + chunk x prefill_chunks + pair x prefill_pairs + context x decode_context.

    `request_seconds` pass once per request outside of steps (HTTP, tokenizing, the way back). `origin` says where the figures are from."""

    by_tokens: Curve
    by_sampled: Curve
    chunk: float = 0.0
    pair: float = 0.0
    context: float = 0.0
    request_seconds: float = 0.0
    origin: dict[str, Any] = field(default_factory=dict)

    def seconds(self, work: StepWork) -> float:
        return (
            self.by_tokens(work.tokens) + self.by_sampled(work.sampled)
            + self.chunk * work.prefill_chunks + self.pair * work.prefill_pairs + self.context * work.decode_context
        )  # fmt: skip


def constant_steps(seconds: float, request_seconds: float = 0.0) -> StepTimes:
    """Every step takes as long, whatever it computes: for tests and first guesses."""
    return StepTimes(Curve((0, 1), (seconds, seconds)), Curve((0, 1), (0.0, 0.0)), request_seconds=request_seconds)


def save_step_times(times: StepTimes, path: Path) -> None:
    """Raises ConfigError when the file cannot be written."""
    try:
        path.write_text(json.dumps({"format": FORMAT, **asdict(times)}, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"step times {path} cannot be written: {error.strerror}", param="step_times") from None


def load_step_times(path: Path) -> StepTimes:
    """Raises ConfigError (`step_times_invalid`) that names the key, ArtifactError when the file cannot be read."""
    stored = read_json_object(path)
    if stored.get("format") != FORMAT:
        raise _wrong(path, f'format must be "{FORMAT}", found {stored.get("format")!r:.60}')
    known = {"format", "by_tokens", "by_sampled", "chunk", "pair", "context", "request_seconds", "origin"}
    if unknown := set(stored) - known:
        raise _wrong(path, f"unknown keys {', '.join(sorted(unknown))[:80]}")
    origin = stored.get("origin", {})
    if not isinstance(origin, dict):
        raise _wrong(path, "origin must be an object")
    single = {key: _number(path, key, stored.get(key, 0.0)) for key in ("chunk", "pair", "context", "request_seconds")}
    return StepTimes(_curve(path, "by_tokens", stored.get("by_tokens")), _curve(path, "by_sampled", stored.get("by_sampled")), **single, origin=origin)


def _curve(path: Path, key: str, value: object) -> Curve:
    if not isinstance(value, dict) or set(value) != {"knots", "seconds"}:
        raise _wrong(path, f"{key} must be an object of knots and seconds")
    knots, seconds = value["knots"], value["seconds"]
    if not isinstance(knots, list) or not isinstance(seconds, list) or not 2 <= len(knots) == len(seconds) <= _MOST_KNOTS:
        raise _wrong(path, f"{key}: knots and seconds must be lists of the same length, from 2 to {_MOST_KNOTS}")
    if any(isinstance(knot, bool) or not isinstance(knot, int) for knot in knots) or knots[0] != 0 or any(a >= b for a, b in pairwise(knots)):
        raise _wrong(path, f"{key}.knots must be whole numbers that rise from 0")
    found = tuple(_number(path, f"{key}.seconds", each) for each in seconds)
    if any(a > b for a, b in pairwise(found)):
        raise _wrong(path, f"{key}.seconds must not fall")
    return Curve(tuple(knots), found)


def _number(path: Path, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= _MOST_SECONDS:
        raise _wrong(path, f"{key} must be seconds from 0 to {_MOST_SECONDS:,.0f}, found {value!r:.60}")
    return float(value)


def _wrong(path: Path, what: str) -> ConfigError:
    return ConfigError(f"step times {path}: {what}", reason="step_times_invalid", param="step_times")
