"""The `prompt` of a completion in its four forms, brought into one: a list of texts or token id lists."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from headway.wire.environment_limit import environment_limit

MAX_PROMPTS = environment_limit("VLLM_MAX_COMPLETION_PROMPTS", 1024)
_FORMS = "a text, a list of texts, a list of token ids or a list of such lists"


def _is_id(value: Any) -> bool:
    return type(value) is int


def _ids(value: list[Any], where: str) -> list[int]:
    for i, item in enumerate(value):
        if not _is_id(item):
            raise PydanticCustomError("prompt", f"{where}[{i}] is of type {type(item).__name__}, expected a token id")
    return value


def prompts(value: Any) -> list[str | list[int]]:
    """[text or ids, ...] in order. Raises PydanticCustomError naming the first element that fits no form."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise PydanticCustomError("prompt", f"prompt is of type {type(value).__name__}, expected {_FORMS}")
    if not value:
        raise PydanticCustomError("prompt", f"prompt is an empty list, expected {_FORMS}")
    if _is_id(value[0]):
        return [_ids(value, "prompt")]
    if len(value) > MAX_PROMPTS:
        raise PydanticCustomError("prompt", f"prompt holds {len(value)} prompts, the limit is {MAX_PROMPTS}")
    out: list[str | list[int]] = []
    for i, item in enumerate(value):
        if isinstance(item, str) and isinstance(value[0], str):
            out.append(item)
        elif isinstance(item, list) and isinstance(value[0], list):
            out.append(_ids(item, f"prompt[{i}]"))
        else:
            raise PydanticCustomError("prompt", f"prompt[{i}] is of type {type(item).__name__}, expected {_FORMS}")
    return out


_IDS = {"type": "array", "items": {"type": "integer"}}
PromptField = Annotated[
    list[str | list[int]],
    PlainValidator(prompts),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_PROMPTS},
                _IDS | {"minItems": 1},
                {"type": "array", "items": _IDS, "minItems": 1, "maxItems": MAX_PROMPTS},
            ]
        }
    ),
]
