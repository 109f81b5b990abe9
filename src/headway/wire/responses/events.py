"""An answer, piece by piece, as the events of Responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from headway.wire.answer_delta import CallPart, Delta
from headway.wire.responses.answer import INCOMPLETE
from headway.wire.responses.items import Item, call_item, message_item, new_id, reasoning_item, refusal_part, text_part
from headway.wire.sse import named_frame


class ResponseEvents:
    """Of one answer: numbers its events and keeps the items that were said. One item is open at a time."""

    def __init__(self) -> None:
        self._number = 0
        self._open: _OpenItem | None = None
        self.output: list[Item] = []

    def begin(self, response: Mapping[str, Any]) -> bytes:
        return self.event("response.created", response=response) + self.event("response.in_progress", response=response)

    def say(self, delta: Delta) -> list[bytes]:
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

    def say_nothing(self) -> list[bytes]:
        """Begin a message without text."""
        return self._in(("output_text", 0), None)

    def close(self, finish: str | None) -> list[bytes]:
        """End the open item; `finish` is the reason of chat completions when the whole answer ends with it."""
        opened, self._open = self._open, None
        if opened is None:
            return []
        at = len(self.output)
        place: dict[str, Any] = {"item_id": opened.name, "output_index": at}
        found = [self.event(f"response.{opened.said}.done", **place, **opened.done())]
        if opened.part is not None:
            found.append(self.event("response.content_part.done", **place, content_index=0, part=opened.full_part()))
        item = opened.item("incomplete" if finish in INCOMPLETE else "completed")
        self.output.append(item)
        return [*found, self.event("response.output_item.done", output_index=at, item=item)]

    def event(self, kind: str, **body: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        return named_frame(kind, orjson.dumps({"type": kind, "sequence_number": number, **body}))

    def _in(self, kind: tuple[str, int], call: CallPart | None) -> list[bytes]:
        if self._open is not None and self._open.kind == kind:
            return []
        found = self.close(None)
        opened = self._open = _OpenItem(kind, call)
        at = len(self.output)
        found.append(self.event("response.output_item.added", output_index=at, item=opened.item("in_progress", empty=True)))
        if opened.part is not None:
            found.append(self.event("response.content_part.added", item_id=opened.name, output_index=at, content_index=0, part=opened.empty_part()))
        return found

    def _said(self, what: str, text: str, logprobs: Sequence[Mapping[str, Any]] = ()) -> list[bytes]:
        opened = self._open
        assert opened is not None
        opened.text.append(text)
        opened.logprobs += logprobs
        place: dict[str, Any] = {"item_id": opened.name, "output_index": len(self.output)}
        if opened.kind[0] != "call":
            place["content_index"] = 0
        if what == "output_text":
            place["logprobs"] = list(logprobs)
        return [self.event(f"response.{what}.delta", **place, delta=text)]


class _OpenItem:
    """The output item that deltas go to. `part` is the type of its content part, None for tool calls."""

    def __init__(self, kind: tuple[str, int], call: CallPart | None) -> None:
        self.kind = kind
        self.text: list[str] = []
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
            return call_item(self.name, self._call_id, self._call.name, "" if empty else self._whole(), status)
        if self.kind[0] == "reasoning":
            return reasoning_item(self.name, "" if empty else self._whole())
        return message_item(self.name, [] if empty else [self.full_part()], status)

    def empty_part(self) -> dict[str, Any]:
        return self._part("", ())

    def full_part(self) -> dict[str, Any]:
        return self._part(self._whole(), self.logprobs)

    def done(self) -> dict[str, Any]:
        """The members of the `done` event besides its place."""
        said = self._whole()
        if self._call is not None:
            return {"name": self._call.name, "arguments": said}
        if self.kind[0] == "refusal":
            return {"content_index": 0, "refusal": said}
        found: dict[str, Any] = {"content_index": 0, "text": said}
        if self.kind[0] == "output_text":
            found["logprobs"] = list(self.logprobs)
        return found

    def _whole(self) -> str:
        return "".join(self.text)

    def _part(self, text: str, logprobs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        if self.part == "reasoning_text":
            return {"type": "reasoning_text", "text": text}
        return refusal_part(text) if self.part == "refusal" else text_part(text, logprobs)
