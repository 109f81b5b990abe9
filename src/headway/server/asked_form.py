"""From the fields of a body to the form that its answer must have."""

from __future__ import annotations

from typing import Any

from headway.engine.structured.request import StructuredOutputs
from headway.errors import RequestError
from headway.wire.answer_form import AnswerForm, JsonObjectFormat, JsonSchemaFormat, StructuralTagFormat

_GUIDED = ("json", "regex", "choice", "grammar")


def asked_form(body: AnswerForm) -> StructuredOutputs | None:
    """None where any text will do. Raises RequestError, `structured_outputs_invalid` among them."""
    asked: dict[str, Any] = {f"guided_{kind}": {kind: value} for kind in _GUIDED if (value := getattr(body, f"guided_{kind}")) is not None}
    if body.structured_outputs is not None:
        asked["structured_outputs"] = body.structured_outputs
    if (wanted := _of_format(body)) is not None:
        asked["response_format"] = wanted
    if len(asked) > 1:
        raise RequestError(f"{' and '.join(asked)} both say what form the answer must have, and it can have one", param=next(iter(asked)))
    for param, options in asked.items():
        try:
            return StructuredOutputs.of(options, param)
        except RequestError as error:
            raise type(error)(error.message.replace("structured_outputs:", f"{param}:", 1), reason=error.reason, param=param) from None
    return None


def _of_format(body: AnswerForm) -> dict[str, Any] | None:
    match body.response_format:
        case JsonObjectFormat():
            return {"json_object": True}
        case JsonSchemaFormat(json_schema=wanted):
            return {"json": wanted.schema_}
        case StructuralTagFormat() as tag:
            return {"structural_tag": tag.model_dump()}
    return None
