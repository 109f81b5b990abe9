"""Which tools and tool choices a request may offer."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from headway.errors import ConfigError, RequestError
from headway.server.tools.choice import tool_use
from headway.server.tools.definitions import checked_tools
from headway.server.tools.registry import tool_parser
from headway.server.tools.schemas import schema_of_calls
from headway.wire.chat import ChatBody


def tool(name: Any = "f", **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **function}}


@pytest.mark.parametrize(
    ("tools", "param"),
    [
        ([{"type": "retrieval"}], "tools[0].type"),
        ([{"type": "function"}], "tools[0].function"),
        ([tool(), tool(7)], "tools[1].function.name"),
        ([tool("a b")], "tools[0].function.name"),
        ([tool("")], "tools[0].function.name"),
        ([tool("x" * 129)], "tools[0].function.name"),
        ([tool(), tool()], "tools[1].function.name"),
        ([tool(parameters=[1])], "tools[0].function.parameters"),
        ([tool(parameters={"type": "string"})], "tools[0].function.parameters"),
        ([tool(parameters={"properties": []})], "tools[0].function.parameters.properties"),
        ([tool(description=1)], "tools[0].function.description"),
        ([tool(strict="yes")], "tools[0].function.strict"),
        ([tool(f"f{i}") for i in range(513)], "tools"),
        ([tool(description="x" * (1 << 20))], "tools"),
    ],
)
def test_refused_tools(tools: list[dict[str, Any]], param: str) -> None:
    with pytest.raises(RequestError) as found:
        checked_tools(tools)
    assert (found.value.param, found.value.reason) == (param, "tools_invalid")


def body(choice: Any = None, **fields: Any) -> ChatBody:
    return ChatBody(messages=[{"role": "user", "content": "x"}], tools=[tool()], tool_choice=choice, **fields)


@pytest.mark.parametrize("choice", ["sometimes", {"type": "function"}, {"type": "function", "function": {"name": "g"}}, {"type": "allowed_tools"}])
def test_refused_choices(choice: Any) -> None:
    with pytest.raises(RequestError) as found:
        tool_use(body(choice), tool_parser("hermes"))
    assert (found.value.param, found.value.reason) == ("tool_choice", "tool_choice_invalid")


@pytest.mark.parametrize("choice", [None, "auto"])
def test_auto_needs_the_flags(choice: Any) -> None:
    with pytest.raises(RequestError, match=r'^"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set$'):
        tool_use(body(choice), None)
    assert tool_use(body(choice), tool_parser("hermes")).form is None


def test_the_schema_of_required_calls() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}, "default": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": ["object", "null"], "properties": {"next": {"$ref": "#/$defs/n"}}, "additionalProperties": False}}}
    tools = checked_tools([tool("plain", parameters={"properties": {"a": {"type": "integer"}}, "required": ["a"]}), tool("tree", parameters=node), tool("none")])
    check = jsonschema_rs.Draft202012Validator(schema_of_calls(tools, parallel=True))
    good = [{"name": "plain", "parameters": {"a": 1}}, {"name": "tree", "parameters": {"next": {"next": None}}}, {"name": "none", "parameters": {}}]
    assert check.is_valid(good)
    for bad in ([], [{"name": "plain", "parameters": {}}], [{"name": "tree", "parameters": {"default": {"x": 1}}}], [{"name": "none", "parameters": {"a": 1}}], [{"name": "other", "parameters": {}}]):
        assert not check.is_valid(bad), bad
    assert not jsonschema_rs.Draft202012Validator(schema_of_calls(tools, parallel=False)).is_valid(good)


def test_plugins(tmp_path: Any) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from headway.server.answer_text.events import CallArguments, CallBegins\n"
        "from headway.server.tools.registry import ToolParser, register\n"
        "def own(t, tools):\n"
        "    while (yield from t.until('CALL ')):\n"
        "        name = yield from t.upto(';', 20)\n"
        "        if name:\n"
        "            yield CallBegins(t.taken(), name)\n"
        "            yield CallArguments('', '{}')\n"
        "            yield t.call_ends()\n"
        "register(ToolParser('own', own))\n"
    )
    assert tool_parser("own", str(file)).name == "own"
    from tests.server.tools.reads import calls_of, whole

    assert calls_of(whole("own", "CALL stop;")) == [("stop", "{}")]
    with pytest.raises(ConfigError, match=r"there is no tool call parser 'nope'. There are .*hermes") as unknown:
        tool_parser("nope")
    assert unknown.value.reason == "unknown_tool_parser"
    for plugin in (str(tmp_path / "absent.py"), "no_such_module"):
        with pytest.raises(ConfigError) as broken:
            tool_parser("own", plugin)
        assert broken.value.reason == "tool_parser_plugin_invalid"
