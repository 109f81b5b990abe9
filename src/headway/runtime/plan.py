"""A plan: one request on its way through forward passes, as a generator that asks for rows and is sent their outcomes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias

from headway.runtime.loaded_model import LoadedModel
from headway.runtime.row import Outcome, Row

Plan: TypeAlias = Generator[Sequence[Row], Sequence[Outcome], dict[str, Any]]
"""Up to the first yield it validates, renders and tokenizes; it is then sent one outcome for each row and may ask for
another round; what it returns is the body of the answer. Raises RequestError before the first yield only."""


def run_plan(model: LoadedModel, plan: Plan) -> dict[str, Any]:
    """Drive `plan` on the calling thread, every row alone: the exact path of self-checks, and of tests."""
    try:
        rows = next(plan)
        while True:
            rows = plan.send([model.forward([row])[0] for row in rows])
    except StopIteration as done:
        answer: dict[str, Any] = done.value
        return answer
