"""The schema of an answer that must be calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.server.tools.definitions import Tools

_VALUES: Final = frozenset({"enum", "const", "default", "examples"})  # hold values, not schemas
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})  # hold schemas under names of the author's


def schema_of_calls(tools: Tools, parallel: bool) -> dict[str, Any]:
    """A list of at least one call of any of `tools`; of just one unless `parallel`.

    A schema that refers to parts of itself stands under `$defs`, with its references following it there.
    """
    definitions: dict[str, Any] = {}
    calls = []
    for i, (name, parameters) in enumerate(tools.items()):
        place = f"#/$defs/tool{i}"
        moved = _moved(parameters, place)
        if moved != parameters:
            definitions[f"tool{i}"] = moved
            moved = {"$ref": place}
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"type": "string", "enum": [name]}, "parameters": moved},
                "required": ["name", "parameters"],
                "additionalProperties": False,
            }
        )
    schema: dict[str, Any] = {"type": "array", "minItems": 1, "items": calls[0] if len(calls) == 1 else {"anyOf": calls}}
    if not parallel:
        schema["maxItems"] = 1
    return schema | ({"$defs": definitions} if definitions else {})


def _moved(schema: Any, place: str) -> Any:
    """`schema` with its references to itself pointing to `place`."""
    if isinstance(schema, list):
        return [_moved(part, place) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {key: _moved_member(key, value, place) for key, value in schema.items()}


def _moved_member(key: str, value: Any, place: str) -> Any:
    if key == "$ref" and isinstance(value, str) and value.startswith("#"):
        return place + value[1:]
    if key in _VALUES:
        return value
    if key in _NAMED and isinstance(value, Mapping):
        return {name: _moved(part, place) for name, part in value.items()}
    return _moved(value, place)
