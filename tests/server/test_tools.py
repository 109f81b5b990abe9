"""Tool calls through /v1/chat/completions, as the official client sees them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import openai
import pytest

from headway.errors import ConfigError
from tests.server.api import CHAT, USER, Api, error
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine

TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "now"}},
]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich"}}\n</tool_call>'
TEXT = f"<think>Where?</think>Let me see.\n{CALL}\n" + '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
AUTO: dict[str, Any] = {"enable_auto_tool_choice": True, "tool_call_parser": "hermes"}
Make = Callable[..., Api]
ROOM = {"max_model_len": 2000}


@contextmanager
def client_of(text: str, **settings: Any) -> Iterator[openai.OpenAI]:
    with (
        live(ScriptedEngine(text.encode(), **ROOM), **settings) as server,
        openai.OpenAI(base_url=server.url + "/v1", api_key="k", max_retries=0, http_client=httpx.Client(trust_env=False)) as client,
    ):
        yield client


def test_the_client_accumulates_a_stream_to_the_whole_answer() -> None:
    with client_of(TEXT, reasoning_parser="think", **AUTO) as client:
        asked: dict[str, Any] = {"model": "tiny", "messages": USER, "tools": TOOLS}
        whole = client.chat.completions.create(**asked).choices[0]
        with client.chat.completions.stream(**asked) as stream:
            streamed = stream.get_final_completion().choices[0]
    for choice in (whole, streamed):
        calls = choice.message.tool_calls or []
        assert [(c.function.name, json.loads(c.function.arguments)) for c in calls if c.type == "function"] == [("get_weather", {"city": "Zürich"}), ("now", {})]
        assert len({c.id for c in calls}) == 2
        assert (choice.message.content, choice.finish_reason) == ("Let me see.\n", "tool_calls")
        assert choice.message.reasoning == "Where?"  # type: ignore[attr-defined]


def test_a_talk_with_calls_and_results(make_api: Make) -> None:
    api = make_api(ScriptedEngine(b"Rain.", **ROOM), **AUTO)
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    talk = [*USER, {"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "call_1", "content": "rain"}]
    choice = api.chat(messages=talk, tools=TOOLS)["choices"][0]
    assert (choice["message"]["content"], choice["message"]["tool_calls"], choice["finish_reason"]) == ("Rain.", [], "stop")
    assert api.engine.tokenizer.chat_kwargs["tools"] == TOOLS
    for arguments in ("{", "[1]", "7", 7):
        call["function"]["arguments"] = arguments  # type: ignore[index]
        error(api.post(CHAT, {"messages": talk, "tools": TOOLS}), 400, "body_invalid")


@pytest.mark.parametrize("stream", [False, True])
def test_forced_calls(make_api: Make, stream: bool) -> None:
    named = {"type": "function", "function": {"name": "get_weather"}}
    cases: list[tuple[Any, bytes, str]] = [
        (named, b'{"city": "Oslo"}', "get_weather"),
        ("required", b'[{"name": "now", "parameters": {}}]', "now"),
    ]
    for choice, text, name in cases:
        api = make_api(ScriptedEngine(text, **ROOM))
        fields = {"tools": TOOLS, "tool_choice": choice, "logprobs": True, "return_token_ids": True}
        if stream:
            chunks = api.stream(CHAT, **fields)
            calls = [call for c in chunks for call in c["choices"][0]["delta"].get("tool_calls", [])]
            assert [c["function"].get("name") for c in calls if "id" in c] == [name]
            assert sum(len(c["choices"][0].get("token_ids", [])) for c in chunks) == len(text) + 1
            assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
        else:
            found = api.chat(**fields)["choices"][0]
            assert [c["function"]["name"] for c in found["message"]["tool_calls"]] == [name]
            assert (found["message"]["content"], found["finish_reason"]) == (None, "tool_calls")
        assert api.engine.seen[-1][1].structured_outputs.constraint.kind == "json"


def test_a_schema_begins_after_the_reasoning(make_api: Make) -> None:
    api = make_api(ScriptedEngine(b"hm</think>[]", **ROOM), reasoning_parser="qwen3")
    for kwargs, ids in (({}, tuple(b"</think>")), ({"enable_thinking": False}, ())):
        api.chat(tools=TOOLS, tool_choice="required", chat_template_kwargs=kwargs)
        assert api.engine.seen[-1][1].structured_outputs.starts_after == ids
    api.chat(response_format={"type": "json_object"}, reasoning_effort="none")
    assert api.engine.seen[-1][1].structured_outputs.starts_after == ()
    assert api.engine.tokenizer.chat_kwargs["enable_thinking"] is False


def test_budgets_and_special_tokens(make_api: Make) -> None:
    api = make_api(ScriptedEngine(b"x", **ROOM), reasoning_parser="deepseek_r1", **AUTO)
    api.chat(tools=TOOLS, thinking_token_budget=7)
    params = api.engine.seen[-1][1]
    assert (params.thinking_token_budget, params.thinking_marks.opens, params.skip_special_tokens) == (7, True, False)
    api.chat(thinking_token_budget=-1)
    params = api.engine.seen[-1][1]
    assert (params.thinking_token_budget, params.skip_special_tokens) == (None, True)
    for path, body in ((CHAT, {"messages": USER}), ("/v1/completions", {"prompt": "x"})):
        error(make_api().post(path, {**body, "thinking_token_budget": 1}), 400, "thinking_budget_unavailable", "thinking_token_budget")


@pytest.mark.parametrize(
    ("fields", "param", "reason"),
    [
        ({"tools": TOOLS}, "tool_choice", "auto_tool_choice_disabled"),
        ({"tools": TOOLS, "tool_choice": "auto"}, "tool_choice", "auto_tool_choice_disabled"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "nope"}}}, "tool_choice", "tool_choice_invalid"),
        ({"tools": [{"type": "function", "function": {}}], "tool_choice": "none"}, "tools[0].function.name", "tools_invalid"),
        ({"tools": TOOLS, "tool_choice": "required", "response_format": {"type": "json_object"}}, "tool_choice", "invalid_request"),
        ({"tools": TOOLS, "tool_choice": "required", "use_beam_search": True}, "tool_choice", "invalid_request"),
        ({"tools": [], "tool_choice": "required"}, "tool_choice", "body_invalid"),
        ({"tool_choice": {"type": "function", "function": {"name": "now"}}}, "tool_choice", "body_invalid"),
        ({"functions": [{"name": "f"}]}, "functions", "not_built"),
        ({"reasoning_effort": "enormous"}, "reasoning_effort", "body_invalid"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_refusals(make_api: Make, fields: dict[str, Any], param: str, reason: str, stream: bool) -> None:
    if stream and "use_beam_search" in fields:
        return
    error(make_api().post(CHAT, {"messages": USER, "stream": stream, **fields}), 400, reason, param)


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_no_tools_are_none_to_choose_from(make_api: Make, choice: str) -> None:
    api = make_api()
    for fields in ({"tools": []}, {}):
        assert api.chat(**fields, tool_choice=choice)["choices"][0]["finish_reason"] == "stop"
        assert api.engine.tokenizer.chat_kwargs["tools"] is None
        assert api.post("/v1/responses", {"input": "Hi", **fields, "tool_choice": choice}).status_code == 200


def test_each_choice_is_read_by_itself(make_api: Make) -> None:
    api = make_api(ScriptedEngine(lambda ids, index: (CALL, "<think>no</think>None.")[index].encode(), **ROOM), reasoning_parser="think", **AUTO)
    first, second = api.chat(tools=TOOLS, n=2)["choices"]
    assert (first["finish_reason"], second["finish_reason"], second["message"]["reasoning"]) == ("tool_calls", "stop", "no")
    deltas = [(c["index"], c["delta"]) for chunk in api.stream(CHAT, tools=TOOLS, n=2) for c in chunk["choices"]]
    arguments = "".join(call["function"]["arguments"] for i, d in deltas for call in d.get("tool_calls", []) if i == 0)
    assert json.loads(arguments) == {"city": "Zürich"}
    assert "".join(d.get("content", "") for i, d in deltas if i == 1) == "None."
    assert not [d for i, d in deltas if i == 1 and "tool_calls" in d]


@pytest.mark.parametrize(
    "flags",
    [{"enable_auto_tool_choice": True}, {"tool_parser_plugin": "x"}, {"tool_call_parser": "nope"}, {"reasoning_parser": "nope"}, {"tool_call_parser": "hermes", "tool_parser_plugin": "nope"}],
)  # fmt: skip
def test_flags_that_contradict_each_other_or_name_nothing(make_api: Make, flags: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as found:
        make_api(**flags)
    assert found.value.param in {name.replace("_", "-") for name in flags}


def test_reasoning_is_passed_on_to_the_template(make_api: Make) -> None:
    seen: list[list[dict[str, Any]]] = []
    api = make_api()
    render = api.engine.tokenizer.render_chat
    api.engine.tokenizer.render_chat = lambda messages, **kwargs: seen.append(messages) or render(messages, **kwargs)  # type: ignore[method-assign,func-returns-value]
    api.chat(messages=[*USER, {"role": "assistant", "content": "a", "reasoning": "b"}, *USER])
    assert seen[0][1] == {"role": "assistant", "content": "a", "reasoning": "b"}
