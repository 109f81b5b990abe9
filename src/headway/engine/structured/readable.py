"""A constraint with its regular expressions as xgrammar is to get them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from headway.engine.structured.expression import UnsupportedExpressionError, for_json_string, for_text
from headway.engine.structured.schema_parts import expressions_of, parts_of, schemas_of


def readable(kind: str, text: str) -> str:
    """The text of the same constraint. Raises UnsupportedExpressionError, and ValueError for what is no expression."""
    if kind == "regex":
        return for_text(text)
    if kind not in ("json", "structural_tag") or "attern" not in text:
        return text
    document = json.loads(text)
    for schema in schemas_of(kind, document):
        for part in list(parts_of(schema)):
            _rewrite(part, for_json_string)
    if kind == "structural_tag":
        for part in list(expressions_of(document)):
            _rewrite(part, for_text)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _rewrite(part: Any, write: Callable[[str], str]) -> None:
    """In place; a pattern that is not a string is left for those who check schemas."""
    if isinstance(pattern := part.get("pattern"), str):
        part["pattern"] = write(pattern)
    if isinstance(named := part.get("patternProperties"), dict):
        part["patternProperties"] = {write(name): value for name, value in named.items()}
        if len(part["patternProperties"]) < len(named):
            raise UnsupportedExpressionError("patternProperties in the schema has one expression twice, which is not supported")
