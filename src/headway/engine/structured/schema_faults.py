"""What makes a JSON schema one that no answer can fit, or none at all, in words of our own. What else is wrong the compiler finds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from headway.engine.structured.schema_parts import Schema, parts_of

DECIMALS: Final = 6  # of numbers with bounds, as xgrammar writes them
MOST_OPTIONAL: Final = 1000  # properties of one object that may be left out: each may come next, and the time for a token grows with them


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_filled_list(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)


_Shape = tuple[Callable[[Any], bool], str]
_NUMBER: Final[_Shape] = (_is_number, "a number")
_COUNT: Final[_Shape] = (_is_count, "a whole number that is not negative")
_TEXT: Final[_Shape] = (_is_text, "a string")
_LIST: Final[_Shape] = (_is_filled_list, "a list that is not empty, or the form allows nothing")
_OBJECT: Final[_Shape] = (_is_object, "an object")
_SHAPES: Final[Mapping[str, _Shape]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _COUNT),
    **dict.fromkeys(("pattern", "$ref", "$anchor", "format"), _TEXT),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "enum"), _LIST),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions"), _OBJECT),
    "type": (lambda v: isinstance(v, str) or _is_filled_list(v), "a string or a list that is not empty"),
    "required": (lambda v: isinstance(v, list) and all(isinstance(name, str) for name in v), "a list of strings"),
}


def fault(schema: object) -> str | None:
    """As a sentence; None when there is none of those that are looked for."""
    for part in parts_of(schema):
        for keyword, (fits, expected) in _SHAPES.items():
            if keyword in part and not fits(part[keyword]):
                return f"{keyword} in the schema must be {expected}, got {part[keyword]!r:.60}"
        if _no_number(part):
            return f"the bounds {_bounds(part)} in the schema leave no number of at most {DECIMALS} decimals: the form allows nothing"
    return None


def too_many(schema: object) -> str | None:
    """A sentence where an object has more optional properties than can be followed."""
    for part in parts_of(schema):
        named, required = part.get("properties"), part.get("required")
        if isinstance(named, Mapping):
            optional = len(named.keys() - set(map(str, required if isinstance(required, list) else ())))
            if optional > MOST_OPTIONAL:
                return f"an object in the schema has {optional} properties that are not required, the limit is {MOST_OPTIONAL}"
    return None


def _no_number(part: Schema) -> bool:
    stated = part.get("type")
    types = {stated} if isinstance(stated, str) else {t for t in stated if isinstance(t, str)} if isinstance(stated, list) else set()
    if not types & {"number", "integer"}:
        return False
    unit = 10**DECIMALS if "number" in types else 1

    def scaled(keyword: str) -> Fraction | None:
        return Fraction(str(part[keyword])) * unit if keyword in part else None

    low, above, high, below = (scaled(k) for k in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"))
    lowest = [*([] if low is None else [math.ceil(low)]), *([] if above is None else [math.floor(above) + 1])]
    highest = [*([] if high is None else [math.floor(high)]), *([] if below is None else [math.ceil(below) - 1])]
    return bool(lowest and highest) and max(lowest) > min(highest)


def _bounds(part: Schema) -> str:
    return ", ".join(f"{k} {part[k]!r:.30}" for k in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum") if k in part)
