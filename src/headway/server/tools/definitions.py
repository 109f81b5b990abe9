"""The tools that a request offers, checked: their names and the JSON schemas of their arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from headway.errors import RequestError

Tools = Mapping[str, Mapping[str, Any]]  # name -> schema of the arguments

MAX_TOOLS: Final = 512
MAX_BYTES: Final = 1 << 20  # of all definitions together, as JSON
_NAME: Final = re.compile(r"[\w.:/-]{1,128}")
_NO_ARGUMENTS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}, "additionalProperties": False}


def checked_tools(given: Sequence[Mapping[str, Any]]) -> Tools:
    """`tools` of a request body. Raises RequestError, reason `tools_invalid`, with the path of what is wrong in `param`."""
    if len(given) > MAX_TOOLS:
        raise _wrong("tools", f"has {len(given)} entries, the limit is {MAX_TOOLS}")
    if (size := len(orjson.dumps(given))) > MAX_BYTES:
        raise _wrong("tools", f"has {size} bytes, the limit is {MAX_BYTES}")
    found: dict[str, Mapping[str, Any]] = {}
    for i, tool in enumerate(given):
        where = f"tools[{i}]"
        if tool.get("type", "function") != "function":
            raise _wrong(f"{where}.type", 'must be "function"')
        function = tool.get("function")
        if not isinstance(function, Mapping):
            raise _wrong(f"{where}.function", 'must be an object with "name" and "parameters"')
        name = function.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _wrong(f"{where}.function.name", "must be a name of 1 to 128 letters, digits and _ - . : /")
        if name in found:
            raise _wrong(f"{where}.function.name", f"{name!r} is the name of two tools")
        _check_kinds(function, f"{where}.function")
        found[name] = _schema(function.get("parameters"), f"{where}.function.parameters")
    return found


def properties_of(tools: Tools, name: str) -> Mapping[str, Any]:
    properties = tools.get(name, {}).get("properties")
    return properties if isinstance(properties, Mapping) else {}


def kinds_of(schema: object) -> frozenset[str]:
    """JSON types that a property may have; {"string"} where its schema does not say."""
    if not isinstance(schema, Mapping):
        return frozenset({"string"})
    kind = schema.get("type")
    kinds = {kind} if isinstance(kind, str) else {k for k in kind if isinstance(k, str)} if isinstance(kind, list) else set()
    for union in ("anyOf", "oneOf"):
        branches = schema.get(union)
        if isinstance(branches, list):
            kinds |= {b["type"] for b in branches if isinstance(b, Mapping) and isinstance(b.get("type"), str)}
    return frozenset(kinds or {"string"})


def _schema(given: object, where: str) -> Mapping[str, Any]:
    """A schema of an object; a tool without one takes no arguments."""
    if given is None:
        return _NO_ARGUMENTS
    if not isinstance(given, Mapping):
        raise _wrong(where, "must be a JSON schema, which is an object")
    if given.get("type", "object") != "object":
        raise _wrong(where, 'must be the schema of an object ("type": "object")')
    if not isinstance(given.get("properties", {}), Mapping):
        raise _wrong(f"{where}.properties", "must be an object")
    return {"type": "object", **given}


def _check_kinds(function: Mapping[str, Any], where: str) -> None:
    for name, kind, word in (("description", str, "a text"), ("strict", bool, "true or false")):
        if function.get(name) is not None and not isinstance(function[name], kind):
            raise _wrong(f"{where}.{name}", f"must be {word}")


def _wrong(where: str, what: str) -> RequestError:
    return RequestError(f"{where} {what}", reason="tools_invalid", param=where)
