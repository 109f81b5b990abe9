"""AnswerParsers: how the answers of the served model are to be read, as the flags say it."""

from __future__ import annotations

from dataclasses import dataclass

from headway.errors import ConfigError
from headway.server.reasoning.parsers import ReasoningParser, reasoning_parser
from headway.server.settings import ServerSettings
from headway.server.tools.registry import ToolParser, tool_parser


@dataclass(frozen=True, slots=True)
class AnswerParsers:
    """`tools` is None where the model may not call tools of its own accord; `short_ids` holds for calls that it is forced to as well."""

    tools: ToolParser | None
    reasoning: ReasoningParser | None
    short_ids: bool


def answer_parsers(settings: ServerSettings) -> AnswerParsers:
    """Raises ConfigError for parsers that do not exist, and where --enable-auto-tool-choice or a plug-in has none."""
    if settings.enable_auto_tool_choice and settings.tool_call_parser is None:
        raise ConfigError("--enable-auto-tool-choice requires --tool-call-parser", param="enable-auto-tool-choice")
    if settings.tool_parser_plugin is not None and settings.tool_call_parser is None:
        raise ConfigError("--tool-parser-plugin brings a parser, --tool-call-parser must name it", param="tool-parser-plugin")
    name = settings.tool_call_parser
    tools = None if name is None else tool_parser(name, settings.tool_parser_plugin)
    return AnswerParsers(
        tools=tools if settings.enable_auto_tool_choice else None,
        reasoning=None if settings.reasoning_parser is None else reasoning_parser(settings.reasoning_parser),
        short_ids=tools is not None and tools.short_ids,
    )
