"""Answers with a form over HTTP: real sockets, a real engine with real grammars, a model that says bytes of its own choice."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema_rs
import openai
import pytest

from headway.errors import RequestError
from headway.server.asked_form import asked_form
from headway.wire.chat import ChatBody
from tests.cases.case_server import CaseServer, case_server
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer
from tests.server.api import CHAT, COMPLETIONS, error

SCHEMA = {
    "type": "object", "required": ["name", "age"], "additionalProperties": False,
    "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer", "minimum": 0, "maximum": 130}},
}  # fmt: skip
FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}
WILD = {"temperature": 1.5, "seed": 7, "max_tokens": 200}


@pytest.fixture(scope="module")
def server() -> Iterator[CaseServer]:
    model = ScriptedModel(scripted_tokenizer())
    model.say_bytes(b"as free as it likes")
    with case_server(*scripted_engine(model)) as running:
        yield running


def text_of(response: Any) -> str:
    assert response.status_code == 200, response.text
    choice = response.json()["choices"][0]
    assert choice["finish_reason"] == "stop"
    return str(choice["message"]["content"] if "message" in choice else choice["text"])


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        ({"structured_outputs": {"choice": ["alpha", "omega"]}}, "alpha|omega"),
        ({"structured_outputs": {"regex": "[0-9]{3}-[a-f]{2}"}}, "[0-9]{3}-[a-f]{2}"),
        ({"structured_outputs": {"grammar": 'root ::= "x" | "y" root'}}, "y*x"),
        ({"structured_outputs": {"json": {"enum": ["one"]}}}, '"one"'),
        ({"guided_regex": "b{3}"}, "bbb"),
        ({"guided_choice": ["u", "v"]}, "u|v"),
        ({"guided_json": '{"const": 5}'}, "5"),
        ({"guided_grammar": 'root ::= "w"'}, "w"),
        ({"response_format": {"type": "structural_tag", "format": {"type": "const_string", "value": "tag"}}}, "tag"),
        ({"response_format": {"type": "text"}}, "as free as it likes"),
    ],
)  # fmt: skip
def test_every_spelling_on_both_surfaces(server: CaseServer, form: dict[str, Any], pattern: str) -> None:
    own = {} if "free" in pattern else WILD
    assert re.fullmatch(pattern, text_of(server.chat(**{**own, **form})))
    assert re.fullmatch(pattern, text_of(server.complete(**{**own, **form})))


def test_a_schema_streamed_and_whole(server: CaseServer) -> None:
    whole = text_of(server.chat(response_format=FORMAT, **WILD))
    assert jsonschema_rs.is_valid(SCHEMA, json.loads(whole))
    chunks = server.chunks(CHAT, response_format=FORMAT, **WILD)
    assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"]) == whole


def test_the_official_sdk(server: CaseServer) -> None:
    client = openai.OpenAI(base_url=f"{server.live.url}/v1", api_key="x", max_retries=0)
    talk: list[Any] = [{"role": "user", "content": "Hi"}]
    answer = client.chat.completions.create(model="tiny", messages=talk, response_format=FORMAT, **WILD)  # type: ignore[call-overload]
    assert jsonschema_rs.is_valid(SCHEMA, json.loads(answer.choices[0].message.content))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"structured_outputs": {"regex": "("}}, "structured_outputs_invalid"),
        ({"structured_outputs": {"json": "{not json"}}, "structured_outputs_invalid"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs_invalid"),
        ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs_invalid"),
        ({"structured_outputs": {"regex": "a"}, "guided_regex": "b"}, "invalid_request"),
        ({"structured_outputs": {"regex": "a"}, "use_beam_search": True, "n": 2}, "invalid_request"),
        ({"structured_outputs": "regex"}, "body_invalid"),
        ({"response_format": {"type": "json_schema"}}, "body_invalid"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "body_invalid"),
        ({"response_format": {"type": "nope"}}, "body_invalid"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "strnig"}}}}, "structured_outputs_invalid"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"uniqueItems": True}}}}, "structured_outputs_unsupported"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_forms_that_cannot_be_had_are_refused(server: CaseServer, fields: dict[str, Any], reason: str, stream: bool) -> None:
    for path, asked in ((CHAT, {"messages": [{"role": "user", "content": "Hi"}]}), (COMPLETIONS, {"prompt": "Hi"})):
        error(server.post(path, {**asked, **fields, "stream": stream and "use_beam_search" not in fields}), 400, reason)
    server.check_alive()


def test_the_field_that_was_sent_is_named() -> None:
    with pytest.raises(RequestError, match=r"^guided_regex: regex must be") as refused:
        asked_form(ChatBody(messages=[{"role": "user", "content": "Hi"}], guided_regex=""))  # type: ignore[list-item]
    assert refused.value.param == "guided_regex"


def test_faults_that_the_compiler_finds_name_the_field_that_was_sent(server: CaseServer) -> None:
    schema = {"type": "strnig"}
    for param, field in (("response_format", {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}), ("guided_json", schema)):
        found = error(server.post(CHAT, {"messages": [{"role": "user", "content": "Hi"}], param: field}), 400, "structured_outputs_invalid")
        assert found["param"] == param
        assert found["message"].startswith(f"{param}: ")


def test_a_form_that_other_limits_lead_nowhere_is_an_error(server: CaseServer) -> None:
    error(server.complete(structured_outputs={"choice": ["ab"]}, allowed_token_ids=[ord("x")]), 400, "structured_outputs_invalid")
    response = server.complete(structured_outputs={"regex": "[a-z]b"}, bad_words=["b"])
    assert response.status_code == 500, response.text
    assert "structured_outputs_failed" in response.text


def test_others_go_on_while_a_grammar_is_compiled(server: CaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when its client has left meanwhile."""
    forms = server.engine.loaded.forms
    compile_one, begun, gate = forms._compile, threading.Event(), threading.Event()

    def held(constraint: Any, blanks: bool) -> Any:
        begun.set()
        gate.wait(20)
        return compile_one(constraint, blanks)

    monkeypatch.setattr(forms, "_compile", held)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(server.complete, structured_outputs={"choice": ["late"]}) for _ in range(2)]
        assert begun.wait(10)
        assert text_of(server.complete()) == "as free as it likes"
        gate.set()
        assert [text_of(each.result()) for each in both] == ["late", "late"]
    server.check_alive()


def test_one_in_five_has_a_form(server: CaseServer) -> None:
    def ask(i: int) -> str:
        return text_of(server.complete(**({"structured_outputs": {"json": SCHEMA}, **WILD, "seed": i} if i % 5 == 0 else {})))

    with ThreadPoolExecutor(10) as pool:
        texts = list(pool.map(ask, range(20)))
    for i, text in enumerate(texts):
        assert jsonschema_rs.is_valid(SCHEMA, json.loads(text)) if i % 5 == 0 else text == "as free as it likes"
    server.check_alive()
