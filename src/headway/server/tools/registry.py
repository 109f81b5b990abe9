"""The tool call parsers by name, built in and plugged in.

A plug-in is a Python file, or an importable module, given with `--tool-parser-plugin`. It calls `register` with a ToolParser
whose `read` is a generator such as those beside this file: it moves through the growing text and yields events.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.errors import ConfigError
from headway.server.answer_text.growing_text import GrowingText, Steps
from headway.server.tools.definitions import Tools
from headway.server.tools.granite import granite
from headway.server.tools.hermes import hermes
from headway.server.tools.llama3_json import llama3_json
from headway.server.tools.mistral import mistral
from headway.server.tools.phi4_mini_json import phi4_mini_json
from headway.server.tools.pythonic import pythonic
from headway.server.tools.qwen3_coder import qwen3_coder


@dataclass(frozen=True, slots=True)
class ToolParser:
    """`special_tokens`: its marks are special tokens, which an answer otherwise leaves out. `short_ids`: calls have ids of nine
    letters and digits, as Mistral's templates want them."""

    name: str
    read: Callable[[GrowingText, Tools], Steps[None]]
    special_tokens: bool = False
    short_ids: bool = False


_PARSERS: Final[dict[str, ToolParser]] = {
    parser.name: parser
    for parser in (
        ToolParser("hermes", hermes, special_tokens=True),
        ToolParser("qwen3_json", hermes, special_tokens=True),
        ToolParser("qwen3_coder", qwen3_coder, special_tokens=True),
        ToolParser("qwen3_xml", qwen3_coder, special_tokens=True),
        ToolParser("llama3_json", llama3_json, special_tokens=True),
        ToolParser("llama4_json", llama3_json, special_tokens=True),
        ToolParser("pythonic", pythonic),
        ToolParser("llama4_pythonic", pythonic, special_tokens=True),
        ToolParser("mistral", mistral, special_tokens=True, short_ids=True),
        ToolParser("granite", granite, special_tokens=True),
        ToolParser("granite4", hermes, special_tokens=True),
        ToolParser("phi4_mini_json", phi4_mini_json, special_tokens=True),
    )
}


def register(parser: ToolParser) -> None:
    """For plug-ins. A name that exists is replaced."""
    _PARSERS[parser.name] = parser


def tool_parser(name: str, plugin: str | None = None) -> ToolParser:
    """Raises ConfigError: `tool_parser_plugin_invalid`, or `unknown_tool_parser` naming those there are."""
    if plugin is not None:
        _load(plugin)
    if name not in _PARSERS:
        raise ConfigError(
            f"there is no tool call parser {name[:100]!r}. There are {', '.join(sorted(_PARSERS))}",
            reason="unknown_tool_parser", param="tool-call-parser",
        )  # fmt: skip
    return _PARSERS[name]


def _load(plugin: str) -> None:
    try:
        if plugin.endswith(".py"):
            _run_file(Path(plugin))
        else:
            importlib.import_module(plugin)
    except Exception as error:  # foreign code may raise anything
        raise ConfigError(
            f"--tool-parser-plugin {plugin[:200]}: {type(error).__name__}: {error}", reason="tool_parser_plugin_invalid",
            param="tool-parser-plugin", fix="Give a Python file, or a module, that calls headway.server.tools.registry.register.",
        ) from error  # fmt: skip


def _run_file(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(f"tool_parser_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
