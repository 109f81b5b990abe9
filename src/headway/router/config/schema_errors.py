"""What pydantic says about a document, as diagnostics in this project's words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from headway.router.config.absent_values import absent_value
from headway.router.config.diagnostics import Diagnostic, Path, shown
from headway.router.config.document.document import Document
from headway.router.config.document.lookup import class_at
from headway.router.config.document.node import Node
from headway.router.config.removed import removed

MIGRATE = "Run `vllm-sr config migrate`"
_OLD_FILE = "Write version: v0.3; for a file of an earlier version, run `vllm-sr config migrate`"
_SHOWN = 60
_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.\d{1,4})?")
_KNOWN = (0, 3)


def schema_diagnostics(error: ValidationError, data: Any, *, root: type[Node] = Document, above: Path = ()) -> list[Diagnostic]:
    """One diagnostic for each place; `data` is what was validated as a `root`, which stands at `above` in the whole document."""
    alternatives: dict[Path, list[Mapping[str, Any]]] = {}
    for each in error.errors(include_url=False):
        alternatives.setdefault(_path(each["loc"], data), []).append(dict(each))
    return [_with_decision(_diagnostic(path, found, root, above), path, data) for path, found in alternatives.items()]


def _with_decision(diagnostic: Diagnostic, path: Path, data: Any) -> Diagnostic:
    """For what is wrong with the rules of a decision: its name and the node, as in `decision "billing": rules.conditions[1]`."""
    if "decisions" not in path:
        return diagnostic
    at = path.index("decisions") + 2
    if path[at : at + 1] != ("rules",):
        return diagnostic
    decision = data
    for part in path[:at]:
        decision = decision[part]
    return replace(diagnostic, message=f'decision "{decision.get("name")}": {shown(path[at:])}: {diagnostic.message}')


def _path(location: Iterable[str | int], data: Any) -> Path:
    """pydantic's location without the names of the alternatives of a union. The last part may be a key that is missing."""
    path: list[str | int] = []
    place = data
    parts = list(location)
    for index, part in enumerate(parts):
        inside = isinstance(place, Mapping) or (isinstance(place, list) and isinstance(part, int))
        if not inside:
            break
        if isinstance(place, Mapping) and part not in place and index < len(parts) - 1:
            continue  # the name of an alternative, or a key in its newer spelling
        path.append(part)
        place = place.get(part) if isinstance(place, Mapping) else place[int(part)]
    return tuple(path)


def _diagnostic(path: Path, found: list[Mapping[str, Any]], root: type[Node], above: Path) -> Diagnostic:
    first = found[0]
    kind = first["type"]
    whole = (*above, *path)
    if kind == "extra_forbidden":
        return _unknown_key(path, whole, root)
    if kind == "missing":
        return Diagnostic("field_required", f'"{path[-1]}" is required', whole, _OLD_FILE if whole == ("version",) else None)
    if kind == "not_supported":
        return Diagnostic("not_supported", first["msg"], whole)
    if kind == "value_error":
        return Diagnostic("value_invalid", first["msg"].removeprefix("Value error, "), whole)
    if whole == ("version",):
        return _version(first["input"])
    elsewhere = absent_value(whole, first["input"])
    if elsewhere is not None:
        advice, migrates = elsewhere
        reason = "value_removed" if migrates else "not_supported"
        return Diagnostic(reason, f'"{first["input"]}" is not supported by Headway: {advice}', whole, MIGRATE if migrates else None)
    if not all(each["type"] in _WANTED or each["type"] in _LIMITS for each in found):
        said = next(each["msg"] for each in found if each["type"] not in _WANTED and each["type"] not in _LIMITS)
        return Diagnostic("value_invalid", said, whole)
    wanted = " or ".join(dict.fromkeys(filter(None, map(_wanted, found))))
    return Diagnostic("value_invalid", f"expected {wanted}; found {_found(first['input'])}", whole, _suggestion(found))


def _version(found: Any) -> Diagnostic:
    """An older file is migrated; a newer one needs a newer router."""
    given = _VERSION.fullmatch(str(found))
    newer = given is not None and tuple(map(int, given.groups())) > _KNOWN
    fix = "This router is older than the file: install a newer one" if newer else MIGRATE if given is not None else "Write version: v0.3"
    return Diagnostic("version_unknown", f'expected "v0.3"; found {_found(found)}', ("version",), fix)


def _unknown_key(path: Path, whole: Path, root: type[Node]) -> Diagnostic:
    key = str(path[-1])
    described = class_at(path[:-1], root)
    if described is not None and key in described.absent:
        return Diagnostic("not_supported", f"{key} is not supported by Headway: {described.absent[key]}", whole)
    gone = removed(whole)
    if gone is not None:
        return Diagnostic("field_removed", gone, whole, MIGRATE)
    near = described.nearest(key) if described is not None else None
    place = shown(whole[:-1]) or "the document"
    return Diagnostic("unknown_key", f'unknown key "{key}" in {place}', whole, f'Did you mean "{near}"?' if near else None)


_WANTED: Mapping[str, str] = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "finite_number": "a finite number",
    "none_required": "",
}

_LIMITS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda limit: f"more than {limit['gt']}",
    "greater_than_equal": lambda limit: f"at least {limit['ge']}",
    "less_than": lambda limit: f"less than {limit['lt']}",
    "less_than_equal": lambda limit: f"at most {limit['le']}",
    "multiple_of": lambda limit: f"a multiple of {limit['multiple_of']}",
    "string_too_short": lambda limit: f"at least {limit['min_length']} characters",
    "string_too_long": lambda limit: f"at most {limit['max_length']} characters",
    "string_pattern_mismatch": lambda limit: f"a text that matches {limit['pattern']}",
    "too_short": lambda limit: f"at least {limit['min_length']} items",
    "too_long": lambda limit: f"at most {limit['max_length']} items",
    "literal_error": lambda limit: str(limit["expected"]).replace("'", '"'),
}


def _wanted(error: Mapping[str, Any]) -> str:
    kind = error["type"]
    if kind in _LIMITS:
        return _LIMITS[kind](error["ctx"])
    return _WANTED[kind]


def _found(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, str):
        return f'"{value if len(value) <= _SHOWN else value[:_SHOWN] + "..."}"'
    return f"{value}"


def _suggestion(found: list[Mapping[str, Any]]) -> str | None:
    for error in found:
        if error["type"] == "literal_error" and isinstance(error["input"], str):
            words = [word.strip("'") for word in error["ctx"]["expected"].replace(" or ", ", ").split(", ")]
            near = difflib.get_close_matches(error["input"].lower(), words, 1, 0.6)
            if near:
                return f'Did you mean "{near[0]}"?'
        if error["type"] == "bool_type" and error["input"] in ("yes", "no", "on", "off"):
            return f"Write {'true' if error['input'] in ('yes', 'on') else 'false'}"
        if error["type"] in ("int_type", "float_type") and isinstance(error["input"], str):
            return "Write the number without quotes"
        if error["type"] == "string_type" and isinstance(error["input"], int | float):
            return "Put quotes around it"
    return None
