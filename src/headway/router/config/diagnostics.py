"""Diagnostic: one thing that is wrong with a configuration, where it stands and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headway.errors import ConfigError

Path = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED = re.compile(r'"([^"]*)"')


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """`path` is where in the document, `line` counts from 1 in its text (None before the text is known). A warning stops nothing."""

    reason: str
    message: str
    path: Path = ()
    fix: str | None = None
    line: int | None = None
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line is not None else ""
        where = f"{shown(self.path)}: " if self.path else ""
        return f"{place}{where}{self.message}" + (f". {self.fix}" if self.fix else "")

    def as_json(self) -> dict[str, Any]:
        return {
            "severity": self.severity,
            "reason": self.reason,
            "path": shown(self.path),
            "line": self.line,
            "message": self.message,
            "fix": self.fix,
        }


class ConfigRejected(ConfigError):
    """A configuration with errors; `diagnostics` has all of them and the warnings, in the order of the lines."""

    reason = "config_rejected"

    def __init__(self, name: str, diagnostics: Sequence[Diagnostic]):
        self.diagnostics = tuple(diagnostics)
        errors = [each for each in self.diagnostics if each.severity == "error"]
        count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        super().__init__("\n  ".join([f"{name} has {count}:", *map(str, errors)]), param=name)


def shown(path: Path) -> str:
    """`("routing", "decisions", 0, "rules")` as `routing.decisions[0].rules`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text


def quoted(message: str) -> frozenset[str]:
    """The names that a message quotes."""
    return frozenset(_QUOTED.findall(message))


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(each.severity == "error" for each in diagnostics)
