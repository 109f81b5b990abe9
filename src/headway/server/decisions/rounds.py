"""Rows of questions on the engine: equal ones are read once, and all of a round are with the engine together."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

from headway.decisions.label_logits.wanted import LabelLogits
from headway.decisions.row import ItemFailure, Outcome, Row
from headway.engine.pooling.pooling_params import PoolingParams
from headway.engine.request_terms import RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.errors import DeadlineError, StepError
from headway.server.engine_port import EnginePort
from headway.server.merged_outputs import EngineRequest, run
from headway.server.pooling.reading import array_of
from headway.server.request_ids import engine_id

Plan = Generator[Sequence[Row], Sequence[Outcome], dict[str, Any]]
_AT_ONCE: Final = 1024  # rows that are with the engine at the same time
_NOTHING_SAMPLED: Final = SamplingParams(temperature=0, detokenize=False)


async def run_plan(engine: EnginePort, plan: Plan, terms: RequestTerms, answer_id: str, *, elsewhere: bool) -> dict[str, Any]:
    """The body that the plan returns. `elsewhere`: it renders and tokenizes off the event loop. Raises RequestError."""
    outcomes: list[Outcome] | None = None
    while True:
        step = asyncio.to_thread(_advanced, plan, outcomes) if elsewhere else _advanced(plan, outcomes)
        found = await step if asyncio.iscoroutine(step) else step
        if isinstance(found, dict):
            return found
        outcomes = await _read(engine, found, terms, answer_id)


def _advanced(plan: Plan, outcomes: Sequence[Outcome] | None) -> Sequence[Row] | dict[str, Any]:
    """The rows of the next round, or the body."""
    try:
        return next(plan) if outcomes is None else plan.send(outcomes)
    except StopIteration as done:
        return cast(dict[str, Any], done.value)


async def _read(engine: EnginePort, rows: Sequence[Row], terms: RequestTerms, answer_id: str) -> list[Outcome]:
    distinct = list(dict.fromkeys(rows))
    found: dict[Row, Outcome] = {}
    for first in range(0, len(distinct), _AT_ONCE):
        part = distinct[first : first + _AT_ONCE]
        tasks = [asyncio.create_task(_outcome(engine, row, terms, engine_id(answer_id, first + i))) for i, row in enumerate(part)]
        try:
            found.update(zip(part, await asyncio.gather(*tasks), strict=True))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return [found[row] for row in rows]


async def _outcome(engine: EnginePort, row: Row, terms: RequestTerms, request_id: str) -> Outcome:
    labels = cast(LabelLogits, row.detail)
    params = PoolingParams("label_logits", token_ids=labels.token_ids)
    last: Outcome = ItemFailure("unavailable")
    try:
        async with aclosing(run(engine, EngineRequest(request_id, list(row.token_ids), _NOTHING_SAMPLED, terms, pooling=params))) as outputs:
            async for output in outputs:
                last = array_of(output)
    except DeadlineError as error:
        return ItemFailure("deadline_exceeded", error.message)
    except StepError as error:
        if error.reason != "invalid_model_output":
            raise
        return ItemFailure("invalid_model_output", error.message)
    return last
