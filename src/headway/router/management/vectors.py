"""Embeddings and similarities of texts, by the model that the router itself compares texts with."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headway.router.deployments.calls import Answered, Unanswered
from headway.router.generation.generation import Generation
from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.models import calls, embedding_of, switched_off, unanswered
from headway.router.management.route import Route

_MOST_INPUTS = 256
_MOST_BYTES = 1 << 20


async def embeddings(call: Call) -> Answer:
    body = _fields(call, {"texts", "images", "model", "dimension"})
    texts, images = _texts(body, "texts"), _texts(body, "images")
    began = time.perf_counter()
    with call.state.generations.use() as generation:
        answer, deployment = await _embedded(generation, [*texts, *({"image": url} for url in images)], body.get("model"))
    wanted = body.get("dimension")
    if wanted is not None and wanted != len(answer.value[0]):
        raise ManagementError("INVALID_INPUT", f"dimension is {wanted!r}; the vectors of {deployment} have {len(answer.value[0])}")
    took = round((time.perf_counter() - began) * 1000, 3)
    told = [
        {"text": text, "embedding": list(vector), "dimension": len(vector), "model_used": deployment, "processing_time_ms": took}
        for text, vector in zip([*texts, *images], answer.value, strict=True)
    ]
    body_out = {
        "embeddings": told,
        "total_count": len(told),
        "total_processing_time_ms": took,
        "avg_processing_time_ms": round(took / len(told), 3),
        "representation": answer.representation,
    }
    return Answer(body_out)


async def similarity(call: Call) -> Answer:
    body = _fields(call, {"text1", "text2", "model"})
    pair = [_text(body, "text1"), _text(body, "text2")]
    began = time.perf_counter()
    with call.state.generations.use() as generation:
        answer, deployment = await _embedded(generation, pair, body.get("model"))
    one, two = _rows(answer.value)
    return Answer({"similarity": float(one @ two), "model_used": deployment, "processing_time_ms": round((time.perf_counter() - began) * 1000, 3)})


async def similarity_batch(call: Call) -> Answer:
    """The `top_k` candidates that are most like the query (0 = all), best first."""
    body = _fields(call, {"query", "candidates", "top_k", "model"})
    query, candidates, top = _text(body, "query"), _texts(body, "candidates"), body.get("top_k", 0)
    if not isinstance(top, int) or isinstance(top, bool) or top < 0:
        raise ManagementError("INVALID_INPUT", "top_k must be a whole number from 0 on")
    if not candidates:
        raise ManagementError("INVALID_INPUT", "candidates is empty")
    began = time.perf_counter()
    with call.state.generations.use() as generation:
        answer, deployment = await _embedded(generation, [query, *candidates], body.get("model"))
    rows = _rows(answer.value)
    likeness = rows[1:] @ rows[0]
    order = np.argsort(-likeness, kind="stable")[: top or None]
    matches = [{"index": int(at), "similarity": float(likeness[at]), "text": candidates[at]} for at in order]
    took = round((time.perf_counter() - began) * 1000, 3)
    return Answer({"matches": matches, "total_candidates": len(candidates), "model_used": deployment, "processing_time_ms": took})


async def nli(call: Call) -> Answer:
    raise ManagementError("NOT_SUPPORTED", "natural language inference is retired: no model of the router does it", 501, fix="Ask a decision model (systemone).")


async def _embedded(
    generation: Generation, inputs: Sequence[str | Mapping[str, Any]], model: Any
) -> tuple[Answered[Sequence[Sequence[float]]], str]:  # fmt: skip
    """Raises ManagementError when embeddings are off, or nothing answers."""
    services = generation.document.global_.services if generation.document.global_ else None
    api = services.api.embeddings if services and services.api else None
    if api is not None and api.enabled is False:
        raise switched_off("the embeddings API", "Set global.services.api.embeddings.enabled.")
    if not inputs or len(inputs) > _MOST_INPUTS:
        raise ManagementError("INVALID_INPUT", f"between 1 and {_MOST_INPUTS} inputs are taken, found {len(inputs)}")
    deployment = embedding_of(generation)
    if model not in (None, "", "auto", deployment):
        raise ManagementError("INVALID_INPUT", f"model {str(model)[:60]!r} makes no vectors here", fix=f"Use {deployment!r}, or leave model out.")
    with calls(generation) as asking:
        answer = await asking.embed(deployment, inputs)
    if isinstance(answer, Unanswered):
        raise unanswered(answer)
    return answer, deployment


def _rows(vectors: Sequence[Sequence[float]]) -> npt.NDArray[np.float64]:
    rows = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths == 0, 1, lengths)


def _fields(call: Call, known: set[str]) -> dict[str, Any]:
    body = call.json()
    if strange := sorted(set(body) - known):
        raise ManagementError("INVALID_INPUT", f"unknown fields: {', '.join(strange[:10])}", fix=f"It takes {', '.join(sorted(known))}.")
    return body


def _text(body: Mapping[str, Any], name: str) -> str:
    found = body.get(name)
    if not isinstance(found, str) or not found.strip() or len(found) > _MOST_BYTES:
        raise ManagementError("INVALID_INPUT", f"{name} must be a string that is not empty")
    return found


def _texts(body: Mapping[str, Any], name: str) -> list[str]:
    found = body.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise ManagementError("INVALID_INPUT", f"{name} must be a list of strings that are not empty")
    return found


_ROOT, _OLD = "/api/v1/diagnostics", "/api/v1"
ROUTES = (
    Route("POST", f"{_ROOT}/embeddings", embeddings, "classify.invoke", "Vectors of texts and images.", (f"{_OLD}/embeddings",)),
    Route("POST", f"{_ROOT}/similarity", similarity, "classify.invoke", "How alike two texts are.", (f"{_OLD}/similarity",)),
    Route("POST", f"{_ROOT}/similarity/batch", similarity_batch, "classify.invoke", "Candidates by likeness.", (f"{_OLD}/similarity/batch",)),
    Route("POST", f"{_ROOT}/nli", nli, "classify.invoke", "Retired.", (f"{_OLD}/nli",)),
)
