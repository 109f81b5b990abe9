"""ToolUse: what a request says about calling tools, checked, and what follows from it for prompt, engine and reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from headway.engine.structured.request import StructuredOutputs
from headway.errors import RequestError
from headway.server.answer_text.growing_text import GrowingText, Steps
from headway.server.answer_text.reading import Reader
from headway.server.tools.constrained import arguments_of, list_of_calls
from headway.server.tools.definitions import Tools, checked_tools
from headway.server.tools.registry import ToolParser
from headway.server.tools.schemas import schema_of_calls
from headway.wire.chat import ChatBody


@dataclass(frozen=True, slots=True)
class ToolUse:
    """`reader` of the calls in the answer, None where there are none. `form`: the schema that forces them."""

    reader: Reader | None = None
    form: StructuredOutputs | None = None
    special_tokens: bool = False  # the reader must see them


NO_TOOLS = ToolUse()


def tool_use(body: ChatBody, parser: ToolParser | None) -> ToolUse:
    """`parser` is the server's, None without `--enable-auto-tool-choice` and `--tool-call-parser`.

    Raises RequestError: `tools_invalid`, `tool_choice_invalid`, `auto_tool_choice_disabled`.
    """
    if not body.tools:
        return NO_TOOLS
    tools = checked_tools(body.tools)
    choice = "auto" if body.tool_choice is None else body.tool_choice
    if choice == "none":
        return NO_TOOLS
    if choice == "auto":
        return _auto(tools, parser)
    if choice == "required":
        return ToolUse(_for(tools, list_of_calls), _form(schema_of_calls(tools, body.parallel_tool_calls)))
    name = _named(choice)
    if name not in tools:
        raise _wrong(f"tool_choice names the function {name[:100]!r}, which is not among the tools: {', '.join(tools)[:500]}")
    return ToolUse(partial(arguments_of, name), _form(tools[name]))


def _auto(tools: Tools, parser: ToolParser | None) -> ToolUse:
    if parser is None:
        raise RequestError(
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            reason="auto_tool_choice_disabled",
            param="tool_choice",
        )
    return ToolUse(_for(tools, parser.read), special_tokens=parser.special_tokens)


def _for(tools: Tools, read: Callable[[GrowingText, Tools], Steps[None]]) -> Reader:
    return lambda text: read(text, tools)


def _form(schema: Mapping[str, Any]) -> StructuredOutputs:
    try:
        return StructuredOutputs(json=schema, param="tools")
    except RequestError as error:
        raise RequestError(f"the schemas of the tools cannot be used: {error.message}", reason="tools_invalid", param="tools") from None


def _named(choice: str | dict[str, Any]) -> str:
    if isinstance(choice, dict) and choice.get("type") == "function":
        function = choice.get("function")
        name = function.get("name") if isinstance(function, dict) else choice.get("name")
        if isinstance(name, str):
            return name
    raise _wrong('tool_choice must be "none", "auto", "required" or {"type": "function", "function": {"name": ...}}')


def _wrong(message: str) -> RequestError:
    return RequestError(message, reason="tool_choice_invalid", param="tool_choice")
