"""Group A, chats (A14): roles, content parts, templates that refuse, templates that are missing or hostile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cases.case_server import CaseServer, case_server
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer
from tests.server.api import error

# As in the templates of Gemma and Mistral.
STRICT = """
{%- if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- for m in messages %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}
{{- '<' + m.role + '>' + m.content | trim }}
{%- endfor %}"""
A, B = {"role": "user", "content": "a"}, {"role": "user", "content": "b"}
ANSWER = {"role": "assistant", "content": "x"}
SYSTEM = {"role": "system", "content": "Be brief."}


@contextmanager
def serve(template: str | None = None, **settings: Any) -> Iterator[CaseServer]:
    """A server whose model has `template`; chatml when that is None."""
    given = {} if template is None else {"template": template}
    model = ScriptedModel(scripted_tokenizer(**given))
    with case_server(*scripted_engine(model), **settings) as running:
        yield running
        running.check_alive()


@pytest.fixture(scope="module")
def server() -> Iterator[CaseServer]:
    with serve() as running:
        yield running


@pytest.fixture(scope="module")
def strict() -> Iterator[CaseServer]:
    with serve(STRICT) as running:
        yield running


def prompt_of(server: CaseServer, messages: list[dict[str, Any]], **body: Any) -> str:
    """The text that the model was given."""
    response = server.chat(messages=messages, return_token_ids=True, max_tokens=1, **body)
    assert response.status_code == 200, response.text
    found: str = response.json()["prompt_text"]
    return found


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([SYSTEM], "<|system|>Be brief.\n<|assistant|>"),
        ([SYSTEM, SYSTEM], "<|system|>Be brief.\n<|system|>Be brief.\n<|assistant|>"),
        ([A, B], "<|user|>a\n<|user|>b\n<|assistant|>"),
        ([ANSWER, A], "<|assistant|>x\n<|user|>a\n<|assistant|>"),
        ([{"role": "developer", "content": "d"}, A], "<|developer|>d\n<|user|>a\n<|assistant|>"),
    ],
    ids=["system only", "system twice", "user, user", "assistant first", "developer"],
)
def test_a14_orders_that_the_template_takes(server: CaseServer, messages: list[dict[str, Any]], expected: str) -> None:
    assert prompt_of(server, messages) == expected


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([SYSTEM], "System role not supported"),
        ([SYSTEM, A], "System role not supported"),
        ([A, B], "Conversation roles must alternate"),
        ([ANSWER, A], "Conversation roles must alternate"),
    ],
)
def test_a14_a_template_that_refuses_is_quoted(strict: CaseServer, messages: list[Any], said: str, stream: bool) -> None:
    found = error(strict.chat(messages=messages, stream=stream), 400, reason="chat_template_error", param="messages")
    assert said in found["message"]
    assert prompt_of(strict, [{"role": "user", "content": "  a  "}]) == "<user>a"


@pytest.mark.parametrize("role", ["wizard", "", None, 7, ["user"]])
def test_a14_unknown_roles_name_the_message(server: CaseServer, role: object) -> None:
    found = error(server.chat(messages=[A, {"role": role, "content": "x"}]), 400)
    assert "messages[1].role" in found["message"]


def test_a14_text_parts_are_joined_in_order(server: CaseServer) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert prompt_of(server, [{"role": "user", "content": parts}]) == "<|user|>a\nb\n<|assistant|>"


@pytest.mark.parametrize("content", [[], None])
def test_a14_no_content_is_the_empty_text(server: CaseServer, content: object) -> None:
    assert prompt_of(server, [{"role": "user", "content": content}]) == "<|user|>\n<|assistant|>"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "text only, no images"),
        ({"type": "txet", "text": "a"}, "'txet', expected text"),
        ({"type": "text"}, "messages[0].content[1].text"),
        (7, "messages[0].content[1]"),
    ],
)
def test_a14_parts_that_are_no_text_name_their_place(server: CaseServer, part: object, said: str) -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "a"}, part]}]
    found = error(server.chat(messages=messages), 400)
    assert said in found["message"]
    assert "messages[0].content[1]" in found["message"]


def test_a14_a_model_without_a_template_says_how_to_supply_one(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(scripted_tokenizer(template=None))
    with case_server(*scripted_engine(model)) as running:
        found = error(running.chat(), 400, reason="chat_template_missing")
        assert "--chat-template" in found["message"]
        running.check_alive()


def test_a14_a_template_in_a_file_of_its_own_is_found() -> None:
    model = ScriptedModel(scripted_tokenizer(template=None, sidecar="SIDECAR {{ messages[0].content }}"))
    with case_server(*scripted_engine(model)) as running:
        assert prompt_of(running, [A]) == "SIDECAR a"


ESCAPES = (
    "{{ cycler.__init__.__globals__ }}",
    "{{ messages.__class__.__mro__ }}",
    "{{ ''.join.__self__.__class__ }}",
    "{{ messages | attr('__class__') }}",
    "{{ 'x' * 10000000000 }}",
    "{{ 9 ** 9999999 }}",
    "{% for i in range(100000000) %}x{% endfor %}",
    "{{ '%2000000000d' | format(1) }}",
    "{{ 'x' | center(3000000000) }}",
    "{{ '{:>3000000000}'.format(1) }}",
    "{{ ('x' * 60000000).replace('x', 'y' * 60000) | length }}",
    "{{ 'x'.ljust(3000000000) }}",
    "{% set ns = namespace(t='x') %}{% for i in range(64) %}{% set ns.t = ns.t + ns.t %}{% endfor %}{{ ns.t | length }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
)


@pytest.mark.parametrize("template", ESCAPES[:4])
def test_a14_templates_see_no_insides_of_python(template: str) -> None:
    with serve(template) as running:
        response = running.chat()
        assert "__globals__" not in response.text
        assert "<class" not in response.text
        if response.status_code != 200:  # an undefined name may also render as nothing
            error(response, 400)


@pytest.mark.parametrize("template", ESCAPES)
def test_a14_templates_of_requests_only_when_trusted_and_never_beyond_bounds(server: CaseServer, template: str) -> None:
    error(server.chat(chat_template=template), 400, reason="chat_template_untrusted", param="chat_template")


def test_a14_loop_controls_and_trim_are_there() -> None:
    template = "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{{ m.content | trim }}{% break %}{% endfor %}"
    with serve(template) as running:
        assert prompt_of(running, [SYSTEM, {"role": "user", "content": " a "}, B]) == "a"
