from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import jinja2
import pytest

from headway.artifacts import chat_template
from headway.artifacts.chat_template import compile_chat_template, render_chat_template
from headway.artifacts.tokenizer import Tokenizer, load_tokenizer
from headway.errors import RequestError
from tests.artifacts.trained_tokenizers import save

TURNS = """{% for message in messages %}
    {%- if loop.first and message.role != 'system' %}
        {{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}
    {%- endif %}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
HEADERS = """{{- bos_token }}
{%- set ns = namespace(system='', tools_shown=false) %}
{%- if messages[0]['role'] == 'system' %}
    {%- set ns.system = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- endif %}
{{- "<|start|>system<|end|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Tools: " + (tools | length | string) + "\\n" }}
    {%- for tool in tools %}{{ tool | tojson(indent=4) + "\\n" }}{% endfor %}
{%- endif %}
{{- ns.system }}<|eot|>
{%- for message in messages %}
    {%- if message.role == 'skip' %}{% continue %}{% endif %}
    {%- if 'tool_calls' in message %}
        {{- message.tool_calls[0].function | tojson }}
    {%- else %}
        {{- '<|start|>' + message['role'] + '<|end|>\\n\\n' + message['content'] | trim + '<|eot|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start|>assistant<|end|>\\n\\n' }}{% endif %}"""
NO_SYSTEM = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{% endif %}
{% if message['role'] == 'assistant' %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}
{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
{% endfor %}
{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""
ALTERNATE = """{{ bos_token }}
{%- for message in messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('After the optional system message, roles must alternate') }}
    {%- endif %}
    {%- if message['role'] == 'user' %}{{ ' [INST] ' + message['content'] + ' [/INST]' }}
    {%- else %}{% generation %}{{ ' ' + message['content'] + eos_token }}{% endgeneration %}
    {%- endif %}
{%- endfor %}"""
PARTS = """{%- macro text(content) %}
{%- if content is string %}{{ content }}{% else %}{% for part in content if part.type == 'text' %}{{ part.text }}{% endfor %}{% endif %}
{%- endmacro %}
{%- for message in messages %}{{ message.role }}: {{ text(message.content) }}{{ eos_token }}
{% endfor %}{{ documents | map(attribute='title') | join(',') if documents else '' }}{{ custom | default('none') }}"""
INDENTED = """{% for message in messages %}
    {% if message.role == 'user' %}
        U: {{ message.content }}
    {% else %}
        A: {{ message.thinking }}|{{ message.reasoning_content }}|{{ message.reasoning }}|{{ message.content }}
    {% endif %}
{% endfor %}
"""
TEMPLATES = {"indented": INDENTED, "turns": TURNS, "headers": HEADERS, "no_system": NO_SYSTEM, "alternate": ALTERNATE, "parts": PARTS}

USER = {"role": "user", "content": "Hi  there, what is  2 < 3 & 'x'? "}
ANSWER = {"role": "assistant", "content": " It is true.  "}
SYSTEM = {"role": "system", "content": " Be brief.\n"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"ü": {"type": "string"}}, "type": "object"}}}
CHATS: dict[str, list[dict[str, Any]]] = {
    "user": [USER],
    "system": [SYSTEM, USER],
    "turns": [USER, ANSWER, {"role": "user", "content": "中文 <b>🙂</b>"}],
    "ends with assistant": [USER, ANSWER],
    "nulls": [USER, {**ANSWER, "tool_calls": None, "name": None}],
    "reasoning": [USER, {**ANSWER, "reasoning": "because"}],
    "thinking": [USER, {**ANSWER, "thinking": "because"}],
}


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    return load_tokenizer(save("llama", tmp_path))


def theirs(tokenizer: Tokenizer, template: str, chat: list[dict[str, Any]], **kwargs: Any) -> str:
    rendered: str = tokenizer.hf().apply_chat_template(chat, chat_template=template, tokenize=False, **kwargs)
    return rendered


@pytest.mark.parametrize("generation_prompt", [True, False])
@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize("name", TEMPLATES)
def test_same_text_as_transformers(name: str, chat: str, generation_prompt: bool, tokenizer: Tokenizer) -> None:
    template, messages = TEMPLATES[name], CHATS[chat]
    refusal = ""
    try:
        expected = theirs(tokenizer, template, messages, add_generation_prompt=generation_prompt)
    except jinja2.TemplateError as error:
        refusal = str(error)
    if refusal:
        with pytest.raises(RequestError, match=re.escape(refusal)) as raised:
            tokenizer.render_chat(messages, chat_template=template, add_generation_prompt=generation_prompt)
        assert raised.value.reason == "chat_template_error"
    else:
        assert tokenizer.render_chat(messages, chat_template=template, add_generation_prompt=generation_prompt) == expected


def test_templates_that_refuse_are_among_those_compared(tokenizer: Tokenizer) -> None:
    for name, chat, message in (("no_system", "system", "System role not supported"), ("alternate", "system", "roles must alternate")):
        with pytest.raises(RequestError, match=message):
            tokenizer.render_chat(CHATS[chat], chat_template=TEMPLATES[name])


def test_tools_documents_and_variables_reach_the_template(tokenizer: Tokenizer) -> None:
    call = {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"a": [1, None, True, "é"]}}}]}
    chat = [SYSTEM, USER, {"role": "skip", "content": "never"}, call]
    expected = theirs(tokenizer, HEADERS, chat, tools=[TOOL, TOOL])
    assert "never" not in expected
    assert tokenizer.render_chat(chat, chat_template=HEADERS, tools=[TOOL, TOOL], add_generation_prompt=False) == expected
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}]
    documents = [{"title": "one", "text": "x"}, {"title": "two", "text": "y"}]
    expected = theirs(tokenizer, PARTS, parts, documents=documents, custom="c", eos_token="END")
    assert expected == "user: abEND\none,twoc"
    rendered = tokenizer.render_chat(parts, chat_template=PARTS, documents=documents, custom="c", eos_token="END", add_generation_prompt=False)
    assert rendered == expected


@pytest.mark.parametrize("content", ["go on", "go on ", " go on\n", "", "x" * 100, [{"type": "text", "text": "first"}, {"type": "text", "text": "last "}]])
@pytest.mark.parametrize("name", TEMPLATES)
def test_continuing_the_final_message_is_as_in_transformers(name: str, content: Any, tokenizer: Tokenizer) -> None:
    chat = [USER, {"role": "assistant", "content": content}]
    before = json.dumps(chat)
    arguments = {"add_generation_prompt": False, "continue_final_message": True}
    try:
        expected = theirs(tokenizer, TEMPLATES[name], chat, **arguments)
    except (ValueError, TypeError, jinja2.TemplateError):
        with pytest.raises(RequestError):
            tokenizer.render_chat(chat, chat_template=TEMPLATES[name], **arguments)
    else:
        assert tokenizer.render_chat(chat, chat_template=TEMPLATES[name], **arguments) == expected
    assert json.dumps(chat) == before


def test_the_final_message_stays_open(tokenizer: Tokenizer) -> None:
    chat = [USER, {"role": "assistant", "content": "The answer is "}]
    arguments = {"add_generation_prompt": False, "continue_final_message": True}
    assert tokenizer.render_chat(chat, chat_template=TURNS, **arguments).endswith("assistant\nThe answer is ")
    assert tokenizer.render_chat(chat, chat_template=HEADERS, **arguments).endswith("<|end|>\n\nThe answer is")


@pytest.mark.parametrize(
    ("chat", "template", "arguments"),
    [
        ([USER, ANSWER], TURNS, {"add_generation_prompt": True}),
        ([USER, {"role": "assistant"}], TURNS, {}),
        ([USER, {"role": "assistant", "content": [{"type": "image"}]}], PARTS, {}),
        ([USER, ANSWER], "{{ messages[0].role }}", {}),
        ([USER, ANSWER], "{{ messages[0].content }}", {}),
        ([USER, ANSWER], "{{ messages[-1].content[2:] }}", {}),
    ],
)
def test_what_cannot_be_continued_names_the_parameter(
    chat: list[dict[str, Any]], template: str, arguments: dict[str, Any], tokenizer: Tokenizer
) -> None:
    arguments = {"add_generation_prompt": False, "continue_final_message": True, **arguments}
    with pytest.raises(RequestError, match="continue_final_message") as raised:
        tokenizer.render_chat(chat, chat_template=template, **arguments)
    assert raised.value.param == "continue_final_message"


# --- which template


def test_template_comes_from_the_config_a_list_or_a_file(tmp_path: Path) -> None:
    def rendered(folder: Path, **arguments: Any) -> str:
        return load_tokenizer(save("llama", folder, **arguments)).render_chat([USER])

    assert rendered(tmp_path / "a", chat_template="one") == "one"
    named = [{"name": "default", "template": "list"}, {"name": "tool_use", "template": "tools"}]
    assert rendered(tmp_path / "b", chat_template=named) == "list"
    with_tools = load_tokenizer(save("llama", tmp_path / "b", chat_template=named))
    assert with_tools.render_chat([USER], tools=[TOOL]) == "tools"
    assert with_tools.render_chat([USER], chat_template="tool_use") == "tools"
    assert with_tools.hf().apply_chat_template([USER], tools=[TOOL], tokenize=False) == "tools"
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "chat_template.jinja").write_text("sidecar")
    assert rendered(tmp_path / "c", chat_template="config") == "sidecar"
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "chat_template.json").write_text('{"chat_template": "older sidecar"}')
    assert rendered(tmp_path / "d") == "older sidecar"
    assert rendered(tmp_path / "d", chat_template="config") == "config"
    (tmp_path / "e" / "additional_chat_templates").mkdir(parents=True)
    (tmp_path / "e" / "additional_chat_templates" / "rag.jinja").write_text("rag")
    (tmp_path / "e" / "chat_template.jinja").write_text("plain")
    several = load_tokenizer(save("llama", tmp_path / "e"))
    assert (several.render_chat([USER]), several.render_chat([USER], chat_template="rag")) == ("plain", "rag")
    assert several.hf().apply_chat_template([USER], chat_template="rag", tokenize=False) == "rag"


def test_without_a_template_the_request_is_refused_with_the_way_out(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(save("llama", tmp_path))
    assert tokenizer.chat_template is None
    with pytest.raises(RequestError, match=r"chat template.*--chat-template") as raised:
        tokenizer.render_chat([USER])
    assert raised.value.reason == "chat_template_missing"
    only_named = load_tokenizer(save("llama", tmp_path, chat_template=[{"name": "rag", "template": "x"}]))
    with pytest.raises(RequestError, match="rag") as raised:
        only_named.render_chat([USER])
    assert raised.value.reason == "chat_template_missing"


# --- templates and messages from outside


@pytest.mark.parametrize(
    "template",
    [
        "{{ cycler.__init__.__globals__ }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.__class__.__base__.__subclasses__() }}",
        "{{ (messages | map(attribute='__class__') | list)[0].__mro__ }}",
        "{{ raise_exception.__globals__.keys() }}",
        "{{ namespace.__init__.__globals__.keys() }}",
        "{{ dict.__call__.__func__.__globals__.keys() }}",
        "{{ ('{0.__class__.__mro__}').format(messages) }}{{ ''.__class__.mro() }}",
        "{{ self._TemplateReference__context.environment.__class__.__init__.__globals__ }}",
        "{% set ns = namespace(__class__=1) %}",
        "{% set ns = namespace() %}{% set ns.__class__ = 1 %}",
        "{{ messages.append(1) }}",
        "{% set _ = messages[0].update({'role': 'x'}) %}",
        "{% for i in range(10000000) %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro m(n) %}{% for i in range(n) %}{{ i }}{% endfor %}{% endmacro %}{% for i in range(999) %}{{ m(99999) }}{% endfor %}",
        "{{ 'a' * 1000000000000 }}",
        "{{ [1] * 1000000000000 }}",
        "{{ 9 ** 99999999 }}",
        "{% include '/etc/passwd' %}",
        "{{ undefined_function() }}",
        "{{ messages[0].content + 1 }}",
        "{{ 1 / 0 }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    ],
)
def test_attacks_and_faults_end_as_a_request_error(template: str) -> None:
    messages = [dict(USER)]
    with pytest.raises(RequestError) as raised:
        render_chat_template(template, messages, special_tokens={})
    assert raised.value.reason == "chat_template_error"
    assert messages == [USER]


def test_a_dunder_alone_shows_nothing() -> None:
    assert render_chat_template("[{{ ''.__class__ }}]", [USER], special_tokens={}) == "[]"


@pytest.mark.parametrize("template", ["{% if %}", "{{ x", "{% endfor %}", "{{ 1 | nofilter }}", "{{ " + "(" * 5000 + " }}"])
def test_a_template_that_does_not_compile_is_refused(template: str) -> None:
    with pytest.raises(RequestError, match="cannot be compiled") as raised:
        render_chat_template(template, [USER], special_tokens={})
    assert raised.value.reason == "chat_template_error"


def test_output_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    template = "{% for i in range(100) %}{{ 'x' * 10 }}{% endfor %}"
    monkeypatch.setattr(chat_template, "MAX_RENDERED_CHARS", 1000)
    assert len(render_chat_template(template, [USER], special_tokens={})) == 1000
    monkeypatch.setattr(chat_template, "MAX_RENDERED_CHARS", 999)
    with pytest.raises(RequestError, match="more than 999 characters"):
        render_chat_template(template, [USER], special_tokens={})


def test_template_size_is_bounded() -> None:
    with pytest.raises(RequestError, match="the limit is"):
        compile_chat_template(" " * (chat_template.MAX_TEMPLATE_CHARS + 1))


def test_a_template_is_compiled_once() -> None:
    assert compile_chat_template("{{ 1 }}{# once #}") is compile_chat_template("{{ 1 }}{# once #}")


def test_messages_are_plain_data_for_the_template() -> None:
    class Role(StrEnum):
        USER = "user"

        def secret(self) -> str:
            return "secret"

    with pytest.raises(RequestError):
        render_chat_template("{{ messages[0].role.secret() }}", [{"role": Role.USER}], special_tokens={})
    with pytest.raises(RequestError, match="only JSON values, found object"):
        render_chat_template("x", [{"role": object()}], special_tokens={})
    with pytest.raises(RequestError, match=r"messages\[1\] must be an object"):
        render_chat_template("x", [USER, "text"], special_tokens={})  # type: ignore[list-item]
    with pytest.raises(RequestError, match="at least one message"):
        render_chat_template("x", [], special_tokens={})
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(RequestError, match="nested deeper"):
        render_chat_template("x", [{"role": "user", "content": deep}], special_tokens={})


def test_arguments_win_over_special_tokens_but_not_over_messages() -> None:
    rendered = render_chat_template(
        "{{ bos_token }}{{ messages[0].role }}{{ self is defined }}", [USER], special_tokens={"bos_token": "<s>"},
        variables={"bos_token": "B", "messages": [], "self": 1},
    )  # fmt: skip
    assert rendered == "BuserTrue"


def test_the_date_is_available() -> None:
    assert len(render_chat_template("{{ strftime_now('%Y-%m-%d') }}", [USER], special_tokens={})) == 10
