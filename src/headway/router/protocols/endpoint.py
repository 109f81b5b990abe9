"""Endpoint: one POST route that ends in a model's answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from headway.router.listener.request import PublicRequest
from headway.router.protocols.translation import Translation
from headway.router.request.view import RequestView


@dataclass(frozen=True, slots=True)
class Opened:
    """A request that was read. `chat` is its body as chat completions, or for routes that are passed on as they are (`protocol` names them) that
    route's body. `view` replaces what signals would read of the body. Without `translation` the answer goes out as it is."""

    chat: dict[str, Any]
    protocol: str
    translation: Translation | None = None
    view: RequestView | None = None
    routes: bool = True


class Endpoint(Protocol):
    """`protocol` is the client's: chat, completions, embeddings, responses, anthropic."""

    @property
    def protocol(self) -> str: ...

    async def open(self, body: dict[str, Any], request: PublicRequest) -> Opened:
        """Raises RequestError for a body that is none of this route's."""
        ...
