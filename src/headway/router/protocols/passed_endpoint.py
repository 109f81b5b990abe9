"""POST /v1/embeddings, /v1/completions with a model's own name: bodies that go to the backend as they are."""

from __future__ import annotations

from typing import Any

from headway.router.listener.request import PublicRequest
from headway.router.protocols.chat import check_stream, require_model
from headway.router.protocols.endpoint import Opened


class EmbeddingsEndpoint:
    """Names that stand for routing choose among chat models, so they are refused here."""

    protocol = "embeddings"

    async def open(self, body: dict[str, Any], request: PublicRequest) -> Opened:
        require_model(body)
        return Opened(body, self.protocol, routes=False)


def passed_completion(body: dict[str, Any]) -> Opened:
    check_stream(body)
    return Opened(body, "completions")
