"""`POST /v1/embeddings`, `/pooling` and `/classify`: one answer for each input."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from fastapi import Request
from starlette.responses import Response

from headway.engine.pooling.pooling_params import PoolingParams, PoolingTask
from headway.errors import RequestError
from headway.server.intake import read_body
from headway.server.pooling.prompts import input_prompts
from headway.server.pooling.reading import Array, answer_start, read, terms_of
from headway.server.prompt_tokens import PromptTokens
from headway.server.sampling import check_priority
from headway.server.state import ServerState, state_of
from headway.wire.embedding_answer import embedding_entry, embedding_list, encoded
from headway.wire.pooling.input_body import ClassifyBody, EmbeddingsBody, InputBody, PoolingBody

_MAX_NUMBERS: Final = 1 << 22  # of all vectors of one answer: about 50 MB of JSON


async def create_embeddings(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, EmbeddingsBody)
    start, prompts = answer_start(state, request, body, "embd"), await _prompts(state, body)
    params = PoolingParams("embed", body.dimensions, body.use_activation)

    def whole(vectors: list[Array], tokens: int) -> dict[str, Any]:
        as_text = body.encoding_format == "base64"
        return start.fields() | embedding_list([embedding_entry(i, each, as_text) for i, each in enumerate(vectors)], tokens)

    return await read(state, request, start, prompts, params, whole, terms=terms_of(state, body))


async def create_pooling(request: Request) -> Response:
    """Without a `task`: probabilities from a model that classifies, else a vector for each token, as in vLLM."""
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, PoolingBody)
    start, prompts = answer_start(state, request, body, "pool"), await _prompts(state, body)
    task: PoolingTask = body.task or ("classify" if state.engine.pooler.labels else "token_embed")
    if task == "token_embed":
        _check_volume(state, prompts, body.dimensions)
    params = PoolingParams(task, body.dimensions, body.use_activation)

    def whole(found: list[Array], tokens: int) -> dict[str, Any]:
        data = [{"object": "pooling", "index": i, "data": encoded(each, body.encoding_format == "base64")} for i, each in enumerate(found)]
        return start.fields() | embedding_list(data, tokens)

    return await read(state, request, start, prompts, params, whole, terms=terms_of(state, body))


async def create_classification(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, ClassifyBody)
    start, prompts = answer_start(state, request, body, "classify"), await _prompts(state, body)
    params = PoolingParams("classify", use_activation=body.use_activation)
    labels = state.engine.pooler.labels

    def whole(found: list[Array], tokens: int) -> dict[str, Any]:
        data = [{"index": i, "label": labels[int(np.argmax(each))], "probs": each, "num_classes": len(each)} for i, each in enumerate(found)]
        return start.fields() | embedding_list(data, tokens)

    return await read(state, request, start, prompts, params, whole, terms=terms_of(state, body))


async def _prompts(state: ServerState, body: InputBody) -> list[PromptTokens]:
    check_priority(body, state.engine)
    return await input_prompts(state, body)


def _check_volume(state: ServerState, prompts: list[PromptTokens], dimensions: int | None) -> None:
    tokens = sum(len(prompt.ids) for prompt in prompts)
    numbers = tokens * min(dimensions or state.engine.pooler.hidden_size, state.engine.pooler.hidden_size)
    if numbers > _MAX_NUMBERS:
        raise RequestError(
            f"vectors of {tokens} tokens would be {numbers} numbers, the limit of one answer is {_MAX_NUMBERS}", param="input",
            fix="Send fewer inputs at once, or ask for fewer dimensions.",
        )  # fmt: skip
