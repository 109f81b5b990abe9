"""Fields of a JSON object, checked one by one: what hot routes use where a schema library would cost more than the answer.

Null counts as absent. Every failure is a RequestError, reason `invalid_request`, that names the field, what was
expected and what was found, but never a value that could be somebody's text.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from headway.errors import RequestError
from headway.wire.removed import PROFILE, PROFILE_REMOVED

T = TypeVar("T", bound=str)
_KINDS = {dict: "an object", list: "a list", str: "text", int: "a number", float: "a number", bool: "true or false", type(None): "null"}
_SHOWN_NAMES = 10
_LONGEST_NAME = 60


def kind_of(value: Any) -> str:
    return _KINDS.get(type(value), type(value).__name__)


def wrong(name: str, expected: str, value: Any) -> RequestError:
    return RequestError(f"{name} must be {expected}, got {kind_of(value)}", param=name)


def only(fields: Mapping[str, Any], known: Collection[str], where: str = "the body") -> None:
    """Refuse fields that are not `known`."""
    unknown = [name for name in fields if name not in known]
    if PROFILE in unknown:
        raise RequestError(PROFILE_REMOVED, param=PROFILE, fix="Leave it out.")
    if unknown:
        names = ", ".join(repr(name[:_LONGEST_NAME]) for name in unknown[:_SHOWN_NAMES])
        raise RequestError(
            f"{where} has unknown fields: {names}", param=unknown[0][:_LONGEST_NAME], fix=f"Known are: {', '.join(sorted(known))}."
        )


def required(fields: Mapping[str, Any], name: str) -> Any:
    value = fields.get(name)
    if value is None:
        raise RequestError(f"{name} is required", param=name)
    return value


def text(fields: Mapping[str, Any], name: str, shown: str | None = None) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise wrong(shown or name, "text", value)
    return value


def name_text(fields: Mapping[str, Any], name: str) -> str | None:
    """Text that is not blank."""
    value = text(fields, name)
    if value is not None and not value.strip():
        raise RequestError(f"{name} is blank", param=name)
    return value


def flag(fields: Mapping[str, Any], name: str, default: bool = False) -> bool:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise wrong(name, "true or false", value)
    return value


def whole(fields: Mapping[str, Any], name: str, low: int, high: int | None = None) -> int | None:
    """An integer from `low` to `high`; 5.0 is one, true is none."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(name, "an integer", value)
    if value < low or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"from {low} to {high}"
        raise RequestError(f"{name} must be {bounds}, got {str(value)[:30]}", param=name)
    return value


def number(fields: Mapping[str, Any], name: str, low: float, high: float = math.inf, above: bool = False) -> float | None:
    """A finite number from `low` (`above`: greater than it) to `high`."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(name, "a number", value)
    value = float(value)
    if not math.isfinite(value) or value > high or value < low or (above and value == low):
        bounds = f"{'greater than' if above else 'at least'} {low:g}" + (f" and at most {high:g}" if high < math.inf else "")
        raise RequestError(f"{name} must be {bounds}, got {value:g}", param=name)
    return value


def one_of(fields: Mapping[str, Any], name: str, choices: Sequence[T]) -> T | None:
    value = fields.get(name)
    if value is None:
        return None
    for choice in choices:
        if value == choice:
            return choice
    raise RequestError(f"{name} must be one of {', '.join(choices)}", param=name)


def objects(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object; {} when it is absent."""
    value = fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong(name, "an object", value)
    return value
