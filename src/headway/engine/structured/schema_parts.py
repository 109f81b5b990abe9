"""The schemas inside of a JSON schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]

_ONE: Final = ("items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "additionalItems", "propertyNames")
_NAMED: Final = ("properties", "patternProperties", "$defs", "definitions")
_LISTED: Final = ("anyOf", "oneOf", "allOf", "prefixItems", "items")


def parts_of(document: object) -> Iterator[Schema]:
    """The document itself and all that answers are held to inside of it, each once: also what a `$ref` points to in a place that has no meaning of
    its own."""
    waiting, seen = [document], set[int]()
    while waiting:
        part = waiting.pop()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        waiting += _below(part)
        if isinstance(reference := part.get("$ref"), str) and reference.startswith("#/"):
            waiting.append(_pointed_to(document, reference))


def schemas_of(kind: str, document: Any) -> Iterator[object]:
    """The schemas in the document of a constraint of this kind: itself, or those inside of a structural tag."""
    if kind == "json":
        yield document
        return
    for part in _mappings(document, "json_schema", "schema"):
        if part.get("type") == "json_schema":
            yield part.get("json_schema")
        elif {"begin", "end"} <= part.keys():
            yield part.get("schema")


def expressions_of(tag: Any) -> Iterator[Schema]:
    """The parts of a structural tag whose `pattern` is the expression that a text must match."""
    yield from (part for part in _mappings(tag, "json_schema", "schema") if part.get("type") == "regex" and isinstance(part.get("pattern"), str))


def _mappings(document: Any, *closed: str) -> Iterator[Schema]:
    """All objects, but what is inside of these fields of theirs."""
    waiting = [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, Mapping):
            yield part
            waiting += (value for name, value in part.items() if name not in closed)


def _below(schema: Schema) -> Iterator[object]:
    for name in _ONE:
        yield schema.get(name)
    for name in _NAMED:
        if isinstance(named := schema.get(name), Mapping):
            yield from named.values()
    for name in _LISTED:
        if isinstance(listed := schema.get(name), list):
            yield from listed


def _pointed_to(document: object, reference: str) -> object:
    """None where nothing is: the compiler refuses that."""
    found: Any = document
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and len(name) < 8 and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found
