"""/v1/responses with OpenAI's own client and its types, on a real socket."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from headway.errors import StepError
from tests.server.api import Api, error
from tests.server.live import Live, live
from tests.server.scripted_engine import ScriptedEngine

PATH = "/v1/responses"
EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
TOOL: dict[str, Any] = {"type": "function", "name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}, "strict": False}
CALL = b'I add. <tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
THOUGHT = b"<think>Hm.</think>Four."


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with live(ScriptedEngine("Grüße 🙂".encode()), enable_responses_api_store=True) as running:
        yield running


@pytest.fixture
def client(server: Live) -> Iterator[openai.OpenAI]:
    with client_of(server) as made:
        yield made


def client_of(server: Live) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url + "/v1", api_key="k", max_retries=0, http_client=httpx.Client(trust_env=False))


def events(text: str) -> list[dict[str, Any]]:
    """Checked: each frame has a name that its data repeats, numbers count up, the SDK's types take every event."""
    found = []
    for frame in text.split("\n\n")[:-1]:
        name, _, data = frame.partition("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == "event: " + event["type"]
        assert event["sequence_number"] == len(found)
        EVENTS.validate_python(event)
        found.append(event)
    assert text.endswith("\n\n")
    return found


def streamed(api: Api, **body: Any) -> list[dict[str, Any]]:
    response = api.post(PATH, {"input": "Hi", "stream": True, **body})
    assert response.status_code == 200, response.text
    return events(response.text)


def test_whole(client: openai.OpenAI, server: Live) -> None:
    found = client.responses.create(model="tiny", input="Hi", instructions="Be kind.", temperature=0, metadata={"a": "b"}, reasoning={"effort": "low"})
    assert (found.status, found.output_text, found.model, found.instructions) == ("completed", "Grüße 🙂", "tiny", "Be kind.")
    assert bytes(server.engine.seen[-1][0]).decode() == "[system]Be kind.\n[user]Hi\n[assistant]"
    assert found.usage is not None
    assert (found.usage.input_tokens, found.usage.output_tokens) == (len("[system]Be kind.\n[user]Hi\n[assistant]"), 13)
    assert found.usage.total_tokens == found.usage.input_tokens + 13
    assert (found.temperature, found.top_p, found.metadata, found.store) == (0, 1, {"a": "b"}, True)
    Response.model_validate(found.model_dump())


def test_an_answer_that_was_cut_is_incomplete(client: openai.OpenAI) -> None:
    found = client.responses.create(model="tiny", input=[{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}], max_output_tokens=2)
    assert (found.status, found.output_text) == ("incomplete", "Gr")
    assert found.incomplete_details is not None
    assert found.incomplete_details.reason == "max_output_tokens"
    item = found.output[0]
    assert item.type == "message"
    assert item.status == "incomplete"


def test_the_events_of_a_text(make_api: Any) -> None:
    found = streamed(make_api(ScriptedEngine(b"ab")), max_output_tokens=2)
    assert [event["type"].removeprefix("response.") for event in found] == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done", "incomplete",
    ]  # fmt: skip
    final = found[-1]["response"]
    assert found[-2]["item"] == final["output"][0]
    assert final["output"][0]["content"][0]["text"] == "ab" == found[6]["text"]
    assert (found[0]["response"]["status"], found[0]["response"]["id"]) == ("in_progress", final["id"])
    assert final["usage"]["output_tokens"] == 2


def test_the_client_puts_a_stream_together(client: openai.OpenAI) -> None:
    with client.responses.stream(model="tiny", input="Hi") as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert text == final.output_text == "Grüße 🙂"


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_and_calls_are_items(make_api: Any, stream: bool) -> None:
    api = make_api(ScriptedEngine(b"<think>Hm.</think>" + CALL), enable_auto_tool_choice=True, tool_call_parser="hermes", reasoning_parser="deepseek_r1")
    if stream:
        found = streamed(api, tools=[TOOL])
        kinds = [event["type"].removeprefix("response.") for event in found]
        assert kinds.index("reasoning_text.done") < kinds.index("output_text.delta") < kinds.index("function_call_arguments.delta")
        assert "".join(e["delta"] for e in found if e["type"] == "response.function_call_arguments.delta") == '{"a": 1}'
        response = found[-1]["response"]
    else:
        response = api.post(PATH, {"input": "Hi", "tools": [TOOL]}).json()
    assert response["status"] == "completed"
    parsed = Response.model_validate(response)
    thought, message, call = parsed.output
    assert thought.type == "reasoning"
    assert thought.content is not None
    assert thought.content[0].text == "Hm."
    assert message.type == "message"
    assert parsed.output_text.strip() == "I add."
    assert call.type == "function_call"
    assert (call.name, json.loads(call.arguments)) == ("add", {"a": 1})
    assert parsed.usage is not None
    assert parsed.usage.output_tokens_details.reasoning_tokens == 3  # a byte each


def test_calls_and_their_outputs_go_back_to_the_model(make_api: Any) -> None:
    api = make_api()
    items = [
        {"role": "user", "content": "1+1?"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "2"},
    ]
    assert api.post(PATH, {"input": items}).status_code == 200
    assert bytes(api.engine.seen[-1][0]).decode() == "[user]1+1?\n[assistant]\n[tool]2\n[assistant]"


def test_logprobs(make_api: Any) -> None:
    api = make_api(ScriptedEngine(b"ab"))
    body = {"top_logprobs": 2, "include": ["message.output_text.logprobs"]}
    part = api.post(PATH, {"input": "Hi", **body}).json()["output"][0]["content"][0]
    assert [(entry["token"], len(entry["top_logprobs"])) for entry in part["logprobs"]][:2] == [("a", 2), ("b", 2)]
    found = streamed(api, **body)
    assert [e["logprobs"][0]["token"] for e in found if e["type"] == "response.output_text.delta"] == ["a", "b"]


def test_a_form_is_passed_on(make_api: Any) -> None:
    api = make_api()
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert api.post(PATH, {"input": "Hi", "text": {"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True}}}).status_code == 200
    assert api.engine.seen[-1][1].structured_outputs.json == schema
    assert api.post(PATH, {"input": "Hi", "structured_outputs": {"choice": ["a", "b"]}}).status_code == 200
    assert api.engine.seen[-1][1].structured_outputs.choice == ["a", "b"]


def test_a_response_is_kept_followed_and_given_again(client: openai.OpenAI, server: Live) -> None:
    first = client.responses.create(model="tiny", input="Hi", instructions="Only now.")
    assert client.responses.retrieve(first.id).output_text == first.output_text
    second = client.responses.create(model="tiny", input="And?", previous_response_id=first.id)
    assert bytes(server.engine.seen[-1][0]).decode() == "[user]Hi\n[assistant]Grüße 🙂\n[user]And?\n[assistant]"
    third = client.responses.create(model="tiny", input="Then?", previous_response_id=second.id, store=False)
    assert bytes(server.engine.seen[-1][0]).decode().count("[user]") == 3
    for name in (third.id, "resp_no"):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(name)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="tiny", input="x", previous_response_id=third.id)


def test_a_streamed_response_is_kept(client: openai.OpenAI) -> None:
    last = list(client.responses.create(model="tiny", input="Hi", stream=True))[-1]
    assert last.type == "response.completed"
    assert client.responses.retrieve(last.response.id).output_text == "Grüße 🙂"


def test_in_the_background(client: openai.OpenAI, server: Live) -> None:
    server.hold(after=2)
    held = client.responses.create(model="tiny", input="Hi", background=True)
    assert (held.status, held.background) == ("queued", True)
    server.until(lambda: len(server.engine.active) == 1)
    assert client.responses.retrieve(held.id).status == "in_progress"
    with pytest.raises(openai.BadRequestError) as early:
        client.responses.create(model="tiny", input="x", previous_response_id=held.id)
    assert early.value.param == "previous_response_id"
    assert client.responses.cancel(held.id).status == "cancelled"
    server.until(lambda: not server.engine.active)
    assert client.responses.retrieve(held.id).status == "cancelled"
    going = client.responses.create(model="tiny", input="Hi", background=True)
    server.release()
    server.engine.hold = None
    deadline = time.monotonic() + 10
    while (found := client.responses.retrieve(going.id)).status != "completed":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert found.output_text == "Grüße 🙂"
    assert client.responses.cancel(going.id).status == "completed"
    server.until(lambda: server.state.load == 0)


def test_only_the_background_can_be_cancelled(client: openai.OpenAI) -> None:
    made = client.responses.create(model="tiny", input="Hi")
    with pytest.raises(openai.BadRequestError):
        client.responses.cancel(made.id)


def test_where_nothing_is_kept(make_api: Any) -> None:
    api = make_api()
    made = api.post(PATH, {"input": "Hi", "store": True}).json()
    assert made["store"] is False
    for response in (api.get(f"{PATH}/{made['id']}"), api.post(f"{PATH}/{made['id']}/cancel", None), api.post(PATH, {"input": "x", "previous_response_id": made["id"]})):
        assert "VLLM_ENABLE_RESPONSES_API_STORE=1" in error(response, 404, "response_not_found")["message"]
    error(api.post(PATH, {"input": "x", "background": True}), 400, param="background")


def test_a_failure_ends_the_stream_with_what_was_said(make_api: Any) -> None:
    api = make_api(enable_responses_api_store=True)
    api.engine.fail, api.engine.fail_after = StepError("broke"), 3
    last = streamed(api)[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["output"][0]["content"][0]["text"] == "Hel"
    assert last["response"]["error"] == {"code": "server_error", "message": "broke"}
    assert api.get(f"{PATH}/{last['response']['id']}").json()["status"] == "failed"
    api.engine.fail_after = 0
    error(api.post(PATH, {"input": "Hi", "stream": True}), 500, "step_failed")  # nothing was said yet


def test_leaving_a_stream_frees_the_request(server: Live, client: openai.OpenAI) -> None:
    server.hold(after=2)
    stream = client.responses.create(model="tiny", input="Hi", stream=True)
    next(iter(stream))
    assert len(server.engine.active) == 1
    stream.close()
    server.until(lambda: not server.engine.active)
    server.engine.hold = None


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:x"}]}]}, "input[0].content[0]"),
        ({"instructions": "Be kind.", "input": [{"role": "user", "content": "x"}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}]}, "input[1].arguments"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text"),
        ({"structured_outputs": {"json": 7}}, "structured_outputs"),
        ({"text": {"format": {"type": "json_schema", "name": "n", "schema": 7}}}, "text.format.schema"),
        ({"max_tokens": 3}, "max_tokens"),
        ({"guided_regex": "a"}, "guided_regex"),
        ({"bad_words": ["a"]}, "bad_words"),
        ({"n": 2}, "n"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": "data:x"}]}]}, "function_call_output.output"),
        ({"temperature": 3}, "temperature"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"conversation": "c"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"truncation": "auto"}, "truncation"),
        ({"background": True, "stream": True}, "background"),
        ({"text": {"verbosity": "low"}}, "text"),
        ({"text": {"format": {"type": "xml"}}}, "text.format"),
        ({"reasoning": {"mode": "pro"}}, "reasoning"),
        ({"include": ["everything"]}, "include[0]"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"tools": [TOOL]}, "tool_choice"),  # the model chooses, and no parser is there
        ({"tool_choice": "required"}, "tool_choice"),
    ],
)
def test_refusals(make_api: Any, fields: dict[str, Any], param: str) -> None:
    api = make_api()
    found = error(api.post(PATH, {"input": "Hi", **fields}), 400, param=param)
    assert not re.search("messages|response_format", found["message"])
    assert not api.engine.seen


def test_harmless_members_are_taken(api: Api) -> None:
    body = {
        "reasoning": {"summary": "auto"}, "text": {"verbosity": "medium"}, "include": ["reasoning.encrypted_content"], "truncation": "disabled",
        "stop": ["zz"], "service_tier": "auto", "user": "u", "prompt_cache_key": "k", "nobody_knows_this": 1, "stream_options": {"include_obfuscation": False},
        "n": 1, "skip_special_tokens": True,
    }  # fmt: skip
    assert api.post(PATH, {"input": "Hi", "seed": 5, "top_k": 2, **body}).status_code == 200
    params = api.engine.seen[-1][1]
    assert (params.stop, params.seed, params.top_k) == (["zz"], 5, 2)
