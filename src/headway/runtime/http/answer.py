"""Answer: what goes back over HTTP, and how it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Send

JSON = b"application/json"


@dataclass(slots=True)
class Answer:
    """`headers` beside content-type and content-length."""

    status: int
    body: bytes
    media: bytes = JSON
    headers: dict[str, str] = field(default_factory=dict)


async def send_answer(send: Send, answer: Answer, extra: Mapping[str, str]) -> None:
    headers: list[tuple[bytes, bytes]] = [
        (b"content-type", answer.media), (b"content-length", str(len(answer.body)).encode()),
    ]  # fmt: skip
    for name, value in (*answer.headers.items(), *extra.items()):
        headers.append((name.encode("latin-1"), value.encode("latin-1")))
    start: dict[str, Any] = {"type": "http.response.start", "status": answer.status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": answer.body})
