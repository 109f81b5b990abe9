"""`POST /v1/messages` and `POST /v1/messages/count_tokens`."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from starlette.responses import Response

from headway.server.answer_deltas import AnswerDeltas
from headway.server.chat import prepared, prompt_of
from headway.server.event_stream import StreamManner
from headway.server.intake import read_body
from headway.server.messages.chat_form import NAMES, chat_form
from headway.server.messages.writer import MessageWriter
from headway.server.renamed_fields import renamed
from headway.server.respond import json_response, respond
from headway.server.state import state_of
from headway.wire.anthropic.body import NOT_BUILT, CountTokensBody, MessagesBody
from headway.wire.anthropic.errors import anthropic_error_event
from headway.wire.anthropic.events import PING

_MANNER: Final = StreamManner(b"", anthropic_error_event, PING)


async def create_message(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, MessagesBody, NOT_BUILT)
    names = dict(NAMES)
    with renamed(names):
        form = chat_form(body, state.parsers.reasoning is not None, names)
        chat = await prepared(state, request, form, "msg_")
    writer = MessageWriter(chat.head, AnswerDeltas(form, chat.head.names, chat.plan))
    with renamed(names):
        return await respond(state, request, [chat.engine_request], writer.frames if body.stream else None, writer.whole, _MANNER)


async def count_tokens(request: Request) -> Response:
    """As many as the same message would have in its prompt."""
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, CountTokensBody, NOT_BUILT)
    state.model_named(body.model)
    names = dict(NAMES)
    with renamed(names):
        prompt = await prompt_of(state, chat_form(body, state.parsers.reasoning is not None, names))
    return json_response({"input_tokens": len(prompt.ids)})
