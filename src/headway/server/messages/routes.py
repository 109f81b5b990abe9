"""The routes of `/v1/messages`."""

from __future__ import annotations

from typing import Any, Final

from headway.server.messages.endpoint import count_tokens, create_message
from headway.server.route import Route
from headway.wire.anthropic.body import CountTokensBody, MessagesBody
from headway.wire.anthropic.count import CountTokensAnswer
from headway.wire.anthropic.errors import AnthropicErrorBody

MESSAGES_ROUTES: Final = (
    Route("/v1/messages", ("POST",), create_message, MessagesBody, dict[str, Any], counted=True, streams=True, error=AnthropicErrorBody),
    Route("/v1/messages/count_tokens", ("POST",), count_tokens, CountTokensBody, CountTokensAnswer, error=AnthropicErrorBody),
)
