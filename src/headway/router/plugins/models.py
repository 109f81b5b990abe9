"""Models that plugins ask, each hook in a stage of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from headway.router.deployments.calls import StageCalls, Unanswered
from headway.router.embedding.embedder import Matrix, unit_rows
from headway.router.request.context import RequestContext


@contextmanager
def asking(context: RequestContext) -> Iterator[StageCalls]:
    """The calls of one hook, within the request's deadline."""
    calls = context.generation.deployments.open(context.deadline).join()
    try:
        yield calls
    finally:
        calls.leave()


@dataclass(frozen=True, slots=True)
class Embedded:
    """`vectors` [texts, width], rows of length 1, made by `representation`. `read_all` is False when the model saw only a part of a text."""

    vectors: Matrix
    representation: str
    read_all: bool = True


async def embedded(calls: StageCalls, deployment: str, texts: Sequence[str]) -> Embedded | Unanswered:
    answer = await calls.embed(deployment, list(texts))
    if isinstance(answer, Unanswered):
        return answer
    rows = unit_rows(answer, len(texts))
    if rows is None:
        return Unanswered("invalid_model_output")
    # Where nothing tells what made the vectors, at least those of another deployment or width stay apart.
    representation = answer.representation or f"{deployment}/{rows.shape[1]}"
    return Embedded(np.ascontiguousarray(rows), representation, answer.read_all)
