"""Step records of an engine -> StepTimes, by least squares without negative coefficients."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls  # type: ignore[import-untyped]

from headway.artifacts.foreign_file import regular_file_size
from headway.bench.simulation.step_times import Curve, StepTimes, StepWork
from headway.errors import ConfigError

MOST_BYTES: Final = 1 << 30
MOST_RECORDS: Final = 2_000_000
FEWEST_RECORDS: Final = 50
_MOST_LINE: Final = 4096
_KEYS: Final = ("prefill_tokens", "prefill_chunks", "prefill_pairs", "decode_rows", "decode_context", "sampled")
_FEWEST_IN_PIECE: Final = 8  # records that a piece of a curve needs for a slope of its own


def read_step_records(path: Path) -> tuple[list[StepWork], list[float]]:
    """Raises ConfigError (`step_records_invalid`) that names the line, ArtifactError when the file cannot be read. A last line that was cut off is left out."""
    if (size := regular_file_size(path, "a file of step records")) > MOST_BYTES:
        raise _wrong(path, f"it has {size:,} bytes, the limit is {MOST_BYTES:,}")
    works: list[StepWork] = []
    seconds: list[float] = []
    with path.open(encoding="utf-8", errors="replace") as source:
        number = 0
        while line := source.readline(_MOST_LINE):
            number += 1
            if not line.endswith("\n") and len(line) < _MOST_LINE:
                break
            if number > MOST_RECORDS:
                raise _wrong(path, f"it has more than {MOST_RECORDS:,} lines")
            work, took = _record(path, number, line)
            works.append(work)
            seconds.append(took)
    return works, seconds


def _record(path: Path, number: int, line: str) -> tuple[StepWork, float]:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise _wrong(path, f"line {number} is not JSON") from None
    if not isinstance(row, dict) or set(row) != {"seconds", *_KEYS}:
        raise _wrong(path, f"line {number} must be an object of seconds, {', '.join(_KEYS)}")
    counts = {key: row[key] for key in _KEYS}
    if any(isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 53 for value in counts.values()):
        raise _wrong(path, f"line {number}: counts must be whole numbers from 0 on")
    took = row["seconds"]
    if isinstance(took, bool) or not isinstance(took, int | float) or not math.isfinite(took) or not 0 < took <= 1e5:
        raise _wrong(path, f"line {number}: seconds must be over 0 and at most 100,000, found {took!r:.40}")
    return StepWork(**counts), float(took)


def fit_step_times(works: Sequence[StepWork], seconds: Sequence[float]) -> StepTimes:
    """Minimizes the squared errors weighted with 1 / seconds (between absolute and relative), then scales the whole so that all steps
    together take as long as they did: what the fit cannot explain must not turn into throughput.

    Raises ConfigError (`step_records_invalid`) for fewer than 50 records.
    """
    if len(works) < FEWEST_RECORDS:
        raise ConfigError(f"a fit needs at least {FEWEST_RECORDS} steps, found {len(works)}", reason="step_records_invalid", param="fit", fix="Record a longer load.")
    took = np.asarray(seconds, dtype=np.float64)
    tokens = np.array([work.tokens for work in works], dtype=np.float64)
    sampled = np.array([work.sampled for work in works], dtype=np.float64)
    token_knots, sampled_knots = _knots(tokens), _knots(sampled)
    single = np.array([[work.prefill_chunks, work.prefill_pairs, work.decode_context] for work in works], dtype=np.float64)
    columns = np.hstack([np.ones((len(took), 1)), _pieces(tokens, token_knots), _pieces(sampled, sampled_knots), single])
    weights = 1 / np.sqrt(took)
    scales = np.maximum(np.abs(columns).max(axis=0), 1e-12)  # the solver compares columns: pairs are millions, chunks are few
    found = nnls(columns / scales * weights[:, None], took * weights)[0] / scales
    predicted = columns @ found
    scale = float(took.sum() / predicted.sum())
    found *= scale
    predicted *= scale
    first = len(token_knots)
    last = first + len(sampled_knots) - 1
    origin = {
        "records": len(works), "seconds": round(float(took.sum()), 3), "most_tokens": int(tokens.max()), "most_rows": int(sampled.max()),
        "median_relative_error": round(float(np.median(np.abs(predicted / took - 1))), 4), "scale": round(scale, 4),
    }  # fmt: skip
    chunk, pair, context = (float(value) for value in found[last:])
    by_tokens, by_sampled = _curve(float(found[0]), token_knots, found[1:first]), _curve(0.0, sampled_knots, found[first:last])
    return StepTimes(by_tokens, by_sampled, chunk, pair, context, origin=origin)


def _knots(counts: NDArray[np.float64]) -> tuple[int, ...]:
    """0, then powers of two up to the largest count, as far as the piece before each holds enough records. Kernels change their ways at
    powers of two; a piece without records would have any slope."""
    most = int(counts.max())
    knots = [0]
    power = 1
    while power < most:
        if np.count_nonzero((counts > knots[-1]) & (counts <= power)) >= _FEWEST_IN_PIECE:
            knots.append(power)
        power *= 2
    if np.count_nonzero(counts > knots[-1]) < _FEWEST_IN_PIECE and len(knots) > 1:
        knots.pop()
    return (*knots, max(most, 1))


def _pieces(counts: NDArray[np.float64], knots: Sequence[int]) -> NDArray[np.float64]:
    """How much of each piece a count covers, 0 to 1, the last beyond that: (records, len(knots) - 1)."""
    parts = [(counts - low) / (high - low) for low, high in pairwise(knots)]
    return np.stack([np.clip(part, 0, 1) if i + 1 < len(parts) else np.maximum(part, 0) for i, part in enumerate(parts)], axis=1)


def _curve(start: float, knots: tuple[int, ...], rises: NDArray[np.float64]) -> Curve:
    return Curve(knots, tuple(float(value) for value in np.concatenate([[start], start + np.cumsum(rises)])))


def _wrong(path: Path, what: str) -> ConfigError:
    return ConfigError(f"step records {path}: {what}", reason="step_records_invalid", param="fit")
