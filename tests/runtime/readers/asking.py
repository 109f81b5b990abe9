"""Asking a loaded model one question in the form of System One, without a server."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from headway.runtime.loaded_model import LoadedModel
from headway.runtime.plan import run_plan
from headway.wire.decisions import DecisionPart, DecisionRequest, Option, Question


def question_of(given: dict[str, Any], **more: Any) -> Question:
    """As a client writes it -> as the runtime passes it on."""
    criteria = given.get("criteria")
    if given["type"] == "noul":
        options = [Option(side, (criteria or {}).get(side)) for side in ("false", "true")]
    elif given["type"] == "score":
        options = [Option(str(level), text) for level, text in enumerate(criteria or [])]
    else:
        options = [Option(key, text) for key, text in (criteria or {}).items()]
    return Question(given["type"], given.get("instructions"), tuple(options), **more)


def request_of(state: Any, *questions: Question, max_tokens: int | None = None) -> DecisionRequest:
    """Ids are q0, q1, ..."""
    part = DecisionPart(state, {f"q{number}": question for number, question in enumerate(questions)})
    return DecisionRequest(part, "system_one", max_tokens=max_tokens)


def answer(model: LoadedModel, state: Any, given: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The answer to one question, or its error."""
    body = run_plan(model, model.planners["decisions"](request_of(state, question_of(given, **more))))
    found: dict[str, Any] = body["answers"]["q0"]
    return found


def probabilities(found: dict[str, Any]) -> npt.NDArray[np.float64]:
    """Of an answer: [options], false before true."""
    if found["type"] == "noul":
        return np.array([1.0 - found["noul"], found["noul"]])
    return np.array(list(found["probabilities"].values()))


def asked(model: LoadedModel, state: Any, given: dict[str, Any]) -> npt.NDArray[np.float64]:
    """Probabilities of one question."""
    return probabilities(answer(model, state, given))
