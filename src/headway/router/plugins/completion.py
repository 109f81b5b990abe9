"""Chat completions that the router itself makes, whole or as a stream, and streams put together again."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply

Body = dict[str, Any]
_PIECE = 64  # characters of one streamed chunk
_HEAD = ("id", "created", "model", "system_fingerprint", "service_tier")


def completion(text: str, model: str, finish_reason: str = "stop") -> Body:
    """A chat completion that says `text` and has used no tokens."""
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "logprobs": None, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }


def replayed(body: Body, context: RequestContext, path: str) -> Reply:
    """The answer `body`, as a stream if the client asked for one."""
    if not context.streams:
        return Reply(path=path, body=body)
    options = context.original.get("stream_options")
    with_usage = isinstance(options, Mapping) and options.get("include_usage") is True
    return Reply(path=path, chunks=stream(chunks_of_body(body, with_usage)), content_type="text/event-stream")


async def stream(chunks: Iterator[Body]) -> AsyncIterator[Body]:
    for chunk in chunks:
        yield chunk


def chunks_of_body(body: Body, with_usage: bool) -> Iterator[Body]:
    """The chunks that say what `body` says: role, text in pieces, everything else of the message, finish reason, usage when asked for."""
    head: Body = {key: body[key] for key in _HEAD if key in body}
    head["object"] = "chat.completion.chunk"

    def chunk(index: int, delta: Body, finish: str | None = None, logprobs: Any = None) -> Body:
        choice = {"index": index, "delta": delta, "finish_reason": finish, "logprobs": logprobs}
        return {**head, "choices": [choice], **({"usage": None} if with_usage else {})}

    for choice in body.get("choices", ()):
        index, message = choice.get("index", 0), choice.get("message") or {}
        yield chunk(index, {"role": message.get("role", "assistant"), "content": ""})
        for field in ("reasoning_content", "reasoning", "refusal", "content"):
            text = message.get(field)
            if isinstance(text, str):
                yield from (chunk(index, {field: text[at : at + _PIECE]}) for at in range(0, len(text), _PIECE))
        calls = message.get("tool_calls") or ()
        if calls:
            yield chunk(index, {"tool_calls": [{"index": at, **call} for at, call in enumerate(calls)]})
        rest = {key: message[key] for key in ("annotations", "audio", "function_call") if message.get(key)}
        if rest:
            yield chunk(index, rest)
        yield chunk(index, {}, choice.get("finish_reason") or "stop", choice.get("logprobs"))
    if with_usage:
        yield {**head, "choices": [], "usage": body.get("usage")}


class Collected:
    """A stream's chunks put together to the body that says the same. Adding a chunk costs the same however much there is already.

    `complete` is True once every choice that began has its finish reason and no chunk reported an error.
    """

    def __init__(self) -> None:
        self._head: Body = {}
        self._choices: dict[int, _Choice] = {}
        self._usage: Any = None
        self._failed = False

    @property
    def complete(self) -> bool:
        return bool(self._choices) and not self._failed and all(choice.finish_reason for choice in self._choices.values())

    @property
    def text(self) -> str:
        """What the choices say, joined by line ends."""
        return "\n".join(choice.said("content") for _, choice in sorted(self._choices.items()))

    def add(self, chunk: Mapping[str, Any]) -> None:
        self._failed = self._failed or "error" in chunk
        for key in _HEAD:
            if chunk.get(key) is not None:
                self._head.setdefault(key, chunk[key])
        if isinstance(chunk.get("usage"), Mapping):
            self._usage = dict(chunk["usage"])
        for part in chunk.get("choices") or ():
            self._choices.setdefault(part.get("index", 0), _Choice()).add(part)

    def body(self) -> Body:
        choices = [choice.body(index) for index, choice in sorted(self._choices.items())]
        return {"object": "chat.completion", **self._head, "choices": choices, "usage": self._usage}


class _Choice:
    """One choice of a stream. Texts are kept in pieces until somebody asks."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self._texts: dict[str, list[str]] = {}
        self._rest: Body = {}
        self._calls: dict[int, Body] = {}
        self._logprobs: Body | None = None

    def said(self, field: str) -> str:
        return "".join(self._texts.get(field, ()))

    def add(self, part: Mapping[str, Any]) -> None:
        for key, value in (part.get("delta") or {}).items():
            if key == "tool_calls":
                self._add_calls(value or ())
            elif key == "role":
                self._rest["role"] = value
            elif isinstance(value, str):
                self._texts.setdefault(key, []).append(value)
            elif value is not None:
                self._rest[key] = value
        if isinstance(part.get("logprobs"), Mapping):
            self._logprobs = self._logprobs or {}
            for key, values in part["logprobs"].items():
                if isinstance(values, list):
                    self._logprobs.setdefault(key, []).extend(values)
                else:
                    self._logprobs[key] = values
        self.finish_reason = part.get("finish_reason") or self.finish_reason

    def body(self, index: int) -> Body:
        message: Body = {"role": "assistant", "content": None, **self._rest, **{key: "".join(pieces) for key, pieces in self._texts.items()}}
        if self._calls:
            message["tool_calls"] = [_joined_call(call) for _, call in sorted(self._calls.items())]
        return {"index": index, "message": message, "logprobs": self._logprobs, "finish_reason": self.finish_reason}

    def _add_calls(self, parts: Any) -> None:
        for part in parts:
            call = self._calls.setdefault(part.get("index", 0), {"id": "", "type": "function", "function": {"name": [], "arguments": []}})
            call["id"] = part.get("id") or call["id"]
            call["type"] = part.get("type") or call["type"]
            for key, value in (part.get("function") or {}).items():
                call["function"].setdefault(key, []).append(value or "")


def _joined_call(call: Body) -> Body:
    return {**call, "function": {key: "".join(pieces) for key, pieces in call["function"].items()}}
