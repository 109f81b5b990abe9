"""The tools that a router may add to requests, from a JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from headway.errors import ConfigError
from headway.router.plugins.tool_lists import description_of, name_of

_LARGEST_FILE = 16 << 20


@dataclass(frozen=True, slots=True)
class KnownTool:
    """`tool` as chat completions take it; `text` is what it is found by."""

    tool: Mapping[str, Any]
    name: str
    text: str
    category: str = ""
    tags: tuple[str, ...] = ()


def read_tools(path: Path) -> tuple[KnownTool, ...]:
    """A list of `{"tool", "description", "category", "tags"}`, by name. Raises ConfigError."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise ConfigError(f"{path.name} has more than {_LARGEST_FILE >> 20} MiB", param="tools_db_path")
        found = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"the tools database {path.name} cannot be read: {error.strerror}", param="tools_db_path") from error
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"the tools database {path.name} is no JSON: {error}", param="tools_db_path") from error
    if not isinstance(found, list):
        raise ConfigError(f"the tools database {path.name} must be a list of tools", param="tools_db_path")
    tools = [_known(entry, path.name, at) for at, entry in enumerate(found)]
    names = [tool.name for tool in tools]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f'the tools database {path.name} has the tool "{name}" twice', param="tools_db_path")
    return tuple(sorted(tools, key=lambda tool: tool.name))


def known(tool: Mapping[str, Any]) -> KnownTool:
    """A tool of a request."""
    return KnownTool(tool, name_of(tool), description_of(tool))


def _known(entry: Any, file: str, at: int) -> KnownTool:
    tool = entry.get("tool") if isinstance(entry, Mapping) else None
    name = name_of(tool).strip() if isinstance(tool, Mapping) else ""
    if not isinstance(tool, Mapping) or not name:
        raise ConfigError(f"entry {at} of the tools database {file} has no tool with a name", param="tools_db_path")
    told = " ".join(filter(None, (str(entry.get("description") or ""), description_of(tool))))
    return KnownTool(tool, name, told, str(entry.get("category") or ""), tuple(str(tag) for tag in entry.get("tags") or ()))
