"""Answers of `/v1/classify`, `/v1/embeddings` and `/v1/rerank`, item by item."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headway.router.deployments import outcome
from headway.router.deployments.calls import Answered, Distribution, FoundSpan, Unanswered
from headway.router.deployments.plausibility import is_distribution, is_share, is_span

_MISSING = Unanswered(outcome.MISSING_ANSWER)
_INVALID = Unanswered(outcome.INVALID_OUTPUT)


def distributions(body: Mapping[str, Any], inputs: Sequence[Any], seconds: float) -> list[Answered[Distribution] | Unanswered]:
    labels = body.get("labels")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        return [_INVALID for _ in inputs]

    def read(item: Mapping[str, Any], given: Any) -> Answered[Distribution] | Unanswered:
        values = item.get("probabilities", item.get("scores"))
        if not isinstance(values, list) or len(values) != len(labels):
            return _INVALID
        # of several windows each label has its highest probability: those no longer sum to 1
        is_right = is_distribution(values) if "probabilities" in item and "windows" not in item else all(map(is_share, values))
        if not is_right:
            return _INVALID
        return Answered(Distribution(dict(zip(labels, values, strict=True))), _read_all(item), seconds)

    return _each(body.get("results"), inputs, read)


def found_spans(body: Mapping[str, Any], inputs: Sequence[Any], seconds: float) -> list[Answered[Sequence[FoundSpan]] | Unanswered]:
    def read(item: Mapping[str, Any], given: Any) -> Answered[Sequence[FoundSpan]] | Unanswered:
        text = given if isinstance(given, str) else given.get("answer", given.get("text"))
        spans = item.get("spans")
        longest = len(text) if isinstance(text, str) else None
        if not isinstance(spans, list) or not all(isinstance(span, Mapping) and is_span(span, longest) for span in spans):
            return _INVALID
        found = [FoundSpan(str(s.get("label")), s["start"], s["end"], s["probability"], str(s.get("text", ""))) for s in spans]
        return Answered(found, _read_all(item), seconds)

    return _each(body.get("results"), inputs, read)


def relevances(body: Mapping[str, Any], inputs: Sequence[Any], seconds: float) -> list[Answered[float] | Unanswered]:
    def read(item: Mapping[str, Any], given: Any) -> Answered[float] | Unanswered:
        score: Any = item.get("relevance_score")
        return Answered(float(score), seconds=seconds) if is_share(score) else _INVALID

    return _each(body.get("results"), inputs, read)


def vectors(body: Mapping[str, Any], inputs: Sequence[Any], seconds: float) -> list[Answered[Sequence[float]] | Unanswered]:
    meta = body.get("meta")
    made_by = representation(meta.get("representation")) if isinstance(meta, Mapping) else None

    def read(item: Mapping[str, Any], given: Any) -> Answered[Sequence[float]] | Unanswered:
        vector = _vector(item.get("embedding"))
        return Answered(vector, _read_all(item), seconds, made_by) if made_by and vector else _INVALID

    return _each(body.get("data"), inputs, read)


def all_vectors(each: Sequence[Answered[Sequence[float]] | Unanswered]) -> Answered[Sequence[Sequence[float]]] | Unanswered:
    """All of them or none: the first that failed says why."""
    found: list[Answered[Sequence[float]]] = []
    for one in each:
        if isinstance(one, Unanswered):
            return one
        found.append(one)
    if len({one.representation for one in found}) > 1:  # the model was exchanged between two calls
        return _INVALID
    whole, seconds = all(one.read_all for one in found), max(one.seconds for one in found)
    return Answered([one.value for one in found], whole, seconds, found[0].representation)


def representation(given: Any) -> str | None:
    """As text."""
    if not isinstance(given, Mapping) or not isinstance(given.get("model_sha256"), str):
        return None
    return f"{given['model_sha256']}/layer-{given.get('layer', 0)}/{given.get('dimension', 0)}"


def _vector(given: Any) -> list[float] | None:
    try:
        values = np.frombuffer(base64.b64decode(given, validate=True), "<f4") if isinstance(given, str) else np.asarray(given, dtype=np.float64)
    except (binascii.Error, ValueError, TypeError):
        return None
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        return None
    numbers: list[float] = values.tolist()
    return numbers


def _each(items: Any, inputs: Sequence[Any], read: Callable[[Mapping[str, Any], Any], Any]) -> list[Any]:
    """By `index`, since failed items may stand elsewhere."""
    by_index = {item.get("index"): item for item in items if isinstance(item, Mapping)} if isinstance(items, list) else {}
    answers = []
    for number, given in enumerate(inputs):
        item = by_index.get(number)
        if item is None:
            answers.append(_MISSING)
        elif "error" in item:
            error = item["error"]
            code = error.get("code") if isinstance(error, Mapping) else error
            answers.append(Unanswered(outcome.of_item(str(code), needs_all=True)))
        else:
            answers.append(read(item, given))
    return answers


def _read_all(item: Mapping[str, Any]) -> bool:
    usage = item.get("input")
    return not (isinstance(usage, Mapping) and usage.get("truncated") is True)
