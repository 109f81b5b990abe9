"""Chat templates of requests: they work like the model's own, and what they use up harms nobody."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from headway.errors import QueueFullError, RequestError
from headway.server import foreign_template
from headway.server.foreign_template import render_foreign
from tests.cases.case_server import case_server
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer
from tests.server.api import error

USER = [{"role": "user", "content": "a 🙂"}]
ASKED: dict[str, Any] = {"messages": USER, "special_tokens": {"eos_token": "</s>"}}
TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}{% endfor %}{{ extra }}"
# Each took seconds and gigabytes in the server's own process.
GREEDY = (
    "{{ 'x' | center(3000000000) }}",
    "{{ 'x'.ljust(3000000000) }}",
    "{% set ns = namespace(t='x') %}{% for i in range(64) %}{% set ns.t = ns.t + ns.t %}{% endfor %}{{ ns.t | length }}",
)


def test_it_renders_as_here() -> None:
    text = render_foreign(30, template=TEMPLATE, variables={"extra": "é"}, **ASKED)
    assert text == "[user] a 🙂</s>é"


def test_what_the_template_raises_comes_through() -> None:
    for template, said in (("{{ raise_exception('no such role') }}", "no such role"), ("{% if %}", "cannot be compiled")):
        with pytest.raises(RequestError, match=said) as found:
            render_foreign(30, template=template, **ASKED)
        assert (found.value.reason, found.value.param) == ("chat_template_error", "messages")


@pytest.mark.parametrize("template", GREEDY)
def test_memory_is_bounded(template: str) -> None:
    with pytest.raises(RequestError) as found:
        render_foreign(60, 256 << 20, template=template, **ASKED)
    assert found.value.reason == "chat_template_error"


def test_time_is_bounded() -> None:
    slow = "{% for i in range(1000) %}{% for j in range(900) %}{% set x = (messages | string) * 900 %}{% endfor %}{% endfor %}"
    with pytest.raises(RequestError, match=r"was not done after 0.5 s") as found:
        render_foreign(0.5, template=slow, **ASKED)
    assert found.value.reason == "chat_template_error"


def test_two_at_once_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    inside: list[type[BaseException] | None] = []

    def run(*args: Any, **kwargs: Any) -> subprocess.CompletedProcess[str]:
        if len(inside) < 2:
            inside.append(None)
            with pytest.raises(QueueFullError) if len(inside) == 2 else _nothing():
                render_foreign(1, template="", **ASKED)
        return subprocess.CompletedProcess(args, 0, '{"text": "done"}', "")

    monkeypatch.setattr(foreign_template.subprocess, "run", run)
    assert render_foreign(1, template="", **ASKED) == "done"
    assert len(inside) == 2
    assert render_foreign(1, template="", **ASKED) == "done"  # there is room again


class _nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_over_http_only_when_trusted() -> None:
    with case_server(*scripted_engine(ScriptedModel(scripted_tokenizer())), trust_request_chat_template=True) as server:
        answer = server.chat(messages=USER, chat_template=TEMPLATE, chat_template_kwargs={"extra": "!"}, return_token_ids=True).json()
        assert answer["prompt_text"] == "[user] a 🙂<eos>!"
        tokens = server.post("/tokenize", {"messages": USER, "chat_template": "{{ messages[0].role }}"}).json()["tokens"]
        assert len(tokens) == 4
        error(server.chat(messages=USER, chat_template="{{ 'x'.ljust(3000000000) }}"), 400, "chat_template_error")
        server.check_alive()
