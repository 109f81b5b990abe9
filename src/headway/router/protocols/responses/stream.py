"""A stream of chat completion chunks as the events of Responses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from headway.router.protocols.deltas import read_delta
from headway.router.protocols.part_order import PartOrder
from headway.router.protocols.responses.answer import named, usage_of_response
from headway.router.request.reply import Chunks
from headway.wire.responses.answer import finished
from headway.wire.responses.events import ResponseEvents


class ResponseStream:
    """Of one answer. `final` is the response once the stream has ended, None before."""

    def __init__(self, response: dict[str, Any]) -> None:
        self._response = response
        self.final: dict[str, Any] | None = None

    async def events(self, chunks: Chunks) -> AsyncIterator[bytes]:
        """`response.created` with the first chunk; what fails before it still gets a status of its own."""
        head: dict[str, Any] = {}
        finish: str | None = None
        started, order, events = False, PartOrder(), ResponseEvents()
        async for chunk in chunks:
            if not started:
                started = True
                yield events.begin(self._response)
            head.update({name: chunk[name] for name in ("model", "usage") if chunk.get(name)})
            delta = read_delta(chunk)
            finish = delta.finish or finish
            found = [event for part in order.take(delta) for event in events.say(part)]
            if found:
                yield b"".join(found)
        held = [event for part in order.rest() for event in events.say(part)]
        last = [*held, *events.close(finish)]
        self.final = finished(named(self._response, head), events.output, finish, usage_of_response(head.get("usage")))
        yield b"".join([*last, events.event(f"response.{self.final['status']}", response=self.final)])
