"""Reasoning is told apart from the answer, and calls inside it are none."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.errors import ConfigError
from headway.server.answer_parts import AnswerPlan
from headway.server.reasoning.parsers import reasoning_parser
from headway.server.reasoning.thoughts import thoughts
from tests.server.tools.reads import calls_of, events, raise_on_error, reader
from tests.server.tools.test_pieces import TEXTS, cut


@pytest.mark.parametrize(
    ("parser", "are_open", "text", "reasoning", "content"),
    [
        ("think", False, "<think>\nhm\n</think>\n\nYes", "\nhm\n", "\n\nYes"),
        ("think", False, "\n<think>hm</think>Yes", "hm", "Yes"),
        ("think", False, "Yes <think>no</think>", "", "Yes <think>no</think>"),
        ("deepseek_r1", True, "hm</think>Yes", "hm", "Yes"),
        ("deepseek_r1", True, "<think>hm</think>Yes", "hm", "Yes"),
        ("qwen3", True, "never done", "never done", ""),
        ("qwen3", False, "Yes", "", "Yes"),
        ("granite", False, "Here's my thought process: hm. Here is my response: Yes", " hm. ", " Yes"),
        ("mistral", False, "[THINK]hm[/THINK]Yes", "hm", "Yes"),
    ],
)
def test_reasoning_and_content(parser: str, are_open: bool, text: str, reasoning: str, content: str) -> None:
    said = AnswerPlan(thoughts=partial(thoughts, reasoning_parser(parser), are_open)).whole(text, "stop")
    assert (said.reasoning, said.text) == (reasoning, content)
    hidden = AnswerPlan(thoughts=partial(thoughts, reasoning_parser(parser), are_open), shows_reasoning=False).whole(text, "stop")
    assert (hidden.reasoning, hidden.text) == ("", content)


def test_a_call_inside_reasoning_is_none() -> None:
    call = '<tool_call>{"name": "%s"}</tool_call>'
    plan = AnswerPlan(thoughts=partial(thoughts, reasoning_parser("qwen3"), True), calls=reader("hermes"))
    said = plan.whole(f"maybe {call % 'a'}</think>\n\n{call % 'b'}", "stop")
    assert (said.reasoning, said.text, calls_of(said)) == (f"maybe {call % 'a'}", "", [("b", "{}")])


@given(text=TEXTS, marks=st.tuples(st.booleans(), st.booleans()), places=st.lists(st.integers(0, 120), max_size=12))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pieces_do_not_matter(text: str, marks: tuple[bool, bool], places: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    raise_on_error(monkeypatch)
    text = f"{'<think>' if marks[0] else ''}{text[:9]}{'</think>' if marks[1] else ''}{text[9:]}"
    for are_open in (False, True):
        read = partial(thoughts, reasoning_parser("think"), are_open)
        at_once = events(read, [text])
        assert "".join(e.raw for e in at_once) == text
        assert events(read, cut(text, places)) == events(read, text) == at_once


def test_when_a_model_thinks() -> None:
    qwen = reasoning_parser("qwen3")
    assert [qwen.thoughts_are_open(p) for p in ("<|im_start|>assistant\n<think>\n", "<think>\n\n</think>\n\n", "assistant\n")] == [True, False, None]
    cases: list[tuple[dict[str, Any], bool]] = [({}, True), ({"enable_thinking": False}, False)]
    assert [qwen.expects_thoughts(variables) for variables, _ in cases] == [expected for _, expected in cases]
    assert not reasoning_parser("granite").expects_thoughts({})
    assert reasoning_parser("granite").expects_thoughts({"thinking": True})
    with pytest.raises(ConfigError) as found:
        reasoning_parser("nope")
    assert found.value.reason == "unknown_reasoning_parser"
