"""A stream of chat completion chunks as the events of Responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import orjson

from headway.router.protocols.deltas import CallPart, Delta, read_delta
from headway.router.protocols.part_order import PartOrder
from headway.router.protocols.responses.answer import (
    call_item,
    finished,
    message_item,
    new_id,
    reasoning_item,
    refusal_part,
    text_part,
)
from headway.router.protocols.responses.items import Item
from headway.router.request.reply import Chunks


class ResponseStream:
    """Of one answer. `final` is the response once the stream has ended, None before."""

    def __init__(self, response: dict[str, Any]) -> None:
        self._response = response
        self._number = 0
        self._output: list[Item] = []
        self._open: _OpenItem | None = None
        self.final: dict[str, Any] | None = None

    async def events(self, chunks: Chunks) -> AsyncIterator[bytes]:
        """`response.created` with the first chunk; what fails before it still gets a status of its own."""
        head: dict[str, Any] = {}
        finish: str | None = None
        started, order = False, PartOrder()
        async for chunk in chunks:
            if not started:
                started = True
                yield self._event("response.created", response=self._response) + self._event("response.in_progress", response=self._response)
            head.update({name: chunk[name] for name in ("model", "usage") if chunk.get(name)})
            delta = read_delta(chunk)
            finish = delta.finish or finish
            found = [event for part in order.take(delta) for event in self._say(part)]
            if found:
                yield b"".join(found)
        held = [event for part in order.rest() for event in self._say(part)]
        last = [*held, *self._close(finish)]
        self.final = finished(self._response, self._output, finish, head)
        yield b"".join([*last, self._event(f"response.{self.final['status']}", response=self.final)])

    def _say(self, delta: Delta) -> list[bytes]:
        found: list[bytes] = []
        if delta.reasoning:
            found += self._in(("reasoning", 0), None)
            found += self._said("reasoning_text", delta.reasoning)
        if delta.text:
            found += self._in(("output_text", 0), None)
            found += self._said("output_text", delta.text, delta.logprobs)
        if delta.refusal:
            found += self._in(("refusal", 0), None)
            found += self._said("refusal", delta.refusal)
        for call in delta.calls:
            found += self._in(("call", call.index), call)
            if call.arguments:
                found += self._said("function_call_arguments", call.arguments)
        return found

    def _in(self, kind: tuple[str, int], call: CallPart | None) -> list[bytes]:
        if self._open is not None and self._open.kind == kind:
            return []
        found = self._close(None)
        opened = self._open = _OpenItem(kind, call)
        at = len(self._output)
        found.append(self._event("response.output_item.added", output_index=at, item=opened.item("in_progress", empty=True)))
        if opened.part is not None:
            found.append(self._event("response.content_part.added", item_id=opened.name, output_index=at, content_index=0, part=opened.empty_part()))
        return found

    def _said(self, what: str, text: str, logprobs: Sequence[Mapping[str, Any]] = ()) -> list[bytes]:
        opened = self._open
        assert opened is not None
        opened.text += text
        opened.logprobs += logprobs
        place: dict[str, Any] = {"item_id": opened.name, "output_index": len(self._output)}
        if opened.kind[0] != "call":
            place["content_index"] = 0
        if what == "output_text":
            place["logprobs"] = list(logprobs)
        return [self._event(f"response.{what}.delta", **place, delta=text)]

    def _close(self, finish: str | None) -> list[bytes]:
        opened, self._open = self._open, None
        if opened is None:
            return []
        at = len(self._output)
        place: dict[str, Any] = {"item_id": opened.name, "output_index": at}
        found = [self._event(f"response.{opened.said}.done", **place, **opened.done())]
        if opened.part is not None:
            found.append(self._event("response.content_part.done", **place, content_index=0, part=opened.full_part()))
        item = opened.item("incomplete" if finish in ("length", "content_filter") else "completed")
        self._output.append(item)
        return [*found, self._event("response.output_item.done", output_index=at, item=item)]

    def _event(self, kind: str, **body: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps({"type": kind, "sequence_number": number, **body}) + b"\n\n"


class _OpenItem:
    """The output item that deltas go to. `part` is the type of its content part, None for tool calls."""

    def __init__(self, kind: tuple[str, int], call: CallPart | None) -> None:
        self.kind = kind
        self.text = ""
        self.logprobs: list[Mapping[str, Any]] = []
        self._call = call
        self.part, self.said, prefix = {
            "reasoning": ("reasoning_text", "reasoning_text", "rs"),
            "output_text": ("output_text", "output_text", "msg"),
            "refusal": ("refusal", "refusal", "msg"),
            "call": (None, "function_call_arguments", "fc"),
        }[kind[0]]
        self.name = new_id(prefix)
        self._call_id = call.id if call and call.id else new_id("call")

    def item(self, status: str, empty: bool = False) -> Item:
        if self._call is not None:
            return call_item(self.name, self._call_id, self._call.name, "" if empty else self.text, status)
        if self.kind[0] == "reasoning":
            return reasoning_item(self.name, "" if empty else self.text)
        return message_item(self.name, [] if empty else [self.full_part()], status)

    def empty_part(self) -> dict[str, Any]:
        return self._part("", ())

    def full_part(self) -> dict[str, Any]:
        return self._part(self.text, self.logprobs)

    def done(self) -> dict[str, Any]:
        """The members of the `done` event besides its place."""
        if self._call is not None:
            return {"name": self._call.name, "arguments": self.text}
        if self.kind[0] == "refusal":
            return {"content_index": 0, "refusal": self.text}
        found: dict[str, Any] = {"content_index": 0, "text": self.text}
        if self.kind[0] == "output_text":
            found["logprobs"] = list(self.logprobs)
        return found

    def _part(self, text: str, logprobs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        if self.part == "reasoning_text":
            return {"type": "reasoning_text", "text": text}
        return refusal_part(text) if self.part == "refusal" else text_part(text, logprobs)
