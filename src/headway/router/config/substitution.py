"""References to environment variables in the strings of a configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_REFERENCE = re.compile(rf"\$\$|\$\{{(?P<braced>{_NAME})(?P<default>:?-[^}}]*)?\}}|\$(?P<bare>{_NAME})")


@dataclass(frozen=True, slots=True)
class Substituted:
    """`unset` names variables without a value and without a default: they became the empty string. `changed` is false for a text
    without references."""

    text: str
    changed: bool
    unset: tuple[str, ...] = ()


def substitute(text: str, environment: Mapping[str, str]) -> Substituted:
    """Replace `${NAME}`, `$NAME`, `${NAME:-default}` (unset or empty), `${NAME-default}` (unset); `$$` is one dollar sign.

    Any other dollar sign stays as it is, so that `^price: \\$[0-9]+$` needs no escaping. What a variable contains is not read again.
    """
    if "$" not in text:
        return Substituted(text, False)
    unset: list[str] = []
    found = False

    def replace(match: re.Match[str]) -> str:
        nonlocal found
        found = True
        name = match["braced"] or match["bare"]
        if name is None:
            return "$"
        value = environment.get(name)
        default = match["default"]
        if default is not None:
            needs_default = value is None or (default.startswith(":") and value == "")
            return default.removeprefix(":")[1:] if needs_default else value or ""
        if value is None:
            unset.append(name)
        return value or ""

    return Substituted(_REFERENCE.sub(replace, text), found, tuple(unset))
