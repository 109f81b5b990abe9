"""An agent through the official `openai` client against a real server with a real, small model: forced calls fit their schemas and end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema_rs
import openai
import pytest

from tests.e2e.served_model import MODEL, Served, serve

pytestmark = [pytest.mark.e2e, pytest.mark.long]
CITY = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["city", "days"], "additionalProperties": False}
DONE = {"type": "object", "properties": {"answer": {"enum": ["rain", "sun"]}}, "required": ["answer"], "additionalProperties": False}
SCHEMAS: dict[str, dict[str, Any]] = {"weather": CITY, "finish": DONE}
TOOLS: list[Any] = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    flags = ("--max-model-len", "2048", "--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--reasoning-parser", "think")
    with serve(tmp_path_factory.mktemp("serve"), *flags) as running:
        yield running


@pytest.fixture
def client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served.url + "/v1", api_key="none", max_retries=0, http_client=httpx.Client(trust_env=False, timeout=120)) as made:
        yield made


def check(calls: Any) -> list[tuple[str, dict[str, Any]]]:
    assert calls
    found = [(call.function.name, json.loads(call.function.arguments)) for call in calls]
    for name, arguments in found:
        jsonschema_rs.validator_for(SCHEMAS[name]).validate(arguments)
    return found


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_calls_until_it_is_done(client: openai.OpenAI, stream: bool) -> None:
    talk: list[Any] = [{"role": "user", "content": "Call weather for Oslo, then call finish with the weather."}]
    for turn in range(3):
        choice: Any = "required" if turn < 2 else {"type": "function", "function": {"name": "finish"}}
        asked: dict[str, Any] = {"model": MODEL, "messages": talk, "tools": TOOLS, "tool_choice": choice, "max_tokens": 300, "temperature": 0, "parallel_tool_calls": False}
        if stream:
            with client.chat.completions.stream(**asked) as events:
                answer = events.get_final_completion().choices[0]
        else:
            answer = client.chat.completions.create(**asked).choices[0]
        assert answer.finish_reason == "tool_calls"
        assert not answer.message.content
        (name, arguments), *more = check(answer.message.tool_calls)
        assert not more
        talk.append({"role": "assistant", "tool_calls": [c.model_dump(include={"id", "type", "function"}) for c in answer.message.tool_calls or []]})
        result = f"rain in {arguments['city']}" if name == "weather" else "done"
        talk.append({"role": "tool", "tool_call_id": (answer.message.tool_calls or [])[0].id, "content": result})
        if name == "finish":
            break
    assert name == "finish"


def test_sampled_calls_fit_their_schema_too(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "Weather?"}], "tools": TOOLS, "max_tokens": 400, "temperature": 1.5}
    for seed in range(4):
        choice = client.chat.completions.create(**asked, tool_choice="required", seed=seed, n=2).choices
        for each in choice:
            if each.finish_reason == "tool_calls":
                check(each.message.tool_calls)
            else:
                assert each.finish_reason == "length"


def test_thoughts_end_when_their_budget_is_spent(client: openai.OpenAI) -> None:
    talk: list[Any] = [{"role": "user", "content": "Tell me a story."}, {"role": "assistant", "content": "<think>"}]
    body = {"continue_final_message": True, "thinking_token_budget": 12}
    message = client.chat.completions.create(model=MODEL, messages=talk, max_tokens=60, temperature=0, extra_body=body).choices[0].message
    assert message.reasoning  # type: ignore[attr-defined]
    assert message.content
    assert "think>" not in message.content


def test_a_forced_call_comes_behind_the_thoughts(client: openai.OpenAI) -> None:
    talk: list[Any] = [{"role": "user", "content": "Weather in Oslo?"}, {"role": "assistant", "content": "<think>"}]
    body = {"continue_final_message": True, "thinking_token_budget": 8}
    asked: dict[str, Any] = {"model": MODEL, "messages": talk, "tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 300, "temperature": 0, "extra_body": body}
    choice = client.chat.completions.create(**asked).choices[0]
    assert choice.message.reasoning  # type: ignore[attr-defined]
    assert choice.finish_reason == "tool_calls", choice
    check(choice.message.tool_calls)
