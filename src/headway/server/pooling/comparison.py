"""`POST /score` and `/rerank`: texts are compared by the cosine of their vectors."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.responses import Response

from headway.engine.pooling.pooling_params import PoolingParams
from headway.errors import RequestError
from headway.server.intake import read_body
from headway.server.pooling.prompts import text_prompts
from headway.server.pooling.reading import Array, answer_start, read, terms_of
from headway.server.sampling import check_priority
from headway.server.state import ServerState, state_of
from headway.wire.cosine import cosine
from headway.wire.pooling.pair_bodies import RerankBody, ScoreBody
from headway.wire.pooling.reading_body import reading_usage


async def create_score(request: Request) -> Response:
    """One text against each of many, or pairs. Raises RequestError (`task_unsupported`) for a model that classifies."""
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, ScoreBody)
    check_priority(body, state.engine)
    start = answer_start(state, request, body, "score")
    firsts, seconds = body.first, body.second
    prompts = await text_prompts(state, [*firsts, *seconds], body)

    def whole(vectors: list[Array], tokens: int) -> dict[str, Any]:
        ours, theirs = vectors[: len(firsts)], vectors[len(firsts) :]
        pairs = zip(ours * (len(theirs) // len(ours)), theirs, strict=True)
        data = [{"index": i, "object": "score", "score": cosine(a, b)} for i, (a, b) in enumerate(pairs)]
        return start.fields() | {"data": data, "usage": reading_usage(tokens)}

    return await read(state, request, start, prompts, _alike(state), whole, terms=terms_of(state, body))


async def create_rerank(request: Request) -> Response:
    """Best first, the first of equals first."""
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, RerankBody)
    check_priority(body, state.engine)
    start = answer_start(state, request, body, "rerank")
    prompts = await text_prompts(state, [body.query, *body.documents], body)

    def whole(vectors: list[Array], tokens: int) -> dict[str, Any]:
        found = [
            {"index": i, "document": {"text": text}, "relevance_score": cosine(vectors[0], vector)}
            for i, (text, vector) in enumerate(zip(body.documents, vectors[1:], strict=True))
        ]
        found.sort(key=lambda entry: -entry["relevance_score"])  # type: ignore[operator]
        return {"id": start.id, "model": start.model, "results": found[: body.top_n or None], "usage": reading_usage(tokens)}

    return await read(state, request, start, prompts, _alike(state), whole, terms=terms_of(state, body))


def _alike(state: ServerState) -> PoolingParams:
    if state.engine.pooler.labels:
        raise RequestError(
            "this model classifies texts, and its vectors were not made to be compared", reason="task_unsupported", param="model",
            fix="Ask a model that makes embeddings, or start this one with --runner pooling --convert embed.",
        )  # fmt: skip
    return PoolingParams("embed")
