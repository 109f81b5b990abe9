"""`tools` and `tool_choice` of a chat, as the API description tells them. The server checks them and names what is wrong."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

_FUNCTION = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 128},
        "description": {"type": "string"},
        "parameters": {"type": "object", "properties": {"type": {"enum": ["object"]}, "properties": {"type": "object"}}},
        "strict": {"type": "boolean"},
    },
}
_TOOL = {"type": "object", "required": ["function"], "properties": {"type": {"enum": ["function"]}, "function": _FUNCTION}}
_NAMED = {
    "type": "object",
    "required": ["type", "function"],
    "properties": {
        "type": {"enum": ["function"]},
        "function": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
    },
}
Tools = Annotated[list[dict[str, Any]], WithJsonSchema({"type": "array", "items": _TOOL})]
ToolChoice = Annotated[str | dict[str, Any], WithJsonSchema({"anyOf": [{"enum": ["none", "auto", "required"]}, _NAMED]})]
