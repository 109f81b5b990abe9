"""POST /v1/chat/completions."""

from __future__ import annotations

from typing import Any

from headway.router.listener.request import PublicRequest
from headway.router.protocols.chat import check_chat
from headway.router.protocols.endpoint import Opened


class ChatEndpoint:
    protocol = "chat"

    async def open(self, body: dict[str, Any], request: PublicRequest) -> Opened:
        check_chat(body)
        return Opened(body, "chat")
