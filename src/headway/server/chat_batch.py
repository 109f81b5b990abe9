"""`POST /v1/chat/completions/batch`: several talks at once; choice i answers talk i."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastapi import Request
from starlette.responses import Response

from headway.engine.outputs import RequestOutput
from headway.errors import RequestError
from headway.server.chat import prepared
from headway.server.chat_answer import ChatWriter
from headway.server.intake import read_fields
from headway.server.respond import respond
from headway.server.state import state_of
from headway.wire import not_built
from headway.wire.chat import ChatAnswer, ChatBody
from headway.wire.chat_batch import ChatBatchBody
from headway.wire.not_built import refuse_not_built
from headway.wire.parse import parse_body
from headway.wire.usage import Usage, usage

# What has no place in an answer of one choice for each talk: field -> the value that asks for nothing.
_REFUSED: Final[dict[str, Any]] = {"stream": False, "n": 1, "use_beam_search": False, "prompt_logprobs": None}


async def create_chat_batch(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    fields = await read_fields(request)
    refuse_not_built(not_built.CHAT_ELSEWHERE, fields)
    talks = parse_body(ChatBatchBody, fields).messages
    body = parse_body(ChatBody, {**fields, "messages": talks[0]})
    for name, plain in _REFUSED.items():
        if getattr(body, name) != plain:
            raise RequestError(f"{name} cannot be given with a batch of chats", param=name, fix="Send the chats one by one.")
    bodies = [body.model_copy(update={"messages": talk}) for talk in talks]
    chats = [await prepared(state, request, each, "chatcmpl-") for each in bodies]
    writers = [ChatWriter(state, each, chat.head, chat.prompt, chat.plan) for each, chat in zip(bodies, chats, strict=True)]

    def whole(finals: Sequence[RequestOutput]) -> ChatAnswer:
        return _joined([writer.whole([final]) for writer, final in zip(writers, finals, strict=True)])

    return await respond(state, request, [chat.engine_request for chat in chats], None, whole)


def _joined(answers: Sequence[ChatAnswer]) -> ChatAnswer:
    """What belongs to one prompt alone is left out."""
    joined = answers[0].copy()
    joined["choices"] = [choice for answer in answers for choice in answer["choices"]]
    for index, choice in enumerate(joined["choices"]):
        choice["index"] = index
    joined["usage"] = _sum([answer["usage"] for answer in answers])
    joined["prompt_token_ids"] = joined["prompt_text"] = joined["metrics"] = None
    return joined


def _sum(usages: Sequence[Usage]) -> Usage:
    cached = [each["prompt_tokens_details"]["cached_tokens"] for each in usages if each["prompt_tokens_details"] is not None]
    return usage(sum(u["prompt_tokens"] for u in usages), sum(u["completion_tokens"] for u in usages), sum(cached) if cached else None)
