"""Rows for training and judging selectors: one JSON object a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from headway.errors import ConfigError
from headway.router.selection.trained.predictors import Matrix

_TEXTS = ("text", "prompt", "query")
_MOST_ROWS = 1_000_000
_MOST_TEXT = 1_000_000


class RowsError(ConfigError):
    """A file of rows that cannot be used."""

    reason = "rows_invalid"


@dataclass(frozen=True, slots=True)
class Row:
    """`scores` are how good each model's answer was; a row that only names the best model has 1 for it and 0 for the others."""

    text: str
    scores: Mapping[str, float]
    costs: Mapping[str, float] = field(default_factory=dict)
    embedding: tuple[float, ...] | None = None


def read_rows(path: Path) -> list[Row]:
    """Raises RowsError with the number of the line."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RowsError(f"{path} cannot be read: {error.strerror}") from None
    if len(lines) > _MOST_ROWS:
        raise RowsError(f"{path} has {len(lines)} lines, the most is {_MOST_ROWS}")
    rows = [_row(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise RowsError(f"{path} has no rows")
    if len({row.embedding is None for row in rows}) > 1 or len({len(row.embedding) for row in rows if row.embedding is not None}) > 1:
        raise RowsError(f"{path}: either every row has an embedding, all of one length, or none has")
    return rows


def models_of(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(sorted({model for row in rows for model in row.scores}))


def score_matrix(rows: Sequence[Row], models: Sequence[str]) -> Matrix:
    """[rows, models]; a model that a row does not name has 0 there."""
    return np.array([[row.scores.get(model, 0.0) for model in models] for row in rows], np.float32)


def cost_matrix(rows: Sequence[Row], models: Sequence[str]) -> Matrix | None:
    """[rows, models], None when no row states costs."""
    if not any(row.costs for row in rows):
        return None
    return np.array([[row.costs.get(model, 0.0) for model in models] for row in rows], np.float32)


def given_vectors(rows: Sequence[Row]) -> Matrix | None:
    """Unit vectors [rows, width] that the rows bring along."""
    if rows[0].embedding is None:
        return None
    vectors = np.array([row.embedding for row in rows], np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(vectors).all() or (lengths == 0).any():
        raise RowsError("an embedding has a number that is not finite, or only zeros")
    return np.asarray(vectors / lengths, np.float32)


def _row(line: bytes, where: str) -> Row:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise RowsError(f"{where} is no JSON: {error.msg}") from None
    if not isinstance(found, dict):
        raise RowsError(f"{where} is no JSON object")
    text = next((found[name] for name in _TEXTS if isinstance(found.get(name), str)), None)
    if text is None or not text.strip() or len(text) > _MOST_TEXT:
        raise RowsError(f'{where} needs a "text" of at most {_MOST_TEXT} characters')
    return Row(text, _scores(found, where), _numbers(found.get("costs") or {}, "costs", where), _embedding(found, where))


def _scores(found: Mapping[str, Any], where: str) -> Mapping[str, float]:
    if isinstance(found.get("model"), str) and found["model"]:
        return {found["model"]: 1.0}
    scores = found.get("scores")
    if not isinstance(scores, Mapping) or not scores:
        raise RowsError(f'{where} needs "model" (the best one), or "scores" (a number for each model)')
    return _numbers(scores, "scores", where)


def _numbers(found: Any, name: str, where: str) -> Mapping[str, float]:
    if not isinstance(found, Mapping):
        raise RowsError(f"{where}: {name} must be an object")
    for model, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise RowsError(f'{where}: {name} of "{model}" must be a number')
    return {model: float(value) for model, value in found.items()}


def _embedding(found: Mapping[str, Any], where: str) -> tuple[float, ...] | None:
    given = found.get("embedding")
    if given is None:
        return None
    if not isinstance(given, list) or not given or not all(isinstance(number, int | float) for number in given):
        raise RowsError(f"{where}: embedding must be a list of numbers")
    return tuple(map(float, given))
