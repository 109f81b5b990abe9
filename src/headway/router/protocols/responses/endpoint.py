"""POST /v1/responses."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

from headway.errors import HeadwayError, NotFoundError
from headway.router.config.document.services import ResponseAPI
from headway.router.generation.generation import Generation
from headway.router.listener.request import PublicRequest
from headway.router.protocols.endpoint import Opened
from headway.router.protocols.responses.answer import whole_response
from headway.router.protocols.responses.history import history_items, owner_of
from headway.router.protocols.responses.request import chat_body, check_request
from headway.router.protocols.responses.store import ResponseStore
from headway.router.protocols.responses.stream import ResponseStream
from headway.router.protocols.translation import Losses
from headway.router.request.reply import Chunks
from headway.wire.responses.answer import new_response
from headway.wire.responses.input import input_items
from headway.wire.responses.items import Item

_log = logging.getLogger(__name__)


class ResponsesEndpoint:
    protocol = "responses"

    async def open(self, body: dict[str, Any], request: PublicRequest) -> Opened:
        store = store_of(request.generation)
        check_request(body)
        losses = Losses()
        items = input_items(body.get("input"))
        history = await history_items(store, body.get("previous_response_id"), request.caller.identity)
        chat = chat_body(body, history, items, losses)
        keeper = Keeper(store, owner_of(request.caller.identity), items) if body.get("store") is not False else None
        return Opened(chat, self.protocol, ResponseTranslation(chat, losses, new_response(body), keeper))


class Keeper:
    """Puts an answer into the store. An answer that was made is not lost to its client because it cannot be stored."""

    def __init__(self, store: ResponseStore, owner: str, items: list[Item]) -> None:
        self._store, self._owner, self._items = store, owner, items

    async def keep(self, response: dict[str, Any]) -> None:
        try:
            await self._store.put(response["id"], {"owner": self._owner, "response": response, "input": self._items})
        except HeadwayError as error:
            _log.warning("a response was not stored: %s", error.message)


class ResponseTranslation:
    """Of one request; `response` is the answer before it has begun."""

    def __init__(self, chat: dict[str, Any], losses: Losses, response: dict[str, Any], keeper: Keeper | None) -> None:
        self.chat, self.losses = chat, losses
        self._response, self._keeper = response, keeper

    async def whole(self, completion: dict[str, Any]) -> dict[str, Any]:
        response = whole_response(self._response, completion)
        await self._keep(response)
        return response

    async def events(self, chunks: Chunks) -> AsyncIterator[bytes]:
        """The answer is stored before its last event goes out, so that a client may follow it at once."""
        stream = ResponseStream(self._response)
        async for piece in stream.events(chunks):
            if stream.final is not None:
                await self._keep(stream.final)
            yield piece

    async def _keep(self, response: dict[str, Any]) -> None:
        if self._keeper is not None:
            await self._keeper.keep(response)


def store_of(generation: Generation) -> ResponseStore:
    """Raises NotFoundError where `services.response_api` is off."""
    services = generation.document.global_.services if generation.document.global_ else None
    settings = (services.response_api if services else None) or ResponseAPI()
    if not settings.enabled:
        raise NotFoundError("The Responses API is switched off here", reason="route_not_found", fix="Set global.services.response_api.enabled.")
    return generation.services.responses.of(settings)
