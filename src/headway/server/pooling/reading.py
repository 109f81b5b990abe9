"""One HTTP request that reads prompts: all of them are with the engine at once, and the answer is made of what was read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from fastapi import Request
from starlette.responses import Response

from headway.engine.outputs import RequestOutput
from headway.engine.pooling.pooling_params import PoolingParams
from headway.engine.request_terms import RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.server.merged_outputs import EngineRequest
from headway.server.prompt_tokens import PromptTokens
from headway.server.request_ids import engine_id, public_id
from headway.server.respond import respond
from headway.server.state import ServerState
from headway.wire.pooling.reading_body import ReadingBody

_log = logging.getLogger(__name__)
_NOTHING_SAMPLED: Final = SamplingParams(temperature=0, detokenize=False)
UNTRAINED_HEADER: Final = "x-headway-embedding"
Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class AnswerStart:
    """What the answers begin with."""

    id: str
    created: int
    model: str

    def fields(self, kind: str = "list") -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def answer_start(state: ServerState, request: Request, body: ReadingBody, prefix: str) -> AnswerStart:
    """Raises NotFoundError for a model that is not served."""
    return AnswerStart(f"{prefix}-{public_id(request, body.request_id)}", int(time.time()), state.model_named(body.model))


async def read(
    state: ServerState,
    request: Request,
    start: AnswerStart,
    prompts: Sequence[PromptTokens],
    params: PoolingParams,
    whole: Callable[[list[Array], int], object],
    *,
    terms: RequestTerms,
) -> Response:
    """`whole` makes the body of the answer from what was read of each prompt, in order, and the number of tokens in all.

    Vectors of a model that was not trained to make them are marked as such, in a header and once in the log.
    """
    terms = replace(terms, adapter=state.adapter_named(start.model))
    engine_requests = [
        EngineRequest(engine_id(start.id, i), prompt.ids, _NOTHING_SAMPLED, terms, pooling=params) for i, prompt in enumerate(prompts)
    ]
    tokens = sum(len(prompt.ids) for prompt in prompts)
    response = await respond(state, request, engine_requests, None, lambda outputs: whole([array_of(output) for output in outputs], tokens))
    if params.task in ("embed", "token_embed") and not state.engine.pooler.is_trained:
        _mark(state, response)
    return response


def array_of(output: RequestOutput) -> Array:
    """What was read of a prompt; whoever runs engine requests sees no output without it."""
    assert output.pooled is not None
    found: Array = output.pooled.numpy()
    return found


def _mark(state: ServerState, response: Response) -> None:
    response.headers[UNTRAINED_HEADER] = "untrained"
    if UNTRAINED_HEADER not in state.served.told:
        state.served.told.add(UNTRAINED_HEADER)
        _log.warning(
            "%s was trained to generate: its embeddings are hidden states of a language model, and say less than those of an embedding model. "
            "Answers carry the header %s: untrained", state.names[0], UNTRAINED_HEADER,
        )  # fmt: skip


def terms_of(state: ServerState, body: ReadingBody) -> RequestTerms:
    return RequestTerms(priority=body.priority, cache_salt=body.cache_salt, adapter=state.adapter_named(body.model))
