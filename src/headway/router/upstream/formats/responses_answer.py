"""An answer of OpenAI's Responses API as a chat completion, whole or as chunks. Source: the public API reference."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson

from headway.router.request.reply import Chunks
from headway.router.upstream.formats.format import BackendReportedError, Body, call_delta, chunk_of, usage_of_counts

_DELTAS: Mapping[str, str] = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_content",
    "response.reasoning_summary_text.delta": "reasoning_content",
}
_ENDS = ("response.completed", "response.incomplete")
_FAILURES = ("response.failed", "error")


def completion_of_response(answer: Body) -> Body:
    if answer.get("status") == "failed":
        raise ValueError("the response failed")
    message: Body = {"role": "assistant", "content": None}
    calls: list[Body] = []
    logprobs: list[Any] = []
    for item in answer["output"]:
        if item["type"] == "message":
            for part in item["content"]:
                name = "refusal" if part["type"] == "refusal" else "content"
                message[name] = (message.get(name) or "") + part["refusal" if name == "refusal" else "text"]
                logprobs += part.get("logprobs") or ()
        elif item["type"] == "function_call":
            calls.append({"id": item["call_id"], "type": "function", "function": {"name": item["name"], "arguments": item["arguments"]}})
        elif item["type"] == "reasoning":
            told = "".join(part["text"] for part in [*(item.get("summary") or ()), *(item.get("content") or ())])
            message |= {"reasoning_content": (message.get("reasoning_content") or "") + told} if told else {}
    message |= {"tool_calls": calls} if calls else {}
    finish = _finish(answer, bool(calls))
    choice = {"index": 0, "message": message, "logprobs": {"content": logprobs} if logprobs else None, "finish_reason": finish}
    return {**_head(answer), "object": "chat.completion", "choices": [choice], "usage": _usage(answer.get("usage") or {})}


async def chunks_of_response(events: AsyncIterator[bytes], with_usage: bool) -> Chunks:
    """Ends with `response.completed` or `response.incomplete`."""
    head: Body = {}
    calls: dict[int, int] = {}  # number of the call by the index of its item
    async for data in events:
        event = orjson.loads(data)
        kind = event.get("type")
        if kind == "response.created":
            head = _head(event["response"])
            yield chunk_of(head, {"role": "assistant", "content": ""})
        elif kind in _DELTAS:
            yield chunk_of(head, {_DELTAS[kind]: event["delta"]})
        elif kind == "response.output_item.added" and event["item"]["type"] == "function_call":
            calls[event["output_index"]] = len(calls)
            yield chunk_of(head, call_delta(calls[event["output_index"]], "", event["item"]["call_id"], event["item"]["name"]))
        elif kind == "response.function_call_arguments.delta":
            yield chunk_of(head, call_delta(calls[event["output_index"]], event["delta"]))
        elif kind in _ENDS:
            yield chunk_of(head, {}, _finish(event["response"], bool(calls)))
            if with_usage:
                usage = _usage(event["response"].get("usage") or {})
                yield {**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}
            return
        elif kind in _FAILURES:
            told = event.get("response", {}).get("error") or event
            raise BackendReportedError(told.get("code"))


def _head(answer: Mapping[str, Any]) -> Body:
    return {"id": answer["id"], "created": int(answer.get("created_at") or time.time()), "model": answer["model"]}


def _finish(answer: Mapping[str, Any], calls: bool) -> str:
    why = (answer.get("incomplete_details") or {}).get("reason")
    if why is not None:
        return "content_filter" if why == "content_filter" else "length"
    return "tool_calls" if calls else "stop"


def _usage(counts: Mapping[str, Any]) -> Body:
    cached = (counts.get("input_tokens_details") or {}).get("cached_tokens") or 0
    reasoning = (counts.get("output_tokens_details") or {}).get("reasoning_tokens") or 0
    return usage_of_counts(counts.get("input_tokens") or 0, counts.get("output_tokens") or 0, cached, reasoning=reasoning)
