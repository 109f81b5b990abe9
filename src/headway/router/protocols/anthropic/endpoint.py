"""POST /v1/messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from headway.router.listener.request import PublicRequest
from headway.router.protocols.anthropic.answer import message_events, message_of
from headway.router.protocols.anthropic.request import chat_body
from headway.router.protocols.endpoint import Opened
from headway.router.protocols.translation import Losses
from headway.router.request.reply import Chunks


class MessagesTranslation:
    """Of one request; `model` is the name that it asked for."""

    def __init__(self, chat: dict[str, Any], losses: Losses) -> None:
        self.chat, self.losses = chat, losses

    async def whole(self, completion: dict[str, Any]) -> dict[str, Any]:
        return message_of(completion, self.chat["model"])

    def events(self, chunks: Chunks) -> AsyncIterator[bytes]:
        return message_events(chunks, self.chat["model"])


class MessagesEndpoint:
    protocol = "anthropic"

    async def open(self, body: dict[str, Any], request: PublicRequest) -> Opened:
        losses = Losses()
        chat = chat_body(body, losses)
        return Opened(chat, self.protocol, MessagesTranslation(chat, losses))
