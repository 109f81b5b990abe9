"""A chat completion as a message, whole or as Anthropic's events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from headway.router.listener.usage import usage_of
from headway.router.protocols.deltas import read_delta, read_message
from headway.router.protocols.part_order import PartOrder
from headway.router.request.reply import Chunks
from headway.wire.anthropic.answer import message_head, message_usage, whole_message
from headway.wire.anthropic.events import MessageEvents


def message_of(completion: Mapping[str, Any], model: str) -> dict[str, Any]:
    return whole_message(message_head(str(completion.get("model") or model)), read_message(completion), _usage(completion))


async def message_events(chunks: Chunks, model: str) -> AsyncIterator[bytes]:
    """`message_start` with the first chunk, `message_stop` at the end of `chunks`; counts are in `message_delta`, since they come last."""
    events, order, started = MessageEvents(), PartOrder(), False
    finish: str | None = None
    stop: str | None = None
    counts = message_usage()
    async for chunk in chunks:
        if not started:
            started = True
            yield events.begin(message_head(str(chunk.get("model") or model)))
        if chunk.get("usage"):
            counts = _usage(chunk)
        delta = read_delta(chunk)
        finish, stop = delta.finish or finish, delta.stop or stop
        found = [event for part in order.take(delta) for event in events.say(part)]
        if found:
            yield b"".join(found)
    if started:
        held = [event for part in order.rest() for event in events.say(part)]
        yield b"".join([*held, events.end(finish, stop, counts)])


def _usage(body: Mapping[str, Any]) -> dict[str, int]:
    usage = usage_of(body)
    if usage is None:
        return message_usage()
    return message_usage(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.cache_write_tokens)
