"""/v1/chat/completions against a scripted engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import TypeAdapter

from headway.wire.chat import ChatAnswer
from tests.server.api import CHAT, USER, Api, error
from tests.server.scripted_engine import EOS, ScriptedEngine

Make = Callable[..., Api]
PROMPT = "[user]Hi\n[assistant]"
TALK = [*USER, {"role": "assistant", "content": "He"}]


def test_shape_and_usage(api: Api) -> None:
    body = api.chat()
    assert body["id"].startswith("chatcmpl-")
    assert body["object"] == "chat.completion"
    used = len(PROMPT)
    assert body["usage"] == {"prompt_tokens": used, "completion_tokens": 13, "total_tokens": used + 13, "prompt_tokens_details": None, "completion_tokens_details": None}
    assert TypeAdapter(ChatAnswer).validate_python(body, strict=True) == body  # no field missing, none unknown
    choice = ChatCompletion.model_validate(body).choices[0]
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", "Hello, world", "stop")
    assert body["choices"][0]["logprobs"] is None


def test_stream_equals_whole(api: Api) -> None:
    chunks = [ChatCompletionChunk.model_validate(c) for c in api.stream(CHAT)]
    assert (chunks[0].choices[0].delta.role, chunks[0].choices[0].delta.content) == ("assistant", "")
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "Hello, world"
    assert [c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason] == ["stop"]
    assert len({c.id for c in chunks}) == 1
    assert [c.system_fingerprint is not None for c in chunks] == [False] * (len(chunks) - 1) + [True]


def test_half_characters_make_no_chunk(make_api: Make) -> None:
    api = make_api(ScriptedEngine("é🙂".encode()))
    texts = [c["choices"][0]["delta"]["content"] for c in api.stream(CHAT)]
    assert texts == ["", "é", "🙂", ""]


def test_max_completion_tokens_wins(api: Api) -> None:
    assert api.chat(max_completion_tokens=5, max_tokens=9)["usage"]["completion_tokens"] == 5
    assert api.chat(max_tokens=9)["usage"]["completion_tokens"] == 9


def test_without_a_cap_the_context_is_filled(make_api: Make) -> None:
    api = make_api(ScriptedEngine(b"z" * 500))
    body = api.chat()
    assert (body["usage"]["total_tokens"], body["choices"][0]["finish_reason"]) == (200, "length")


def test_choices_each_begin_with_the_role(make_api: Make) -> None:
    api = make_api(ScriptedEngine(lambda ids, index: b"AB"[index : index + 1] * 3))
    chunks = api.stream(CHAT, n=2)
    for index, text in ((0, "AAA"), (1, "BBB")):
        deltas = [c["delta"] for k in chunks for c in k["choices"] if c["index"] == index]
        assert deltas[0] == {"role": "assistant", "content": ""}
        assert "".join(d["content"] for d in deltas) == text
    assert [c["message"]["content"] for c in api.chat(n=2)["choices"]] == ["AAA", "BBB"]


def prompt_of(api: Api) -> str:
    return bytes(api.engine.seen[-1][0]).decode()


def test_the_final_message_can_be_continued(api: Api) -> None:
    for extra in ({"add_generation_prompt": False}, {}):
        body = api.chat(messages=TALK, continue_final_message=True, **extra)
        assert prompt_of(api) == "[user]Hi\n[assistant]He"
        assert body["choices"][0]["message"]["role"] == "assistant"
    both = {"messages": TALK, "continue_final_message": True, "add_generation_prompt": True}
    error(api.post(CHAT, both), 400, param="continue_final_message")


def test_without_generation_prompt_the_role_is_that_of_the_last_message(api: Api) -> None:
    body = api.chat(add_generation_prompt=False)
    assert prompt_of(api) == "[user]Hi\n"
    assert body["choices"][0]["message"]["role"] == "user"


def test_echo_repeats_a_last_message_of_the_same_role(api: Api) -> None:
    assert api.chat(messages=TALK, continue_final_message=True, echo=True)["choices"][0]["message"]["content"] == "HeHello, world"
    assert api.chat(echo=True)["choices"][0]["message"]["content"] == "Hello, world"
    chunks = api.stream(CHAT, messages=TALK, continue_final_message=True, echo=True)
    assert "".join(c["choices"][0]["delta"]["content"] for c in chunks) == "HeHello, world"


def test_token_ids_on_request(api: Api) -> None:
    body = api.chat(return_token_ids=True)
    assert body["prompt_token_ids"] == [*PROMPT.encode()]
    assert body["prompt_text"] == PROMPT
    assert body["choices"][0]["token_ids"] == [*b"Hello, world", EOS]
    chunks = api.stream(CHAT, return_token_ids=True)
    assert [("prompt_token_ids" in c) for c in chunks].count(True) == 1
    assert [t for c in chunks for t in c["choices"][0].get("token_ids", [])] == [*b"Hello, world", EOS]


def test_template_variables(make_api: Make) -> None:
    api = make_api(default_chat_template_kwargs={"a": 1, "b": 1}, chat_template="T{{ x }}")
    api.chat(chat_template_kwargs={"b": 2}, reasoning_effort="low", documents=[{"d": 1}])
    seen = {"chat_template": "T{{ x }}", "tools": None, "documents": [{"d": 1}], "a": 1, "b": 2, "reasoning_effort": "low"}
    assert api.engine.tokenizer.chat_kwargs == seen
    error(api.post(CHAT, {"messages": USER, "chat_template_kwargs": {"messages": []}}), 400, param="chat_template_kwargs")


def test_templates_of_requests_need_trust(make_api: Make) -> None:
    body = {"messages": USER, "chat_template": "{{ 1 }}"}
    error(make_api().post(CHAT, body), 400, "chat_template_untrusted", "chat_template")
    api = make_api(trust_request_chat_template=True)
    assert api.post(CHAT, body).status_code == 200
    assert bytes(api.engine.seen[0][0]) == b"1"
    assert api.post(CHAT, {**body, "chat_template": "named"}).status_code == 200  # one of the model's own
    assert api.engine.tokenizer.chat_kwargs["chat_template"] == "named"


def test_tools_are_shown_to_the_template_when_none_may_be_called(make_api: Make) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    api = make_api()
    api.chat(tools=tools, tool_choice="none")
    assert api.engine.tokenizer.chat_kwargs["tools"] == tools
    api = make_api(exclude_tools_when_tool_choice_none=True)
    api.chat(tools=tools, tool_choice="none")
    assert api.engine.tokenizer.chat_kwargs["tools"] is None


@pytest.mark.parametrize(
    ("fields", "param", "reason"),
    [
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role", "body_invalid"),
        ({"messages": [{"content": "x"}]}, "messages[0].role", "body_invalid"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages", "chat_template_error"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]", "content_part_unsupported"),
        ({"messages": [{"role": "user", "content": "x" * 300}]}, "input_tokens", "context_length_exceeded"),
        ({"messages": [{"role": "user", "content": "x" * 30_000}]}, "input_text", "context_length_exceeded"),
        ({"logprobs": True, "top_logprobs": 10_000}, "top_logprobs", "invalid_request"),
        ({"temperature": -1}, "temperature", "invalid_request"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_refusals(api: Api, fields: dict[str, Any], param: str, reason: str, stream: bool) -> None:
    error(api.post(CHAT, {"messages": USER, "stream": stream, **fields}), 400, reason, param)


def test_the_role_of_answers_can_be_chosen(make_api: Make) -> None:
    api = make_api(response_role="model")
    assert api.chat()["choices"][0]["message"]["role"] == "model"
    assert api.stream(CHAT)[0]["choices"][0]["delta"]["role"] == "model"
