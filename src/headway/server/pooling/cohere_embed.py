"""`POST /v2/embed`: embeddings in the form of Cohere."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.responses import Response

from headway.engine.pooling.pooling_params import PoolingParams
from headway.errors import ContextLengthError
from headway.server.intake import read_body
from headway.server.pooling.prompts import text_prompts
from headway.server.pooling.reading import Array, answer_start, read, terms_of
from headway.server.state import state_of
from headway.wire.embedding_answer import encoded
from headway.wire.pooling.cohere_embed import NOT_BUILT, CohereEmbedBody
from headway.wire.pooling.reading_body import ReadingBody


async def create_cohere_embeddings(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, CohereEmbedBody, NOT_BUILT)
    texts, most = body.read, state.engine.max_model_len
    allowed = min(body.max_tokens or most, most)
    reading = ReadingBody(
        model=body.model, truncate_prompt_tokens=None if body.truncate == "NONE" else allowed,
        truncation_side="left" if body.truncate == "START" else "right",
    )  # fmt: skip
    start = answer_start(state, request, reading, "embd")
    prompts = await text_prompts(state, texts, reading)
    if (longest := max(len(prompt.ids) for prompt in prompts)) > allowed:
        raise ContextLengthError(f"a text has {longest} tokens, the most is {allowed}", param="texts", fix="Shorten it, or let truncate be START or END.")

    def whole(vectors: list[Array], tokens: int) -> dict[str, Any]:
        return {
            "id": start.id,
            "embeddings": {kind: [encoded(each, kind == "base64") for each in vectors] for kind in dict.fromkeys(body.embedding_types)},
            "texts": texts,
            "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": tokens}},
            "response_type": "embeddings_by_type",
        }

    return await read(state, request, start, prompts, PoolingParams("embed", body.output_dimension), whole, terms=terms_of(state, reading))
