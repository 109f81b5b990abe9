"""`POST /invocations`: the one route that SageMaker calls; the shape of the body decides what is meant."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headway.errors import RequestError
from headway.server.chat import create_chat_completion
from headway.server.completions import create_completion
from headway.server.intake import read_fields
from headway.server.pooling.comparison import create_rerank, create_score
from headway.server.pooling.embeddings import create_embeddings

_SHAPES = (
    ("messages", create_chat_completion), ("prompt", create_completion), ("input", create_embeddings), ("query", create_rerank), ("text_1", create_score),
)  # fmt: skip


async def invocations(request: Request) -> Response:
    """A chat if there are messages, a completion if there is a prompt, embeddings, a rerank or a score for theirs. Raises RequestError for other bodies."""
    fields = await read_fields(request)
    for name, handler in _SHAPES:
        if name in fields:
            return await handler(request)
    raise RequestError(
        "The body has neither messages nor a prompt nor anything to read (input, query, text_1), so it is not clear what is asked for", param="body", reason="body_invalid"
    )
