"""`POST /generative_scoring`: how likely some tokens are to follow each prompt; nothing is generated."""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import Request
from starlette.responses import Response

from headway.engine.pooling.pooling_params import PoolingParams
from headway.errors import RequestError
from headway.server.intake import read_body
from headway.server.pooling.prompts import text_prompts
from headway.server.pooling.reading import Array, answer_start, read, terms_of
from headway.server.prompt_tokens import PromptTokens
from headway.server.sampling import check_priority
from headway.server.state import ServerState, state_of
from headway.wire.pooling.generative_scoring import GenerativeScoringBody
from headway.wire.pooling.reading_body import reading_usage


async def create_generative_scores(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, GenerativeScoringBody)
    check_priority(body, state.engine)
    start = answer_start(state, request, body, "generative-scoring")
    _check_labels(state, body.label_token_ids)
    prompts = await _joined(state, body)

    def whole(found: list[Array], tokens: int) -> dict[str, Any]:
        data = [{"index": i, "object": "score", "score": first_label(each, among_labels=body.apply_softmax)} for i, each in enumerate(found)]
        return start.fields() | {"data": data, "usage": reading_usage(tokens)}

    params = PoolingParams("label_logits", token_ids=tuple(body.label_token_ids))
    return await read(state, request, start, prompts, params, whole, terms=terms_of(state, body))


def first_label(found: Array, *, among_labels: bool) -> float:
    """Probability of the first label, from the logits of the labels, the logarithm of the sum of exp over the vocabulary, and the largest
    logit (`engine.pooling.readout.LabelLogits`)."""
    labels = found[:-2].astype(np.float64)
    whole = np.logaddexp.reduce(labels) if among_labels else float(found[-2])
    return float(min(1.0, np.exp(labels[0] - whole)))


def _check_labels(state: ServerState, ids: list[int]) -> None:
    known = min(state.engine.vocab_size, state.engine.tokenizer.vocab_size)
    if (strange := next((token for token in ids if not 0 <= token < known), None)) is not None:
        raise RequestError(f"label_token_ids holds {strange}, which is no token: there are {known}", reason="token_out_of_vocabulary", param="label_token_ids")
    if len(set(ids)) < len(ids):
        raise RequestError("label_token_ids holds a token twice", param="label_token_ids", fix="Name each label once.")


async def _joined(state: ServerState, body: GenerativeScoringBody) -> list[PromptTokens]:
    """Query and item are tokenized each by itself, and special tokens come before the first of them only."""
    parts = [body.query, *body.items]
    bare = body.model_copy(update={"add_special_tokens": False, "truncate_prompt_tokens": None})
    query, *items = [prompt.ids for prompt in await text_prompts(state, parts, bare)]
    first = body.items if body.item_first else [body.query]
    special = body.add_special_tokens and all(isinstance(part, str) for part in first)
    opening = state.engine.tokenizer.encode("", True) if special else []
    joined = [[*opening, *item, *query] if body.item_first else [*opening, *query, *item] for item in items]
    return await text_prompts(state, joined, body)
