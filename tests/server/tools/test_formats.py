"""What each format's parser finds in answers such as its models write."""

from __future__ import annotations

import json

import pytest

from tests.server.tools.reads import calls_of, whole

OSLO = '{"city": "Oslo"}'
OSLO_CALL = ("get_weather", OSLO)
PARIS = ("get_weather", '{"city": "Paris", "days": 3}')
JSON_CALL = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
CALLS = json.dumps([{"name": "get_weather", "arguments": {"city": "Oslo"}}, {"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}])
CODER = "<tool_call>\n<function=get_weather>\n<parameter=city>\n%s\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("parser", "text", "content", "calls"),
    [
        ("hermes", f"<tool_call>\n{JSON_CALL}\n</tool_call>", "", [OSLO_CALL]),
        ("hermes", f"Let me look.\n<tool_call>{JSON_CALL}</tool_call>\n<tool_call>\n{JSON_CALL}\n</tool_call>\n", "Let me look.\n", [OSLO_CALL, OSLO_CALL]),
        ("hermes", f"<tool_call>{JSON_CALL}</tool_call> And now?", " And now?", [OSLO_CALL]),
        ("hermes", '<tool_call>{"arguments": {"city": "Oslo"}, "name": "get_weather"}</tool_call>', "", [OSLO_CALL]),
        ("hermes", '<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}</tool_call>', "", [OSLO_CALL]),
        ("hermes", '<tool_call>{"name": "now"}</tool_call>', "", [("now", "{}")]),
        ("hermes", '<tool_call>{"name": "now", "arguments": null, "id": [1, {"a": 2}]}</tool_call>', "", [("now", "{}")]),
        ("hermes", '<tool_call>{"name": "say", "arguments": {"text": "</tool_call> {\\"x\\"}"}}</tool_call>', "", [("say", '{"text": "</tool_call> {\\"x\\"}"}')]),
        ("hermes", '<tool_call>{"name": "say", "arguments": {"text": "two\nlines"}}</tool_call>', "", [("say", '{"text": "two\\nlines"}')]),
        ("hermes", f"<tool_call>{JSON_CALL}", "", [OSLO_CALL]),  # the end mark may be the token that ends the answer
        ("qwen3_json", f"<tool_call>{JSON_CALL}</tool_call>", "", [OSLO_CALL]),
        ("granite4", f"<tool_call>{JSON_CALL}</tool_call>", "", [OSLO_CALL]),
        ("qwen3_coder", CODER % "Paris", "", [PARIS]),
        ("qwen3_coder", "Sure: " + (CODER % 'a "b"\n<c>'), "Sure: ", [("get_weather", '{"city": "a \\"b\\"\\n<c>", "days": 3}')]),
        ("qwen3_xml", "<function=now>\n</function>", "", [("now", "{}")]),
        ("qwen3_coder", "<function=get_weather><parameter=units>None</parameter><parameter=days>soon</parameter></function>", "", [("get_weather", '{"units": null, "days": "soon"}')]),
        ("llama3_json", '{"name": "get_weather", "parameters": {"city": "Oslo"}}', "", [OSLO_CALL]),
        ("llama3_json", f'<|python_tag|>{JSON_CALL}; {{"type": "function", "name": "f", "parameters": {{}}}}', "", [OSLO_CALL, ("f", "{}")]),
        ("llama3_json", '{"answer": 42}', '{"answer": 42}', []),
        ("llama3_json", '{"name": "Oslo"}', '{"name": "Oslo"}', []),
        ("mistral", f"[TOOL_CALLS] {CALLS}", "", [OSLO_CALL, PARIS]),
        ("mistral", f"Well.[TOOL_CALLS]get_weather{OSLO}[TOOL_CALLS]get_weather[CALL_ID]abcdefghi[ARGS]{OSLO}", "Well.", [OSLO_CALL, OSLO_CALL]),
        ("granite", f"<|tool_call|>{CALLS}", "", [OSLO_CALL, PARIS]),
        ("granite", f"<tool_call>{CALLS}</tool_call>", "", [OSLO_CALL, PARIS]),
        ("granite", CALLS, "", [OSLO_CALL, PARIS]),
        ("granite", "[1] says so.", "[1] says so.", []),
        ("phi4_mini_json", f"functools{CALLS}", "", [OSLO_CALL, PARIS]),
        ("phi4_mini_json", f"<|tool_call|>{CALLS}<|/tool_call|>", "", [OSLO_CALL, PARIS]),
        ("phi4_mini_json", "Use functools {here}.", "Use functools {here}.", []),
        ("pythonic", "[get_weather(city='Oslo'), get_weather(city=\"Paris\", days=3)]", "", [OSLO_CALL, PARIS]),
        ("pythonic", "[a.b(x=[1, {'y': None}], z=True, t=true, s='it\\'s, (so)')]", "", [("a.b", '{"x": [1, {"y": null}], "z": true, "t": true, "s": "it\'s, (so)"}')]),
        ("llama4_pythonic", "<|python_start|>[now()]<|python_end|>", "", [("now", "{}")]),
        ("pythonic", "[1, 2]", "[1, 2]", []),
        ("pythonic", "[see (here)]", "[see (here)]", []),
        ("required", '[{"name": "get_weather", "parameters": {"city": "Oslo"}}]', "", [OSLO_CALL]),
        ("named", OSLO, "", [OSLO_CALL]),
    ],
)  # fmt: skip
def test_calls_and_content(parser: str, text: str, content: str, calls: list[tuple[str, str]]) -> None:
    said = whole(parser, text)
    assert (said.text, calls_of(said)) == (content, calls)
    assert said.finish == ("tool_calls" if calls else "stop")
    for _, arguments in calls:
        json.loads(arguments)


BROKEN = [
    ("hermes", '<tool_call>{"name": "f", "arguments": {"a": }}</tool_call>'),
    ("hermes", '<tool_call>{"name": "f", "arguments": [1]}</tool_call>'),
    ("hermes", '<tool_call>{"name": "", "arguments": {}}</tool_call>'),
    ("hermes", '<tool_call>{"name": "\\ud800", "arguments": {}}</tool_call>'),
    ("hermes", "<tool_call>none</tool_call>"),
    ("hermes", "<tool_call>"),
    ("qwen3_coder", "<function=f"),
    ("llama3_json", '{"name": "f", "parameters": {"a": 01}}'),
    ("mistral", "[TOOL_CALLS] maybe"),
    ("granite", "<|tool_call|>[]"),
    ("phi4_mini_json", 'functools[{"name": "f", "arguments": {]'),
    ("pythonic", "[f(a=open('x'))]"),
    ("pythonic", "[f(a='\\ud800', b={1: {2}})]"),
    ("required", "nothing"),
]


@pytest.mark.parametrize(("parser", "text"), BROKEN)
def test_what_is_no_call_is_content_as_it_was_written(parser: str, text: str) -> None:
    said = whole(parser, text)
    assert (said.text, said.calls, said.finish) == (text, (), "stop")


CUT_OFF = [
    ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1', '{"a": 1'),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1}', '{"a": 1}'),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1}, "id": "x', '{"a": 1}'),
    ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\n1", '{"a": "1'),
    ("pythonic", "[f(a=1", ""),
]


@pytest.mark.parametrize(("parser", "text", "arguments"), CUT_OFF)
def test_a_call_that_is_cut_off_is_a_call(parser: str, text: str, arguments: str) -> None:
    said = whole(parser, "Well. " * (parser != "pythonic") + text, "length")
    assert (said.text, calls_of(said), said.finish) == ("Well. " * (parser != "pythonic"), [("f", arguments)], "length")


def test_a_good_call_in_front_of_a_broken_one_stays() -> None:
    said = whole("hermes", '<tool_call>{"name": "a"}</tool_call><tool_call>{"name": "b", "arguments": nil}</tool_call>')
    assert (said.text, calls_of(said)) == ('<tool_call>{"name": "b", "arguments": nil}</tool_call>', [("a", "{}")])


def test_deep_arguments_are_no_call() -> None:
    deep = '{"a": ' * 500 + "1" + "}" * 500
    text = f'<tool_call>{{"name": "f", "arguments": {deep}}}</tool_call>'
    assert whole("hermes", text).text == text
    python = "[f(a=" + "[" * 500 + "]" * 500 + ")]"
    assert whole("pythonic", python).text == python
