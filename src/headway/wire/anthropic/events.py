"""An answer, piece by piece, as the events of Messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from headway.wire.answer_delta import CallPart, Delta
from headway.wire.anthropic.answer import call_id, message_usage, stop_of
from headway.wire.sse import named_frame

PING = named_frame("ping", b'{"type":"ping"}')


def event(kind: str, body: Mapping[str, Any]) -> bytes:
    return named_frame(kind, orjson.dumps({"type": kind, **body}))


class MessageEvents:
    """Of one answer. One content block is open at a time: a delta of another kind, or of another tool call, closes it and opens the next."""

    def __init__(self) -> None:
        self._index = -1
        self._open: tuple[str, int] | None = None
        self._refused = self._has_calls = False

    def begin(self, head: Mapping[str, Any], usage: Mapping[str, int] | None = None) -> bytes:
        message = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage or message_usage()}
        return event("message_start", {"message": message})

    def say(self, delta: Delta) -> list[bytes]:
        found: list[bytes] = []
        self._refused = self._refused or bool(delta.refusal)
        if delta.reasoning:
            found += self._in(("thinking", 0), {"type": "thinking", "thinking": "", "signature": ""})
            found.append(self._delta({"type": "thinking_delta", "thinking": delta.reasoning}))
        if delta.text or delta.refusal:
            found += self._in(("text", 0), {"type": "text", "text": ""})
            found.append(self._delta({"type": "text_delta", "text": delta.text or delta.refusal}))
        for call in delta.calls:
            found += self._call(call)
        return found

    def end(self, finish: str | None, stop: str | None, usage: Mapping[str, int]) -> bytes:
        """`finish` and `stop` as in a Delta; `usage` comes last, since only then everything is counted."""
        reason, sequence = stop_of(finish, stop, self._refused, self._has_calls)
        last = {"delta": {"stop_reason": reason, "stop_sequence": sequence}, "usage": usage}
        return b"".join([*self._close(), event("message_delta", last), event("message_stop", {})])

    def _close(self) -> list[bytes]:
        if self._open is None:
            return []
        self._open = None
        return [event("content_block_stop", {"index": self._index})]

    def _call(self, call: CallPart) -> list[bytes]:
        self._has_calls = True
        found = self._in(("tool_use", call.index), {"type": "tool_use", "id": call_id(call), "name": call.name, "input": {}})
        if call.arguments:
            found.append(self._delta({"type": "input_json_delta", "partial_json": call.arguments}))
        return found

    def _in(self, kind: tuple[str, int], block: dict[str, Any]) -> list[bytes]:
        if self._open == kind:
            return []
        found = self._close()
        self._open, self._index = kind, self._index + 1
        return [*found, event("content_block_start", {"index": self._index, "content_block": block})]

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return event("content_block_delta", {"index": self._index, "delta": delta})
