"""The context of a case: what is known beside the log. Every key is optional, unknown keys are ignored.

Values are reached by path (`host.cgroup.cpu_max`, `host.gpus.0.name`), so that each can be quoted with the place it
stands at. Secrets are masked when the file is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Final

from headway.doctor.evidence.masking import MASK, mask, names_a_secret
from headway.doctor.evidence.yaml_text import parsed
from headway.doctor.finding import Quote
from headway.errors import DoctorError

_BYTES_AT_MOST: Final = 8 << 20
_QUOTE_CHARS: Final = 240


@dataclass(frozen=True, slots=True)
class Context:
    """`tree`: the mapping of the file, masked."""

    tree: Mapping[str, Any] = field(default_factory=dict)

    def get(self, path: str) -> Any:
        """The value at a dotted path, None when there is none. Numbers index lists."""
        here: Any = self.tree
        for step in path.split("."):
            if isinstance(here, Mapping):
                here = here.get(step)
            elif isinstance(here, Sequence) and not isinstance(here, str) and step.lstrip("-").isdigit():
                here = here[int(step)] if -len(here) <= int(step) < len(here) else None
            else:
                return None
        return here

    def has(self, path: str) -> bool:
        return self.get(path) is not None

    def text(self, path: str) -> str:
        """A scalar as text, "" when absent or no scalar."""
        value = self.get(path)
        return "" if value is None or isinstance(value, (Mapping, list)) else str(value)

    def number(self, path: str) -> float | None:
        """A finite number, or None when absent or none. Booleans are none."""
        value = self.get(path)
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            return None
        try:
            number = float(value)
        except (ValueError, OverflowError):
            return None
        return number if isfinite(number) else None

    def items(self, path: str) -> list[Any]:
        """A list, [] when absent or none."""
        value = self.get(path)
        return value if isinstance(value, list) else []

    def members(self, path: str) -> Mapping[str, Any]:
        """A mapping, {} when absent or none."""
        value = self.get(path)
        return value if isinstance(value, Mapping) else {}

    def quote(self, path: str, text: str | None = None) -> Quote:
        """The value at `path` (or `text` from inside it) as evidence."""
        shown = str(self.get(path)) if text is None else text
        shown = mask(shown)
        return Quote(f"context:{path}", None, shown if len(shown) <= _QUOTE_CHARS else shown[:_QUOTE_CHARS] + "…")


def read_context(path: Path) -> Context:
    """Raises DoctorError (`context_unreadable`) when it is no readable YAML mapping, or one beyond the limits."""
    try:
        if (size := path.stat().st_size) > _BYTES_AT_MOST:
            raise _unreadable(path, f"has {size} bytes, at most {_BYTES_AT_MOST} are read")
        tree = parsed(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _unreadable(path, f"cannot be read: {error}") from error
    if tree is None:
        tree = {}
    if not isinstance(tree, dict):
        raise _unreadable(path, f"must be a mapping, found {type(tree).__name__}")
    return Context(masked(tree))


def _unreadable(path: Path, why: str) -> DoctorError:
    return DoctorError(f"the context {path} {why}", reason="context_unreadable", fix="Give a YAML mapping, as `headway doctor collect` writes it.")


def masked(value: Any, key: str = "") -> Any:
    """A copy with text keys and without secrets. `key`: the name that the value has."""
    if isinstance(value, Mapping):
        return _masked_mapping(value)
    if isinstance(value, (list, tuple)):
        return _masked_list(value, key)
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, str) else value.decode("utf-8", "replace")
        return MASK if text and names_a_secret(key) else mask(text)
    if isinstance(value, float) and not isfinite(value):
        return None  # a scrape may hold NaN: nothing was measured
    return value if isinstance(value, (int, float, bool, type(None))) else mask(str(value))


def _masked_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    named = value.get("name")
    is_secret = value.get("kind") == "Secret"
    safe: dict[str, Any] = {}
    for name, member in value.items():
        if name == "value" and isinstance(named, str):  # {name: HF_TOKEN, value: ...}
            safe[str(name)] = masked(member, named)
        elif is_secret and name in ("data", "stringData") and isinstance(member, Mapping):
            safe[str(name)] = {str(inner): MASK for inner in member}
        else:
            safe[str(name)] = masked(member, str(name))
    return safe


def _masked_list(value: Sequence[Any], key: str) -> list[Any]:
    """Also words of a command: what follows `--api-key` is a secret, up to the next option."""
    safe: list[Any] = []
    secret = False
    for member in value:
        if isinstance(member, str) and member.startswith("-"):
            secret = "=" not in member and names_a_secret(member.lstrip("-"))
        elif secret and isinstance(member, str):
            safe.append(MASK)
            continue
        safe.append(masked(member, key))
    return safe
