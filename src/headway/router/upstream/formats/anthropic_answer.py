"""A message of Anthropic's Messages API as a chat completion, whole or as chunks. Source: the public API reference."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson

from headway.router.request.reply import Chunks
from headway.router.upstream.formats.format import BackendReportedError, Body, call_delta, chunk_of, usage_of_counts

_FINISHES: Mapping[str, str] = {
    "end_turn": "stop", "stop_sequence": "stop", "pause_turn": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
    "tool_use": "tool_calls", "refusal": "content_filter",
}  # fmt: skip


def completion_of_message(answer: Body) -> Body:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Body] = []
    for block in answer["content"]:
        if block["type"] == "text":
            texts.append(block["text"])
        elif block["type"] == "thinking":
            thoughts.append(block["thinking"])
        elif block["type"] == "tool_use":
            arguments = orjson.dumps(block["input"]).decode()
            calls.append({"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": arguments}})
    message: Body = {"role": "assistant", "content": "".join(texts) if texts or not calls else None}
    message |= {"reasoning_content": "".join(thoughts)} if thoughts else {}
    message |= {"tool_calls": calls} if calls else {}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer.get("stop_reason"))}
    return {**_head(answer), "object": "chat.completion", "choices": [choice], "usage": _usage(answer["usage"])}


async def chunks_of_message(events: AsyncIterator[bytes], with_usage: bool) -> Chunks:
    """Ends with `message_stop`. Tool calls are numbered in their order, whatever blocks stand between them."""
    head: Body = {}
    usage: Body = {}
    calls: dict[int, int] = {}  # number of the call by the index of its block
    async for data in events:
        event = orjson.loads(data)
        kind = event.get("type")
        if kind == "message_start":
            head = _head(event["message"])
            usage.update(event["message"].get("usage") or {})
            yield chunk_of(head, {"role": "assistant", "content": ""})
        elif kind == "content_block_start" and event["content_block"]["type"] == "tool_use":
            calls[event["index"]] = len(calls)
            block = event["content_block"]
            yield chunk_of(head, call_delta(calls[event["index"]], "", block["id"], block["name"]))
        elif kind == "content_block_delta":
            delta = _delta(event["delta"], calls.get(event["index"], 0))
            if delta is not None:
                yield chunk_of(head, delta)
        elif kind == "message_delta":
            usage.update({name: count for name, count in (event.get("usage") or {}).items() if count is not None})
            yield chunk_of(head, {}, _finish(event["delta"].get("stop_reason")))
        elif kind == "error":
            raise BackendReportedError((event.get("error") or {}).get("type"))
        elif kind == "message_stop":
            if with_usage:
                yield {**head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(usage)}
            return


def _delta(delta: Mapping[str, Any], call: int) -> Body | None:
    if delta["type"] == "text_delta":
        return {"content": delta["text"]}
    if delta["type"] == "thinking_delta":
        return {"reasoning_content": delta["thinking"]}
    if delta["type"] == "input_json_delta":
        return call_delta(call, delta["partial_json"]) if delta["partial_json"] else None
    return None


def _head(message: Mapping[str, Any]) -> Body:
    return {"id": message["id"], "created": int(time.time()), "model": message["model"]}


def _finish(reason: Any) -> str:
    return _FINISHES.get(str(reason), "stop")


def _usage(counts: Mapping[str, Any]) -> Body:
    read, written = counts.get("cache_read_input_tokens") or 0, counts.get("cache_creation_input_tokens") or 0
    hour = (counts.get("cache_creation") or {}).get("ephemeral_1h_input_tokens") or 0
    prompt = (counts.get("input_tokens") or 0) + read + written
    return usage_of_counts(prompt, counts.get("output_tokens") or 0, read, written, written_1h=hour)
