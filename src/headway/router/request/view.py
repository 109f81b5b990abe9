"""RequestView: what signals read of a request, taken from its chat completions body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from headway.router.request.identity import Identity

_USER, _SYSTEM = "user", ("system", "developer")


class RequestView:
    """A read-only look at a chat completions body (every client protocol is translated to one first).

    Everything is computed at most once. Texts are what the client sent, not normalised.
    """

    def __init__(self, body: Mapping[str, Any], identity: Identity | None = None) -> None:
        self.body = body
        self.identity = identity or Identity()

    @property
    def model(self) -> str:
        return str(self.body.get("model") or "")

    @cached_property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        found = self.body.get("messages")
        return [message for message in found if isinstance(message, Mapping)] if isinstance(found, list) else []

    @cached_property
    def user_texts(self) -> tuple[str, ...]:
        """The text of each user turn, oldest first."""
        return tuple(text_of(message) for message in self.messages if message.get("role") == _USER)

    @cached_property
    def user_text(self) -> str:
        """The latest user turn; "" when there is none."""
        return self.user_texts[-1] if self.user_texts else ""

    @cached_property
    def history_texts(self) -> tuple[str, ...]:
        """The texts of everything but instructions and the latest user turn, oldest first."""
        last = max((at for at, message in enumerate(self.messages) if message.get("role") == _USER), default=-1)
        told = (text_of(message) for at, message in enumerate(self.messages) if at != last and message.get("role") not in _SYSTEM)
        return tuple(text for text in told if text)

    @cached_property
    def system_text(self) -> str:
        return "\n".join(filter(None, (text_of(message) for message in self.messages if message.get("role") in _SYSTEM)))

    @cached_property
    def all_texts(self) -> tuple[str, ...]:
        """Every text of the conversation but instructions, oldest first."""
        return tuple(filter(None, (text_of(message) for message in self.messages if message.get("role") not in _SYSTEM)))

    @cached_property
    def tool_result_texts(self) -> tuple[str, ...]:
        return tuple(text_of(message) for message in self.messages if message.get("role") == "tool")

    @cached_property
    def images(self) -> tuple[str, ...]:
        """URLs (mostly `data:`) of the images of the latest user turn."""
        for message in reversed(self.messages):
            if message.get("role") == _USER:
                return tuple(parts_of(message, "image_url"))
        return ()

    @cached_property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        found = self.body.get("tools")
        return [tool for tool in found if isinstance(tool, Mapping)] if isinstance(found, list) else []

    @cached_property
    def metadata(self) -> Mapping[str, str]:
        found = self.body.get("metadata")
        return {str(key): value for key, value in found.items() if isinstance(value, str)} if isinstance(found, Mapping) else {}


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message: its string, or its text parts joined by line ends."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def parts_of(message: Mapping[str, Any], kind: str) -> list[str]:
    """The URLs of the parts `image_url`, or `video_url` of a message."""
    content = message.get("content")
    if not isinstance(content, list):
        return []
    found = (part.get(kind) for part in content if isinstance(part, Mapping) and part.get("type") == kind)
    urls = (item.get("url") if isinstance(item, Mapping) else item for item in found)
    return [url for url in urls if isinstance(url, str)]
