"""The arithmetic of static packages: pooled vectors of state, question and options -> one logit for each option."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from headway.runtime.readers.sparrow.number_pairs import NUMBER_FEATURES, number_features

FloatRows = npt.NDArray[np.float32]
Array = npt.NDArray[Any]
KINDS: Final = {"noul": 0, "choice": 1, "score": 2}
WORD_BLOCKS: Final = 6  # o, s*o, q*o, s*q*o, o - mean(o), (s - mean(o))*o
NUMBER_BLOCKS: Final = 4  # n*o, n*q*o, bound, bound*q


@dataclass(frozen=True, slots=True)
class SparrowQuestion:
    """What the scorer reads beside the state. All ids are non-empty tuples. `pairs`: key ids, line ids, value."""

    kind: str
    instructions: tuple[int, ...]
    options: tuple[tuple[int, ...], ...]
    pairs: tuple[tuple[tuple[int, ...], tuple[int, ...], float], ...] = ()

    @property
    def tokens(self) -> int:
        return (
            len(self.instructions)
            + sum(len(option) for option in self.options)
            + sum(len(key) + len(line) for key, line, _ in self.pairs)
        )


@dataclass(frozen=True, slots=True)
class StoredRows:
    """A matrix [rows, columns] as stored: int8 with one scale for each row, or floats without scales."""

    values: Array
    scales: FloatRows | None

    def expanded(self, index: npt.NDArray[np.int64] | slice) -> FloatRows:
        rows: FloatRows = self.values[index].astype(np.float32)
        return rows if self.scales is None else rows * self.scales[index][:, None]


class SparrowScorer:
    """`arrays` as in the package. Raises ValueError naming the array whose shape does not fit."""

    def __init__(self, arrays: Mapping[str, Array], vocabulary_size: int, numbers: bool):
        self._words = _stored(arrays, "emb.weight")
        rows, width = self._words.values.shape
        if rows < vocabulary_size:
            raise ValueError(f"emb.weight has {rows} rows for {vocabulary_size} tokens")
        self._kinds = _matrix(arrays, "kind.weight", (len(KINDS), width))
        features = width * (WORD_BLOCKS + (NUMBER_BLOCKS if numbers else 0))
        hidden = _vector(arrays, "mlp.0.bias").shape[0]
        self._layers = [
            (_matrix(arrays, "mlp.0.weight", (hidden, features)).T, _vector(arrays, "mlp.0.bias")),
            (_matrix(arrays, "mlp.2.weight", (hidden, hidden)).T, _vector(arrays, "mlp.2.bias", hidden)),
        ]
        self._out = (_matrix(arrays, "mlp.4.weight", (1, hidden)).T, _vector(arrays, "mlp.4.bias", 1))
        self._numbers = _NumberPooling(arrays, width) if numbers else None
        self.parameters = stored_parameters(arrays)
        self.memory_bytes = sum(array.nbytes for array in arrays.values())

    def score(self, state: Sequence[int], question: SparrowQuestion) -> npt.NDArray[np.float64]:
        """Token ids of the state (at least one) -> logits [options]."""
        s = _unit(self._pooled(state))
        q = _unit(self._pooled(question.instructions) + self._kinds[KINDS[question.kind]])
        o = _unit(np.stack([self._pooled(option) for option in question.options]))
        mean = o.mean(0, keepdims=True)
        blocks = [o, s * o, q * o, s * q * o, o - mean, (s - mean) * o]
        if self._numbers is not None:
            overall, bound = self._numbers.pooled(self._pooled, question.pairs, o)
            blocks += [overall * o, overall * q * o, bound, bound * q]
        x = np.concatenate(blocks, -1)
        for weight, bias in self._layers:
            x = _gelu(x @ weight + bias)
        weight, bias = self._out
        logits: npt.NDArray[np.float64] = (x @ weight + bias)[:, 0].astype(np.float64)
        return logits

    def _pooled(self, ids: Sequence[int]) -> FloatRows:
        mean: FloatRows = self._words.expanded(np.asarray(ids)).mean(0)
        return mean


class _NumberPooling:
    """Each pair is unit(key) * tanh(G features + b); options attend to the lines on which pairs stand."""

    def __init__(self, arrays: Mapping[str, Array], width: int):
        self._weight = _matrix(arrays, "g.weight", (width, NUMBER_FEATURES)).T
        self._bias = _vector(arrays, "g.bias", width)
        self._sharpness = float(_vector(arrays, "tau", 1)[0])

    def pooled(
        self, pool: Any, pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...], float]], options: FloatRows
    ) -> tuple[FloatRows, FloatRows]:
        """-> the mean of all pairs [width], and what is bound to each option [options, width]."""
        if not pairs:
            return np.zeros(options.shape[1], np.float32), np.zeros_like(options)
        keys = _unit(np.stack([pool(key) for key, _, _ in pairs]))
        lines = _unit(np.stack([pool(line) for _, line, _ in pairs]))
        values = np.stack([number_features(value) for _, _, value in pairs])
        read = keys * np.tanh(values @ self._weight + self._bias)
        attention = self._sharpness * (options @ lines.T)
        attention = np.exp(attention - attention.max(-1, keepdims=True))
        attention /= attention.sum(-1, keepdims=True)
        return read.mean(0), attention @ read


def _unit(rows: FloatRows) -> FloatRows:
    unit: FloatRows = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), np.float32(1e-12))
    return unit


def stored_parameters(arrays: Mapping[str, Array]) -> int:
    """Numbers of the model; scales of quantized rows are none."""
    return sum(array.size for name, array in arrays.items() if not name.endswith(".scale"))


def _gelu(x: FloatRows) -> FloatRows:
    """x * Phi(x) with erf by Abramowitz and Stegun 7.1.26 (absolute error 1.5e-7), so that numpy is enough."""
    one = np.float32(1.0)
    z = np.abs(x) / np.float32(math.sqrt(2.0))
    t = np.asarray(one / (one + np.float32(0.3275911) * z), dtype=np.float32)
    series = np.zeros_like(t)
    for coefficient in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = np.asarray((series + np.float32(coefficient)) * t, dtype=np.float32)
    erf = np.copysign(one - series * np.exp(-z * z), x)
    return np.asarray(0.5 * x * (one + erf), dtype=np.float32)


def _stored(arrays: Mapping[str, Array], name: str) -> StoredRows:
    quantized = f"{name}.q8" in arrays
    values = arrays[f"{name}.q8"] if quantized else arrays.get(name)
    if values is None:
        raise ValueError(f"{name} is missing")
    if values.ndim != 2:
        raise ValueError(f"{name} must be a matrix, found the shape {list(values.shape)}")
    return StoredRows(values, _vector(arrays, f"{name}.scale", values.shape[0]) if quantized else None)


def _matrix(arrays: Mapping[str, Array], name: str, shape: tuple[int, int]) -> FloatRows:
    stored = _stored(arrays, name)
    if stored.values.shape != shape:
        raise ValueError(f"{name} must have the shape {list(shape)}, found {list(stored.values.shape)}")
    return stored.expanded(slice(None))


def _vector(arrays: Mapping[str, Array], name: str, length: int | None = None) -> FloatRows:
    if name not in arrays:
        raise ValueError(f"{name} is missing")
    vector = arrays[name].astype(np.float32)
    if vector.ndim != 1 or (length is not None and vector.shape[0] != length):
        raise ValueError(f"{name} must be a vector of {length or 'any'} numbers, found the shape {list(vector.shape)}")
    return vector
