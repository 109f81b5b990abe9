"""Backend: one address that serves one provider model, ready to be asked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from yarl import URL

Format = Literal["openai", "responses", "anthropic"]


@dataclass(frozen=True, slots=True)
class UserKey:
    """A caller's own key: the header it comes in, and how it goes on."""

    sent_in: str
    header: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Backend:
    """`alias` (`model/backend`) is how errors, traces and metrics name it. `base` is the URL in front of `/chat/completions`, `socket` the path of a Unix socket.

    `headers` hold the credentials: they and the URL never leave this process except towards the backend.
    """

    alias: str
    model: str
    base: str
    chat: URL
    format: Format = "openai"
    model_id: str = ""
    weight: int = 1
    socket: str | None = None
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    user_key: UserKey | None = None
    reasoning: str | None = None
    counting: URL | None = None  # where it counts the tokens of a chat, None for one that cannot

    @property
    def identity(self) -> str:
        """Equal for a backend that a reload did not change: its health and load are kept."""
        told = "\0".join((self.alias, self.base, self.socket or "", self.format, self.model_id))
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def url(self, path: str) -> URL:
        """`/embeddings` -> the URL of that route at this backend."""
        return URL(self.base + path + self.query, encoded=True)
