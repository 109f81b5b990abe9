"""The tools of a request of any API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.errors import RequestError


def listed_tools(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """None is an empty list. Raises RequestError for what is no list of objects."""
    tools = body.get("tools")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, Mapping) for tool in tools)):
        raise RequestError("tools must be a list of objects", param="tools")
    return tools or []
