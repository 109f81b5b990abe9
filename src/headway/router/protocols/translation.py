"""Translation: one request in a client's protocol, as chat completions, and the way back."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from headway.router.request.reply import Chunks

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._\[\]-]")


@dataclass(frozen=True, slots=True)
class Loss:
    """Something of the request that the translation could not carry over: a line of `x-vsr-protocol-warnings`."""

    severity: Literal["info", "warning"]
    reason: str
    field: str

    def __str__(self) -> str:
        return f"{self.severity};{self.reason};{self.field}"


@dataclass(slots=True)
class Losses:
    """Each field once, at most 16. Names come from clients: what could end a header or a member of its list is replaced."""

    found: list[Loss] = field(default_factory=list)

    def note(self, field_name: str, reason: str = "dropped", severity: Literal["info", "warning"] = "warning") -> None:
        loss = Loss(severity, reason, _NOT_PLAIN.sub("_", field_name[:60]))
        if loss not in self.found and len(self.found) < 16:
            self.found.append(loss)


class Translation(Protocol):
    """`chat` is the body for chat completions. `whole` and `events` write an answer in the client's protocol; an answer comes once, in one form."""

    @property
    def chat(self) -> dict[str, Any]: ...

    @property
    def losses(self) -> Losses: ...

    async def whole(self, completion: dict[str, Any]) -> dict[str, Any]:
        """From a chat completion."""
        ...

    def events(self, chunks: Chunks) -> AsyncIterator[bytes]:
        """From its chunks, as server-sent events, each as soon as its chunk is there. An error of `chunks` passes through."""
        ...
