"""Whatever JSON comes, from clients or from backends: it is read, or refused by name. Nothing else is ever raised."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import HeadwayError
from headway.router.listener.usage import usage_of
from headway.router.protocols.anthropic.answer import message_events, message_of
from headway.router.protocols.anthropic.request import chat_body as messages_chat
from headway.router.protocols.chat import check_chat
from headway.router.protocols.completions_endpoint import CompletionTranslation, routed_chat
from headway.router.protocols.errors import foreign_error
from headway.router.protocols.responses.answer import whole_response
from headway.router.protocols.responses.request import chat_body as responses_chat
from headway.router.protocols.responses.request import check_request
from headway.router.protocols.responses.stream import ResponseStream
from headway.router.protocols.translation import Losses
from headway.wire.responses.answer import new_response
from headway.wire.responses.input import input_items

WORDS = st.sampled_from([
    "text", "image", "tool_use", "tool_result", "document", "thinking", "function", "function_call", "function_call_output", "message", "reasoning",
    "input_text", "input_image", "refusal", "user", "assistant", "system", "m", "json_schema", "auto", "any", "tool", "enabled", "base64", "url", "",
])  # fmt: skip
KEYS = st.sampled_from([
    "type", "role", "content", "text", "source", "data", "name", "input", "id", "call_id", "output", "arguments", "function", "tools", "tool_choice",
    "system", "messages", "max_tokens", "stream", "stream_options", "metadata", "user_id", "thinking", "budget_tokens", "instructions", "model", "text",
    "format", "schema", "reasoning", "effort", "include", "choices", "delta", "index", "message", "finish_reason", "usage", "prompt_tokens",
    "completion_tokens", "prompt_tokens_details", "cached_tokens", "tool_calls", "refusal", "logprobs", "output_config", "prompt", "n", "error", "code",
])  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers(-5, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | WORDS | st.text(max_size=5)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=25)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=8)


def responses(body: dict[str, Any], losses: Losses) -> dict[str, Any]:
    check_request(body)
    return responses_chat(body, [], input_items(body.get("input")), losses)


def chat(body: dict[str, Any], losses: Losses) -> dict[str, Any]:
    check_chat(body)
    return body


@pytest.mark.parametrize("read", [messages_chat, responses, routed_chat, chat])
@settings(max_examples=60, deadline=None)
@given(body=OBJECTS, inner=st.lists(JSON, max_size=3))
def test_requests(read: Callable[[dict[str, Any], Losses], dict[str, Any]], body: dict[str, Any], inner: list[Any]) -> None:
    for whole in (body, {"model": "m", "max_tokens": 1, **body, "messages": inner, "input": inner}):
        losses = Losses()
        with contextlib.suppress(HeadwayError):
            found = read(dict(whole), losses)
            assert isinstance(found["messages"], list)
            json.dumps(found)
        assert len(losses.found) <= 16


async def given_chunks(chunks: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    for chunk in chunks:
        yield chunk


async def written(events: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in events])


@settings(max_examples=80, deadline=None)
@given(st.lists(OBJECTS, max_size=4))
def test_answers(chunks: list[dict[str, Any]]) -> None:
    response = new_response({"model": "m"})
    for body in chunks:
        usage_of(body)
        json.dumps([message_of(body, "m"), whole_response(response, body)])
    for events in (message_events(given_chunks(chunks), "m"), ResponseStream(response).events(given_chunks(chunks))):
        for line in asyncio.run(written(events)).splitlines():
            assert not line or line.startswith(b"event: ") or json.loads(line.removeprefix(b"data: "))
    text = asyncio.run(written(CompletionTranslation({}, Losses(), True).events(given_chunks(chunks))))
    assert text.endswith(b"data: [DONE]\n\n")


@given(st.binary(max_size=50) | JSON.map(lambda value: json.dumps(value).encode()), st.sampled_from(["chat", "anthropic"]))
def test_errors_of_backends(raw: bytes, protocol: str) -> None:
    error = json.loads(foreign_error(protocol, 500, raw))["error"]
    assert isinstance(error["message"], str)
    assert not isinstance(error["code"], int) or isinstance(error["code"], bool)
