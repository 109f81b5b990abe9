"""The routes of decisions: one surface in three wire forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from headway.runtime.http.call import Call, Endpoint, Fields, Refuse
from headway.runtime.http.decision_refusals import batch_style, decisions_style, system_one_style
from headway.runtime.served_model import ServedModel
from headway.wire.decision_batch import batch_answer, read_decision_batch
from headway.wire.decision_body import read_decision_body
from headway.wire.decisions import DecisionRequest
from headway.wire.openai_decision_answer import openai_answer
from headway.wire.openai_decisions import OpenAIDecisions, is_openai, read_openai_decisions
from headway.wire.violations import SchemaError, Violation

MAX_BYTES: Final = 32 * 1024 * 1024


def decision_endpoints() -> tuple[Endpoint, ...]:
    """Names of --decision-alias mean the first model that answers decisions."""
    return (
        _endpoint("/v1/decisions", "decisions", read_decisions_call, decisions_style),
        _endpoint("/v1/systemone", "systemone", read_system_one_call, system_one_style),
        _endpoint("/v1/systemone/batch", "systemone_batch", read_batch_call, batch_style),
    )


def _endpoint(path: str, name: str, read: Callable[[Fields], Call], style: Callable[[Fields | None], Refuse]) -> Endpoint:
    return Endpoint(path, name, read, style, has_aliases=True, is_model_optional=True, max_bytes=MAX_BYTES)


def read_system_one_call(fields: Fields) -> Call:
    """Raises SchemaError."""
    request = read_decision_body(fields)
    return Call("decisions", request, _model(fields), request.options, outcomes=question_outcomes)


def read_decisions_call(fields: Fields) -> Call:
    """OpenAI's form when there is `input`, else as `/v1/systemone`. Raises SchemaError."""
    if not is_openai(fields):
        return read_system_one_call(fields)
    asked = read_openai_decisions(fields)
    return Call("decisions", asked.request, _model(fields), render=partial(_openai, asked), outcomes=question_outcomes)


def read_batch_call(fields: Fields) -> Call:
    """Raises SchemaError."""
    request: DecisionRequest = read_decision_batch(fields)
    return Call("decisions", request, _model(fields), render=_batch, outcomes=question_outcomes)


def question_outcomes(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Of each question about each state its type and "answered", or the code of its failure."""
    for part in (body, *body.get("states", {}).values()):
        sets = part.get("sets", {})
        of_sets = {f"{name}.{label}" for name, found in sets.items() for label in found["probabilities"]}
        for name, answer in part.get("answers", {}).items():
            if name not in of_sets:
                kind = "span" if name in part.get("spans", {}) else answer.get("type", "unknown")
                yield kind, answer.get("error", "answered")
        yield from (("set", "answered") for _ in sets)


def _openai(asked: OpenAIDecisions, body: dict[str, Any], model: ServedModel) -> dict[str, Any]:
    return openai_answer(body, asked.questions, model.name)


def _batch(body: dict[str, Any], model: ServedModel) -> dict[str, Any]:
    return batch_answer(body, model.name)


def _model(fields: Fields) -> str | None:
    model = fields.get("model")
    if model is not None and not isinstance(model, str):
        raise SchemaError([Violation(("body", "model"), "expected a text", "string_type")])
    return model
