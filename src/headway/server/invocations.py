"""`POST /invocations`: the one route that SageMaker calls; the shape of the body decides what is meant."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headway.errors import RequestError
from headway.server.chat import create_chat_completion
from headway.server.completions import create_completion
from headway.server.intake import read_fields

_SHAPES = (("messages", create_chat_completion), ("prompt", create_completion))


async def invocations(request: Request) -> Response:
    """A chat if there are messages, a completion if there is a prompt. Raises RequestError for other bodies."""
    fields = await read_fields(request)
    for name, handler in _SHAPES:
        if name in fields:
            return await handler(request)
    raise RequestError(
        "The body has neither messages nor a prompt, so it is not clear what is asked for", param="body", reason="body_invalid"
    )
