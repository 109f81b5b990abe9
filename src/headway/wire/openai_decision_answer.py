"""The planner's body -> the answer of OpenAI's decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.wire.openai_decisions import Named


def openai_answer(body: Mapping[str, Any], questions: Sequence[Named], model: str) -> dict[str, Any]:
    """Answers in the order of the questions. A question that failed is a `refusal`, the only failure that the protocol
    has; `x_error` and `x_message` say why."""
    tokens = body["usage"]["input_tokens"]
    return {
        "model": model,
        "answers": [_answer(body["answers"][str(i)], named) for i, named in enumerate(questions)],
        "usage": {
            "input_tokens": tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens,
        },
    }


def _answer(given: Mapping[str, Any], named: Named) -> dict[str, Any]:
    if "error" in given:
        return {"type": "refusal", "name": named.name, "x_error": given["error"], "x_message": given.get("message")}
    more = {name: value for name, value in given.items() if name.startswith("x_")}
    if named.type == "predicate":
        return {"type": "predicate", "name": named.name, "probability": given["noul"], **more}
    chances = list(given["probabilities"].values())
    shared = {"name": named.name, "confidence": given["confidence"], **more}
    if named.type == "choice":
        chosen = named.values[list(given["probabilities"]).index(given["choice"])]
        listed = [{"value": value, "probability": p} for value, p in zip(named.values, chances, strict=True)]
        return {"type": "choice", "choice": chosen, "probabilities": listed, **shared}
    levels = [{"value": i, "label": label, "probability": p} for i, (label, p) in enumerate(zip(named.labels, chances, strict=True))]
    return {"type": "score", "score": given["score"], "probabilities": levels, **shared}
