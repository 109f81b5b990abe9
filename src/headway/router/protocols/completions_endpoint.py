"""POST /v1/completions: passed to a model that is named, asked as a chat of one message where the router chooses the model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson

from headway.errors import NotBuiltError, RequestError
from headway.router.listener.request import PublicRequest
from headway.router.protocols.chat import check_stream, require_model
from headway.router.protocols.deltas import read_delta, read_message
from headway.router.protocols.endpoint import Opened
from headway.router.protocols.passed_endpoint import passed_completion
from headway.router.protocols.translation import Losses
from headway.router.request.reply import Chunks
from headway.wire.sse import DONE, frame

_REFUSED: Mapping[str, object] = {"suffix": "", "best_of": 1, "echo": False, "prompt_logprobs": None, "n": 1}
"""Each with the value that asks for nothing."""
_LOST = ("logprobs",)


class CompletionsEndpoint:
    """Models behind decisions are chat models, and plugins work on chats: a routed prompt becomes a user message."""

    protocol = "completions"

    async def open(self, body: dict[str, Any], request: PublicRequest) -> Opened:
        require_model(body)
        if request.generation.names.resolve(body["model"]).recipe is None:
            return passed_completion(body)
        losses = Losses()
        chat = routed_chat(body, losses)
        return Opened(chat, "chat", CompletionTranslation(chat, losses, _wants_usage(body)))


def routed_chat(body: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    """Raises RequestError, NotBuiltError."""
    check_stream(dict(body))
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str) or not prompt:
        raise RequestError("prompt must be one text for a model that the router chooses", param="prompt", fix="Name a model to send tokens or several prompts.")
    for name, nothing in _REFUSED.items():
        if body.get(name) is not None and (body[name] != nothing or type(body[name]) is not type(nothing)):
            raise NotBuiltError(f"{name} is not supported for a model that the router chooses", param=name, fix="Name a model.")
    chat = {key: value for key, value in body.items() if key not in ("prompt", *_REFUSED, *_LOST)}
    chat["messages"] = [{"role": "user", "content": prompt}]
    losses.note("prompt", "asked_as_chat", "info")
    for name in _LOST:
        if body.get(name) is not None:
            losses.note(name)
    return chat


class CompletionTranslation:
    def __init__(self, chat: dict[str, Any], losses: Losses, with_usage: bool) -> None:
        self.chat, self.losses, self._with_usage = chat, losses, with_usage

    async def whole(self, completion: dict[str, Any]) -> dict[str, Any]:
        said = read_message(completion)
        choice = {"index": 0, "text": said.text or said.refusal, "logprobs": None, "finish_reason": said.finish or "stop"}
        return {**_head(completion), "choices": [choice], "usage": completion.get("usage")}

    async def events(self, chunks: Chunks) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            said = read_delta(chunk)
            if said.text or said.refusal or said.finish:
                choice = {"index": 0, "text": said.text or said.refusal, "logprobs": None, "finish_reason": said.finish}
                yield frame(orjson.dumps({**_head(chunk), "choices": [choice]}))
            if chunk.get("usage") and self._with_usage:
                yield frame(orjson.dumps({**_head(chunk), "choices": [], "usage": chunk["usage"]}))
        yield DONE


def _head(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": body.get("id"), "object": "text_completion", "created": body.get("created"), "model": body.get("model")}


def _wants_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, Mapping) and options.get("include_usage") is True
