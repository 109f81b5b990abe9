"""What xgrammar leaves out of a JSON schema. It compiles such schemas without a word, and answers would not fit them, so they are refused here.

Found by comparing what xgrammar 0.2.9 accepts with what JSON Schema 2020-12 says, and in its issues 937, 958, 966 and 968.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from headway.engine.structured.schema_parts import Schema, parts_of


class _Rule(NamedTuple):
    """`keyword` counts for values of these `types`, of all types when there are none; `ignored(value, schema)`: whether it would be left out."""

    keyword: str
    types: frozenset[str] = frozenset()
    ignored: Callable[[Any, Schema], bool] = lambda value, schema: True
    where: str = ""  # it is left out


_NUMBERS, _ARRAY, _OBJECT, _STRING = frozenset({"number", "integer"}), frozenset({"array"}), frozenset({"object"}), frozenset({"string"})
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_OF_STRINGS: Final = ("minLength", "maxLength", "pattern")
_OF_ARRAYS: Final = ("minItems", "maxItems")
_OF_OBJECTS: Final = ("minProperties", "maxProperties", "required", "patternProperties", "propertyNames")
_TELLING: Final = ("properties", "additionalProperties", "items", "prefixItems")  # without type they tell it
_LIMITING: Final = frozenset({*_BOUNDS, *_OF_STRINGS, *_OF_ARRAYS, *_OF_OBJECTS, *_TELLING, "multipleOf", "format"})
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,), "integer": (int, float), "number": (int, float), "boolean": (bool,), "null": (type(None),), "array": (list,), "object": (dict,),
}  # fmt: skip


def _types(schema: Schema) -> frozenset[str]:
    """As stated; empty when none is."""
    stated = schema.get("type")
    return frozenset({stated} if isinstance(stated, str) else {t for t in stated if isinstance(t, str)} if isinstance(stated, list) else ())


def _untyped(value: Any, schema: Schema) -> bool:
    return "type" not in schema and not any(name in schema for name in _TELLING)


def _beside_limits(value: Any, schema: Schema) -> bool:
    return not _LIMITING.isdisjoint(schema.keys())


def _of_another_type(values: Any, schema: Schema) -> bool:
    kinds = {kind for name in _types(schema) for kind in _KINDS.get(name, ())}
    return bool(kinds) and isinstance(values, list) and any(type(value) not in kinds for value in values)


_RULES: Final = (
    _Rule("multipleOf", frozenset({"number"})),
    _Rule("multipleOf", _NUMBERS, lambda v, s: any(name in s for name in _BOUNDS), "beside bounds"),
    _Rule("uniqueItems", _ARRAY, lambda v, s: v is not False),
    _Rule("contains", _ARRAY),
    _Rule("minContains", _ARRAY),
    _Rule("maxContains", _ARRAY),
    _Rule("not"),
    _Rule("if"),
    _Rule("dependentSchemas", _OBJECT),
    _Rule("dependentRequired", _OBJECT),
    _Rule("dependencies", _OBJECT),
    _Rule("$dynamicRef"),
    _Rule("$ref", ignored=lambda v, s: isinstance(v, str) and not v.startswith("#"), where="to another document"),
    _Rule("$ref", ignored=lambda v, s: isinstance(v, str) and v.startswith("#") and v != "#" and not v.startswith("#/"), where="to an anchor"),
    _Rule("allOf", ignored=lambda v, s: isinstance(v, list) and len(v) > 1, where="with more than one schema"),
    _Rule("minLength", _STRING, lambda v, s: "pattern" in s or "format" in s, "beside pattern or format"),
    _Rule("maxLength", _STRING, lambda v, s: "pattern" in s or "format" in s, "beside pattern or format"),
    _Rule("propertyNames", _OBJECT, lambda v, s: "properties" in s or "patternProperties" in s, "beside properties"),
    _Rule("required", _OBJECT, lambda v, s: isinstance(v, list) and not set(map(str, v)) <= set(s.get("properties") or ()), "of names that properties lacks"),
    _Rule("enum", ignored=_of_another_type, where="with values of another type"),
    _Rule("const", ignored=lambda v, s: _of_another_type([v], s), where="of another type"),
    *(_Rule(name, ignored=_untyped, where="without type") for name in (*_BOUNDS, *_OF_STRINGS, *_OF_ARRAYS, *_OF_OBJECTS)),
    *(_Rule(name, ignored=_beside_limits, where="beside other limits") for name in ("$ref", "anyOf", "oneOf", "allOf")),
)
def left_out(schema: object) -> str | None:
    """What of `schema` would not be kept to, as words for a message; None when all is."""
    for part in parts_of(schema):
        for rule in _RULES:
            if rule.keyword in part and _applies(rule, part) and rule.ignored(part[rule.keyword], part):
                return f"{rule.keyword} {rule.where}".strip()
    return None


def _applies(rule: _Rule, schema: Schema) -> bool:
    return not rule.types or not schema.get("type") or bool(rule.types & _types(schema))
