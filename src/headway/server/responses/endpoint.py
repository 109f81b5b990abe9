"""`POST /v1/responses`: from the body to an engine request, answered at once or in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastapi import Request
from starlette.responses import Response

from headway.errors import HeadwayError, RequestError
from headway.http.client_watch import ClientWatch
from headway.server.answer_deltas import AnswerDeltas
from headway.server.chat import PreparedChat, prepared
from headway.server.event_stream import StreamManner
from headway.server.intake import read_body
from headway.server.renamed_fields import renamed
from headway.server.respond import finals, json_response, outputs_for, respond
from headway.server.responses.chat_form import NAMES, chat_form
from headway.server.responses.shelf import ResponseShelf
from headway.server.responses.writer import ResponseWriter
from headway.server.state import ServerState, state_of
from headway.wire import sse
from headway.wire.responses.answer import new_response
from headway.wire.responses.body import NOT_BUILT, ResponsesBody
from headway.wire.responses.input import input_items
from headway.wire.responses.items import Item
from headway.wire.responses.records import Record, chain_items, no_response

_log = logging.getLogger(__name__)
_SWITCH = "VLLM_ENABLE_RESPONSES_API_STORE=1"


async def create_response(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, ResponsesBody, NOT_BUILT)
    shelf = _shelf_for(state, body)
    items = input_items(body.input)
    history = await chain_items(_followed(state.responses), body.previous_response_id)
    names = dict(NAMES)
    with renamed(names):
        form = chat_form(body, history, items, names)
        chat = await prepared(state, request, form, "resp_")
    response = _in_progress(body, chat, kept=shelf is not None)

    def keep(found: dict[str, Any]) -> None:
        if shelf is not None:
            shelf.put(found, items)

    def tokens_of(text: str) -> int:
        return len(state.engine.tokenizer.encode(text, False))

    writer = ResponseWriter(response, AnswerDeltas(form, chat.head.names, chat.plan), chat.head.usage, tokens_of, keep)
    if body.background and shelf is not None:
        return _in_background(state, request, shelf, chat, writer, response, items)
    manner = StreamManner(b"", writer.failed, sse.KEEP_ALIVE)
    with renamed(names):
        return await respond(state, request, [chat.engine_request], writer.frames if body.stream else None, writer.whole, manner)


def shelf_of(state: ServerState, name: str) -> ResponseShelf:
    """Raises NotFoundError where nothing is kept."""
    if state.responses is None:
        raise no_response(name, f"This server keeps none; it would with {_SWITCH}.")
    return state.responses


def _shelf_for(state: ServerState, body: ResponsesBody) -> ResponseShelf | None:
    """Where the answer is kept: nowhere unless the operator and the client want it. Raises RequestError, NotFoundError."""
    if body.previous_response_id is not None:
        shelf_of(state, body.previous_response_id)
    if body.background and (state.responses is None or body.store is False):
        raise RequestError(
            "A response in the background must be kept, and this one would not be",
            param="background",
            fix=f"Leave store out, and start the server with {_SWITCH}.",
        )
    return None if body.store is False else state.responses


def _followed(shelf: ResponseShelf | None) -> Callable[[str], Awaitable[Record]]:
    async def record_of(name: str) -> Record:
        if shelf is None:
            raise no_response(name)
        record = shelf.get(name)
        if record["response"]["status"] not in ("completed", "incomplete"):
            raise RequestError(
                f'The response "{name[:80]}" cannot be followed: its status is {record["response"]["status"]}', param="previous_response_id"
            )
        return record

    return record_of


def _in_progress(body: ResponsesBody, chat: PreparedChat, kept: bool) -> dict[str, Any]:
    """What the answer says of the request: the values that hold, also where the client left them out."""
    asked = body.model_dump(exclude_unset=True)
    params = chat.engine_request.params
    asked |= {"model": chat.head.model, "temperature": params.temperature, "top_p": params.top_p, "store": kept}
    return {**new_response(asked), "background": body.background}


def _in_background(
    state: ServerState, request: Request, shelf: ResponseShelf, chat: PreparedChat, writer: ResponseWriter, response: dict[str, Any], items: Sequence[Item]
) -> Response:
    outputs = outputs_for(state, request, [chat.engine_request])
    served = state.served

    async def work() -> None:
        watch = ClientWatch(_for_ever, state.closing)
        state.load += 1
        served.requests += 1
        try:
            shelf.put(response, items)
            writer.whole(await watch.run(finals(outputs, 1)))
        except Exception as error:
            if not isinstance(error, HeadwayError):
                _log.exception("a response in the background failed")
            writer.fail(error)
        finally:
            state.load -= 1
            served.requests -= 1
            watch.close()

    queued = {**response, "status": "queued"}
    shelf.run(response["id"], work())
    shelf.put(queued, items)
    return json_response(queued)


async def _for_ever() -> dict[str, Any]:
    """A client that never leaves."""
    await asyncio.Event().wait()
    return {}
