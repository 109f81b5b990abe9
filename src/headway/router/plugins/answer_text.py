"""The text of an answer, for plugins that judge it, and streams that are held or watched until it is whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from headway.router.plugins.completion import Collected
from headway.router.request.decoding import body_of, chunks_of
from headway.router.request.reply import Reply


def text_of_body(body: Mapping[str, Any]) -> str:
    """What all choices say, refusals and the arguments of tool calls included, joined by line ends."""
    said: list[str] = []
    for choice in body.get("choices") or ():
        message = choice.get("message") or {}
        said += [message[key] for key in ("reasoning_content", "reasoning", "content", "refusal") if isinstance(message.get(key), str)]
        said += [(call.get("function") or {}).get("arguments") or "" for call in message.get("tool_calls") or ()]
        if isinstance(choice.get("text"), str):
            said.append(choice["text"])
    return "\n".join(text for text in said if text)


def text_of_reply(reply: Reply) -> str:
    """Of an answer that is no stream."""
    return text_of_body(body_of(reply))


async def held(reply: Reply) -> tuple[str, Reply]:
    """The text of the whole stream, and the same stream to be read from its beginning."""
    collected, kept = Collected(), []
    async for chunk in chunks_of(reply):
        collected.add(chunk)
        kept.append(chunk)

    async def again() -> AsyncIterator[dict[str, Any]]:
        for chunk in kept:
            yield chunk

    reply.chunks, reply.raw_chunks = again(), None
    return text_of_body(collected.body()), reply


def is_last(chunk: Mapping[str, Any]) -> bool:
    """It says how a choice ended."""
    return any(choice.get("finish_reason") for choice in chunk.get("choices") or ())
