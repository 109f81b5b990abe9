"""Embedder: vectors of a request's texts beside those of the configuration, which are made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from headway.router.deployments.calls import Answered, StageCalls, Unanswered
from headway.router.embedding.memo import Input, VectorMemo

Matrix: TypeAlias = npt.NDArray[np.float32]
_CHUNK = 64  # inputs of one call: what was answered before a deadline is kept, so the next request finds less to do


@dataclass(frozen=True, slots=True)
class Vectors:
    """Rows of length 1: [queries, width] and [candidates, width], in their order."""

    queries: Matrix
    candidates: Matrix
    representation: str


class Embedder:
    """Asks `deployment`. `candidates` come from the configuration: their vectors are made with the first request and kept in `memo`, which
    outlives the generation; those of queries are not kept."""

    def __init__(self, deployment: str, memo: VectorMemo, candidates: Sequence[Input] = ()) -> None:
        self.deployment = deployment
        self._memo = memo
        self._candidates = candidates
        self._distinct = tuple({str(given): given for given in candidates}.values())
        self._ready: tuple[str, Matrix] | None = None  # representation and all candidates

    async def embed(self, calls: StageCalls, queries: Sequence[Input]) -> Vectors | Unanswered:
        """All or nothing; what was answered stays in the memo. One call when the candidates are known and the model is still the same."""
        begun = self._missing(self._memo.latest.get(self.deployment, ""))[:_CHUNK] if self._ready is None else []
        answer = await calls.embed(self.deployment, [*queries, *begun])
        if isinstance(answer, Unanswered):
            return answer
        made = unit_rows(answer, len(queries) + len(begun))
        if made is None:
            return Unanswered("invalid_model_output")
        self._keep(answer.representation, begun, made[len(queries) :])
        candidates = await self._all_candidates(calls, answer.representation, made.shape[1])
        return candidates if isinstance(candidates, Unanswered) else Vectors(made[: len(queries)], candidates, answer.representation)

    async def _all_candidates(self, calls: StageCalls, representation: str, width: int) -> Matrix | Unanswered:
        if self._ready is not None and self._ready[0] == representation:
            return self._ready[1]
        self._memo.latest[self.deployment] = representation
        missing = self._missing(representation)
        for start in range(0, len(missing), _CHUNK):
            chunk = missing[start : start + _CHUNK]
            answer = await calls.embed(self.deployment, chunk)
            if isinstance(answer, Unanswered):
                return answer
            made = unit_rows(answer, len(chunk))
            if made is None or made.shape[1] != width or answer.representation != representation:
                return Unanswered("invalid_model_output")  # also when the model changed between two calls
            self._keep(representation, chunk, made)
        kept = [vector for given in self._candidates if (vector := self._memo.find(representation, given)) is not None]
        if len(kept) < len(self._candidates):
            return Unanswered("failed")  # more candidates than the memo holds
        self._ready = representation, np.stack(kept) if kept else np.empty((0, width), np.float32)
        return self._ready[1]

    def _missing(self, representation: str) -> list[Input]:
        return [given for given in self._distinct if self._memo.find(representation, given) is None]

    def _keep(self, representation: str, given: Sequence[Input], made: Matrix) -> None:
        for one, vector in zip(given, made, strict=True):
            self._memo.keep(representation, one, np.ascontiguousarray(vector))


def unit_rows(answer: Answered[Sequence[Sequence[float]]], count: int) -> Matrix | None:
    """As `count` unit vectors; None when they are ragged, empty, not finite or zero."""
    try:
        rows = np.asarray(answer.value, dtype=np.float32)
    except ValueError:
        return None
    if rows.ndim != 2 or rows.shape[0] != count or rows.shape[1] == 0 or not np.isfinite(rows).all():
        return None
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return None if (lengths == 0).any() else rows / lengths
