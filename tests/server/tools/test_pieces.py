"""However an answer is cut into pieces, the same is found in it; and whatever a model writes, nothing of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.server.answer_parts import AnswerPlan
from headway.server.answer_text.events import CallArguments, CallEnds, Content
from tests.server.tools.reads import calls_of, events, raise_on_error, reader, whole
from tests.server.tools.test_formats import BROKEN, CALLS, CODER, CUT_OFF, JSON_CALL

PARSERS = ["hermes", "qwen3_coder", "llama3_json", "mistral", "granite", "phi4_mini_json", "pythonic", "required", "named"]
FRAGMENTS = [
    "<tool_call>", "</tool_call>", "<|tool_call|>", "[TOOL_CALLS]", "[ARGS]", "functools", "<|python_tag|>", "<function=f>", "<function=", "<parameter=city>",
    "<parameter=days>", "</parameter>", "</function>", "{", "}", "[", "]", "(", ")", ":", ",", '"', "'", "\\", "\n", "  ", "=", ">", "<", "name", '"name": "f"',
    '"arguments": ', '{"city": "O"}', "f(city='O')", "[f(", "1", "-0.5e3", "01", "null", "tru", "\\u00e", "é🙂", "text", "<tool", "[TOOL_", *(t for _, t in BROKEN), *(t for _, t, _ in CUT_OFF),
    CALLS, JSON_CALL, CODER % "x",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=9).map("".join)


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    raise_on_error(monkeypatch)


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({min(p, len(text)) for p in places} | {len(text)})
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def said_in_a_stream(name: str, pieces: list[str]) -> tuple[str, list[tuple[str, str]], str | None]:
    stream = AnswerPlan(calls=reader(name)).reader()
    deltas = [stream.read(piece, None) for piece in pieces] + [stream.read("", "stop")]
    calls: dict[int, tuple[str, str]] = {}
    for part in (part for delta in deltas for part in delta.calls):
        known = calls.get(part.index, ("", ""))
        calls[part.index] = (known[0] + part.name, known[1] + part.arguments)
    return "".join(delta.text for delta in deltas), [calls[index] for index in sorted(calls)], deltas[-1].finish


def said_at_once(name: str, text: str) -> tuple[str, list[tuple[str, str]], str | None]:
    said = whole(name, text)
    return said.text, calls_of(said), said.finish


@pytest.mark.parametrize("name", PARSERS)
@given(text=TEXTS, places=st.lists(st.integers(0, 120), max_size=12))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pieces_do_not_matter(name: str, text: str, places: list[int]) -> None:
    at_once = events(reader(name), [text])
    assert "".join(event.raw for event in at_once) == text
    assert events(reader(name), cut(text, places)) == at_once
    assert events(reader(name), text) == at_once  # character by character
    if all(event.complete or event.cut_off for event in at_once if isinstance(event, CallEnds)):
        assert said_in_a_stream(name, cut(text, places)) == said_at_once(name, text)


@pytest.mark.parametrize("blanks", [5, 255, 256, 257, 300])
def test_blanks_in_front_of_a_call(blanks: int) -> None:
    text = " " * blanks + f"<tool_call>{JSON_CALL}</tool_call>"
    assert events(reader("hermes"), text) == events(reader("hermes"), [text])
    assert whole("hermes", text).text == ("" if blanks <= 256 else " " * blanks)


def test_arguments_and_content_come_as_they_are_written() -> None:
    plan = AnswerPlan(calls=reader("hermes"))
    stream = plan.reader()
    text = f"Well: <tool_call>{JSON_CALL}</tool_call>"
    deltas = [stream.read(c, "stop" if i == len(text) - 1 else None) for i, c in enumerate(text)]
    assert [d.text for d in deltas if d.text] == list("Well: ")
    assert [c.arguments for d in deltas for c in d.calls] == ["{", *'"city": "Oslo"}']
    first, *others = [c for d in deltas for c in d.calls]
    assert first.name == "get_weather"
    assert first.id.startswith("chatcmpl-tool-")
    assert {(c.index, c.id, c.name) for c in others} == {(0, "", "")}
    assert deltas[-1].finish == "tool_calls"


@pytest.mark.parametrize("name", ["qwen3_coder", "hermes"])
def test_long_texts_in_arguments_are_not_held_back(name: str) -> None:
    begin = {"qwen3_coder": "<function=f><parameter=code>", "hermes": '<tool_call>{"name": "f", "arguments": {"code": "'}[name]
    found = events(reader(name), [begin, "line of code", " and another"])
    written = "".join(e.text for e in found if isinstance(e, CallArguments))
    assert written.endswith("line of code and another")


def test_a_call_that_breaks_off_in_a_stream_leaves_the_rest_as_content() -> None:
    stream = AnswerPlan(calls=reader("hermes")).reader()
    deltas = [stream.read(p, None) for p in ('<tool_call>{"name": "f", "arguments": {"a": ', "oops", " and more")] + [stream.read("", "stop")]
    assert [(c.name, c.arguments) for d in deltas for c in d.calls] == [("f", '{"a": ')]
    assert "".join(d.text for d in deltas) == "oops and more"
    assert deltas[-1].finish == "stop"


def test_only_the_first_call_without_parallel_calls() -> None:
    plan = AnswerPlan(calls=reader("mistral"), parallel=False, short_ids=True)
    said = plan.whole(f"[TOOL_CALLS]{CALLS}", "stop")
    assert calls_of(said) == [("get_weather", '{"city": "Oslo"}')]
    assert (len(said.calls[0].id), said.calls[0].id.isalnum()) == (9, True)


def test_a_forced_call_that_was_cut_off_is_a_call() -> None:
    said = AnswerPlan(calls=reader("named"), must_call=True).whole('{"city": "Os', "length")
    assert (calls_of(said), said.text, said.finish) == ([("get_weather", '{"city": "Os')], "", "length")


def test_a_reader_that_fails_leaves_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    def fails(t):  # type: ignore[no-untyped-def]
        yield from t.until("!")
        raise KeyError("a defect")

    def is_none(t):  # type: ignore[no-untyped-def]
        raise KeyError("a defect")

    for bad in (fails, is_none):
        assert events(bad, ["ab!", "cd"]) == [Content("ab!cd", "ab!cd")]
