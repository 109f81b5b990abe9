"""/v1/messages with Anthropic's own client and its types, on a real socket."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import httpx2
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import TypeAdapter

from headway.errors import QueueFullError, StepError
from tests.cases.case_server import case_server
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer
from tests.server.api import Api
from tests.server.live import Live, live
from tests.server.scripted_engine import ScriptedEngine

PATH = "/v1/messages"
USER: list[Any] = [{"role": "user", "content": "Hi"}]
EVENTS: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
TOOL: dict[str, Any] = {"name": "add", "description": "Adds.", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
IMAGE = {"type": "image", "source": {"type": "url", "url": "http://x"}}
RESULT_AND_IMAGE = [{"type": "tool_result", "tool_use_id": "t", "content": "7"}, IMAGE]
BROKEN_CALL = [{"type": "text", "text": "I add."}, {"type": "tool_use", "id": "t", "name": "add", "input": [1]}]
CALL = b'I add. <tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with live(ScriptedEngine("Grüße 🙂".encode()), api_key=("k",)) as running:
        yield running


def client_of(server: Live, key: str = "k") -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key=key, max_retries=0, http_client=httpx2.Client(trust_env=False))


@pytest.fixture
def client(server: Live) -> Iterator[anthropic.Anthropic]:
    with client_of(server) as made:
        yield made


def streamed(api: Api, **body: Any) -> list[dict[str, Any]]:
    """The events, each of which the client's types take."""
    response = api.post(PATH, {"max_tokens": 90, "messages": USER, "stream": True, **body})
    assert response.status_code == 200, response.text
    found = []
    for frame in response.text.split("\n\n")[:-1]:
        name, _, data = frame.partition("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == "event: " + event["type"]
        if event["type"] not in ("ping", "error"):
            EVENTS.validate_python(event)
        found.append(event)
    return found


def failure(response: httpx.Response, status: int, kind: str, param: str | None = None) -> dict[str, Any]:
    assert response.status_code == status, response.text
    body: dict[str, Any] = response.json()
    assert (body["type"], body["error"]["type"]) == ("error", kind)
    if param is not None:
        assert body["error"]["param"] == param, body
    return body


def test_whole(client: anthropic.Anthropic, server: Live) -> None:
    found = client.messages.create(model="tiny", max_tokens=50, messages=USER, system=[{"type": "text", "text": "Be kind."}], extra_body={"temperature": 0, "top_k": 3})
    assert [(block.type, getattr(block, "text", None)) for block in found.content] == [("text", "Grüße 🙂")]
    assert found.id.startswith("msg_")
    assert (found.stop_reason, found.stop_sequence, found.model, found.role) == ("end_turn", None, "tiny", "assistant")
    assert (server.engine.seen[-1][1].temperature, server.engine.seen[-1][1].top_k) == (0, 3)
    prompt = "[system]Be kind.\n[user]Hi\n[assistant]"
    assert bytes(server.engine.seen[-1][0]).decode() == prompt
    assert (found.usage.input_tokens, found.usage.output_tokens) == (len(prompt), 13)
    Message.model_validate(found.model_dump(), strict=True)
    assert client.messages.create(model="tiny", max_tokens=2, messages=USER).stop_reason == "max_tokens"


def test_the_client_puts_a_stream_together(client: anthropic.Anthropic) -> None:
    with client.messages.stream(model="tiny", max_tokens=50, messages=USER) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == "Grüße 🙂" == getattr(final.content[0], "text", None)
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", 13)


def test_the_events_of_a_text(make_api: Any) -> None:
    found = streamed(make_api(ScriptedEngine(b"ab")))
    assert [event["type"] for event in found] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
    ]  # fmt: skip
    assert found[0]["message"]["usage"]["input_tokens"] == len("[user]Hi\n[assistant]") == found[-2]["usage"]["input_tokens"]
    assert (found[-2]["delta"], found[-2]["usage"]["output_tokens"]) == ({"stop_reason": "end_turn", "stop_sequence": None}, 3)


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_and_calls_are_blocks(make_api: Any, stream: bool) -> None:
    api = make_api(ScriptedEngine(b"<think>Hm.</think>" + CALL), enable_auto_tool_choice=True, tool_call_parser="hermes", reasoning_parser="deepseek_r1")
    body = {"tools": [TOOL], "thinking": {"type": "adaptive"}}
    if stream:
        found = streamed(api, **body)
        blocks = [event["content_block"]["type"] for event in found if event["type"] == "content_block_start"]
        assert "".join(e["delta"].get("partial_json", "") for e in found if e["type"] == "content_block_delta") == '{"a": 1}'
        assert found[-2]["delta"]["stop_reason"] == "tool_use"
    else:
        message = Message.model_validate(api.post(PATH, {"max_tokens": 90, "messages": USER, **body}).json(), strict=True)
        blocks = [block.type for block in message.content]
        call = message.content[-1]
        assert call.type == "tool_use"
        assert (call.name, call.input, message.stop_reason) == ("add", {"a": 1}, "tool_use")
    assert blocks == ["thinking", "text", "tool_use"]
    assert api.engine.tokenizer.chat_kwargs["tools"][0]["function"]["parameters"] == TOOL["input_schema"]
    assert api.engine.tokenizer.chat_kwargs["enable_thinking"] is True


@pytest.mark.parametrize(("choice", "schema"), [({"type": "any"}, "array"), ({"type": "tool", "name": "add"}, "object")])
def test_a_call_can_be_demanded(make_api: Any, choice: dict[str, Any], schema: str) -> None:
    api = make_api(ScriptedEngine(b'{"a": 1}' if schema == "object" else b'[{"name": "add", "parameters": {"a": 1}}]'))
    message = api.post(PATH, {"max_tokens": 90, "messages": USER, "tools": [TOOL], "tool_choice": choice}).json()
    assert [(block["type"], block.get("input")) for block in message["content"]] == [("tool_use", {"a": 1})]
    assert message["stop_reason"] == "tool_use"
    assert api.engine.seen[-1][1].structured_outputs.json["type"] == schema


def test_a_form_is_passed_on(make_api: Any) -> None:
    api = make_api()
    assert api.post(PATH, {"max_tokens": 5, "messages": USER, "structured_outputs": {"choice": ["a", "b"]}}).status_code == 200
    assert api.engine.seen[-1][1].structured_outputs.choice == ["a", "b"]


def test_results_of_tools_go_back_to_the_model(make_api: Any) -> None:
    api = make_api()
    talk = [
        *USER,
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": ""}, {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "2"}]}, {"type": "text", "text": "So?"}]},
    ]
    assert api.post(PATH, {"max_tokens": 5, "messages": talk}).status_code == 200
    assert bytes(api.engine.seen[-1][0]).decode() == "[user]Hi\n[assistant]\n[tool]2\n[user]So?\n[assistant]"


def test_counting_gives_what_the_message_uses(client: anthropic.Anthropic, server: Live) -> None:
    body: dict[str, Any] = {"model": "tiny", "messages": USER, "system": "Be kind.", "tools": [TOOL], "tool_choice": {"type": "none"}}
    counted = client.messages.count_tokens(**body).input_tokens
    assert counted == client.messages.create(max_tokens=3, **body).usage.input_tokens == len(server.engine.seen[-1][0])
    assert counted > client.messages.count_tokens(model="tiny", messages=USER).input_tokens


def test_what_came_from_the_cache_is_counted_beside(make_api: Any) -> None:
    api = make_api(enable_prompt_tokens_details=True)
    used = api.post(PATH, {"max_tokens": 3, "messages": USER}).json()["usage"]
    assert used["cache_read_input_tokens"] > 0
    assert used["input_tokens"] + used["cache_read_input_tokens"] == len("[user]Hi\n[assistant]")


def test_a_stop_sequence_is_named() -> None:
    model = ScriptedModel(scripted_tokenizer())
    model.say_bytes(b"one two three")
    with case_server(*scripted_engine(model)) as running:
        body = {"max_tokens": 20, "messages": USER, "temperature": 0, "stop_sequences": ["zz", " three"]}
        found = running.post(PATH, body).json()
        assert (found["content"][0]["text"], found["stop_reason"], found["stop_sequence"]) == ("one two", "stop_sequence", " three")
        text = running.post(PATH, {**body, "stream": True}).text
        assert '"stop_reason":"stop_sequence","stop_sequence":" three"' in text


def test_keys(server: Live) -> None:
    with client_of(server, "wrong") as stranger, pytest.raises(anthropic.AuthenticationError) as refused:
        stranger.messages.create(model="tiny", max_tokens=2, messages=USER)
    assert refused.value.body == refused.value.response.json()
    failure(refused.value.response, 401, "authentication_error")
    body = {"max_tokens": 2, "messages": USER}
    for headers, status in (({"x-api-key": "k"}, 200), ({"Authorization": "Bearer k"}, 200), ({}, 401), ({"x-api-key": ""}, 401)):
        assert httpx.post(server.url + PATH, json=body, headers=headers, trust_env=False).status_code == status


def test_errors_have_the_shape_of_the_api(make_api: Any) -> None:
    api = make_api()
    body = {"max_tokens": 2, "messages": USER}
    failure(api.post(PATH, {**body, "model": "no"}), 404, "not_found_error", "model")
    failure(api.get(PATH), 405, "invalid_request_error")
    failure(api.post("/v1/messages/batches", {}), 404, "not_found_error")
    failure(api.call("POST", PATH, content=b"{", headers={"content-type": "application/json"}), 400, "invalid_request_error")
    api.engine.fail = QueueFullError("full")
    failure(api.post(PATH, body), 503, "overloaded_error")
    api.engine.fail, api.engine.fail_after = StepError("broke"), 1
    found = streamed(api)
    assert [event["type"] for event in found][-2:] == ["content_block_delta", "error"]
    assert found[-1]["error"]["type"] == "api_error"


def test_leaving_a_stream_frees_the_request(server: Live, client: anthropic.Anthropic) -> None:
    server.hold(after=2)
    stream = client.messages.create(model="tiny", max_tokens=50, messages=USER, stream=True)
    next(iter(stream))
    assert len(server.engine.active) == 1
    stream.close()
    server.until(lambda: not server.engine.active)
    server.engine.hold = None


def test_silence_is_filled_with_pings() -> None:
    with live(ScriptedEngine(b"abc"), sse_keep_alive_interval=0.02) as running:
        running.hold(after=1)
        with httpx.stream("POST", running.url + PATH, json={"max_tokens": 9, "messages": USER, "stream": True}, trust_env=False) as response:
            lines = response.iter_lines()
            assert next(line for line in lines if line.startswith("data: {\"type\":\"ping")) == 'data: {"type":"ping"}'
            running.release()
            assert [line for line in lines if line][-1] == 'data: {"type":"message_stop"}'


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": []}]}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "http://x"}}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "unheard"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"system": "Be kind.", "messages": [*USER, {"role": "user", "content": RESULT_AND_IMAGE}]}, "messages[1].content[1]"),
        ({"system": "Be kind.", "messages": [*USER, {"role": "assistant", "content": BROKEN_CALL}]}, "messages[1].content[1].input"),
        ({"structured_outputs": {"json": 7}}, "structured_outputs"),
        ({"guided_choice": ["a"]}, "guided_choice"),
        ({"stop": ["a"]}, "stop"),
        ({"n": 2}, "n"),
        ({"system": [{"type": "image"}]}, "system[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": "x"}, "citations": {"enabled": True}}]}]}, "document.citations"),
        ({"temperature": 3}, "temperature"),
        ({"stop_sequences": [""]}, "stop_sequences"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0]"),
        ({"tools": [TOOL], "tool_choice": {"type": "sometimes"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "sub"}}, "tool_choice"),
        ({"thinking": {"type": "deep"}}, "thinking.type"),
        ({"mcp_servers": [{"url": "http://x"}]}, "mcp_servers"),
        ({"container": "c"}, "container"),
        ({"speed": "fast"}, "speed"),
        ({"output_config": {"format": {"type": "json_schema", "schema": 7}}}, "output_config.format.schema"),
    ],
)
def test_refusals(make_api: Any, fields: dict[str, Any], param: str) -> None:
    api = make_api()
    found = failure(api.post(PATH, {"max_tokens": 5, "messages": USER, **fields}), 400, "invalid_request_error", param)
    assert not re.search(r"messages\[2|tool_calls|image_url", found["error"]["message"])
    assert not api.engine.seen


def test_an_answer_that_is_begun_is_gone_on_with(api: Api) -> None:
    body = {"messages": [*USER, {"role": "assistant", "content": "He"}]}
    found = api.post(PATH, {"max_tokens": 5, **body}).json()
    assert bytes(api.engine.seen[-1][0]).decode() == "[user]Hi\n[assistant]He"
    assert found["content"][0]["text"] == "Hello"  # the engine's script; what was sent is not said again
    assert api.post(f"{PATH}/count_tokens", body).json()["input_tokens"] == found["usage"]["input_tokens"]
