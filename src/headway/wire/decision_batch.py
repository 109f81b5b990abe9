"""`POST /v1/systemone/batch`: the same questions about many states, in one body; the answer is a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.wire.decision_body import (
    LIMITS,
    DecisionLimits,
    is_runtime,
    questions_problem,
    read_questions,
    state_problem,
)
from headway.wire.decisions import DecisionPart, DecisionRequest, Dialect
from headway.wire.violations import SchemaError, Violation


def read_decision_batch(fields: Mapping[str, Any], limits: DecisionLimits = LIMITS) -> DecisionRequest:
    """`{"states": [...], "questions": {...}}`. The states are named "0", "1", ... Raises SchemaError."""
    wrong = [*_states_problem(fields, limits), *questions_problem(fields, ("body",), limits)]
    if wrong:
        raise SchemaError(wrong)
    strict = is_runtime({"questions": fields["questions"]})
    dialect: Dialect = "runtime" if strict else "system_one"
    questions = read_questions(fields["questions"], strict=strict)
    parts = {str(i): DecisionPart(state, questions) for i, state in enumerate(fields["states"])}
    return DecisionRequest(main=None, dialect=dialect, states=parts)


def batch_answer(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The planner's body as `{"model", "results", "total_usage"}`; results in the order of the states."""
    results = [{"model": name, **result} for result in body["states"].values()]
    return {"model": name, "results": results, "total_usage": body["usage"]}


def _states_problem(fields: Mapping[str, Any], limits: DecisionLimits) -> list[Violation]:
    states = fields.get("states")
    if "states" not in fields:
        return [Violation(("body", "states"), "states are missing", "missing")]
    if not isinstance(states, list):
        return [Violation(("body", "states"), "expected an array of states", "list_type")]
    if not states:
        return [Violation(("body", "states"), "there are no states, expected at least one", "too_short")]
    if len(states) > limits.states:
        return [Violation(("body", "states"), f"{len(states)} states, the limit is {limits.states}", "too_long")]
    problems = ((i, state_problem(state)) for i, state in enumerate(states))
    return [Violation(("body", "states", i), *problem) for i, problem in problems if problem is not None]
