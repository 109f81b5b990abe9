"""A chat completion as a message, whole or as Anthropic's events."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import orjson

from headway.router.listener.usage import usage_of
from headway.router.protocols.deltas import CallPart, Delta, read_delta, read_message
from headway.router.protocols.part_order import PartOrder
from headway.router.request.reply import Chunks

_REASONS: Final = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "function_call": "tool_use", "content_filter": "refusal"}


def message_of(completion: Mapping[str, Any], model: str) -> dict[str, Any]:
    said = read_message(completion)
    content: list[dict[str, Any]] = []
    if said.reasoning:
        content.append({"type": "thinking", "thinking": said.reasoning, "signature": ""})
    if said.text or said.refusal:
        content.append({"type": "text", "text": said.text or said.refusal})
    content += [{"type": "tool_use", "id": _call_id(call), "name": call.name, "input": _input(call.arguments)} for call in said.calls]
    reason, sequence = _stop(said.finish, said.stop, bool(said.refusal), bool(said.calls))
    return {**_head(str(completion.get("model") or model)), "content": content, "stop_reason": reason, "stop_sequence": sequence, "usage": _usage(completion)}


async def message_events(chunks: Chunks, model: str) -> AsyncIterator[bytes]:
    """`message_start` with the first chunk, `message_stop` at the end of `chunks`; counts are in `message_delta`, since they come last."""
    blocks, order = _Blocks(), PartOrder()
    started, finish, stop, refused = False, None, None, False
    counts: dict[str, int] = _usage({})
    async for chunk in chunks:
        if not started:
            started = True
            message = {**_head(str(chunk.get("model") or model)), "content": [], "stop_reason": None, "stop_sequence": None, "usage": _usage({})}
            yield _event("message_start", {"message": message})
        if chunk.get("usage"):
            counts = _usage(chunk)
        delta = read_delta(chunk)
        finish, stop, refused = delta.finish or finish, delta.stop or stop, refused or bool(delta.refusal)
        found = [event for part in order.take(delta) for event in blocks.say(part)]
        if found:
            yield b"".join(found)
    if started:
        held = [event for part in order.rest() for event in blocks.say(part)]
        reason, sequence = _stop(finish, stop, refused, blocks.has_calls)
        last = {"delta": {"stop_reason": reason, "stop_sequence": sequence}, "usage": counts}
        yield b"".join([*held, *blocks.close(), _event("message_delta", last), _event("message_stop", {})])


class _Blocks:
    """The content block that is open: a delta of another kind, or of another tool call, closes it and opens the next."""

    def __init__(self) -> None:
        self._index = -1
        self._open: tuple[str, int] | None = None
        self.has_calls = False

    def say(self, delta: Delta) -> list[bytes]:
        found: list[bytes] = []
        if delta.reasoning:
            found += self._in(("thinking", 0), {"type": "thinking", "thinking": "", "signature": ""})
            found.append(self._delta({"type": "thinking_delta", "thinking": delta.reasoning}))
        if delta.text or delta.refusal:
            found += self._in(("text", 0), {"type": "text", "text": ""})
            found.append(self._delta({"type": "text_delta", "text": delta.text or delta.refusal}))
        for call in delta.calls:
            found += self._call(call)
        return found

    def close(self) -> list[bytes]:
        if self._open is None:
            return []
        self._open = None
        return [_event("content_block_stop", {"index": self._index})]

    def _call(self, call: CallPart) -> list[bytes]:
        self.has_calls = True
        found = self._in(("tool_use", call.index), {"type": "tool_use", "id": _call_id(call), "name": call.name, "input": {}})
        if call.arguments:
            found.append(self._delta({"type": "input_json_delta", "partial_json": call.arguments}))
        return found

    def _in(self, kind: tuple[str, int], block: dict[str, Any]) -> list[bytes]:
        if self._open == kind:
            return []
        found = self.close()
        self._open, self._index = kind, self._index + 1
        return [*found, _event("content_block_start", {"index": self._index, "content_block": block})]

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event("content_block_delta", {"index": self._index, "delta": delta})


def _event(kind: str, body: Mapping[str, Any]) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps({"type": kind, **body}) + b"\n\n"


def _head(model: str) -> dict[str, Any]:
    return {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": model}


def _call_id(call: CallPart) -> str:
    return call.id or f"toolu_{uuid.uuid4().hex}"


def _stop(finish: str | None, stop: str | None, refused: bool, calls: bool) -> tuple[str, str | None]:
    """Backends may say `stop` after a call that was asked for by name."""
    if refused:
        return "refusal", None
    if finish == "stop" and calls:
        return "tool_use", None
    if finish == "stop" and stop is not None:
        return "stop_sequence", stop
    return _REASONS.get(finish or "stop", "end_turn"), None


def _usage(body: Mapping[str, Any]) -> dict[str, int]:
    """Anthropic counts what came from a cache beside the input, OpenAI inside the prompt."""
    usage = usage_of(body)
    if usage is None:
        return {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0}
    return {
        "input_tokens": max(0, usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
    }


def _input(arguments: str) -> Any:
    """Models may write arguments that are no JSON; the client still gets to see them."""
    if not arguments:
        return {}
    try:
        found = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return {"invalid_arguments": arguments}
    return found if isinstance(found, dict) else {"invalid_arguments": arguments}
