"""A state as typed parts: what the user said, what stands beside it, what was answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from headway.decisions.question import Content
from headway.runtime.readers.canonical_text import canonical_text
from headway.runtime.row import ItemFailure

Role: TypeAlias = Literal["user", "context", "answer"]
ROLES: Final[tuple[Role, ...]] = ("user", "context", "answer")
# Keys of a state that name a part; all others are context, with their name before them.
KEY_ROLES: Final[Mapping[str, Role]] = {
    "request": "user", "user": "user", "prompt": "user", "answer": "answer", "response": "answer",
    **dict.fromkeys(("source", "context", "document", "tools", "previous_answer"), "context"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """A key of the state: code points [start, end) of its part."""

    role: Role
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class State:
    """`parts` in the order of ROLES, those that are there."""

    parts: Mapping[Role, str]
    fields: Mapping[str, Field]

    @property
    def roles(self) -> tuple[Role, ...]:
        return tuple(self.parts)


def read_state(content: Content) -> State | ItemFailure:
    """Text and arrays are what the user said; text that is a JSON object is read as that object."""
    if isinstance(content, str):
        content = _decoded(content)
    if not isinstance(content, dict):
        text = canonical_text(content)
        if not text.strip():
            return ItemFailure("invalid_input", "the state is blank")
        return State({"user": text}, {"request": Field("user", 0, len(text))})
    blocks: dict[Role, list[tuple[str, str]]] = {}
    for key, value in content.items():
        blocks.setdefault(KEY_ROLES.get(key.lower(), "context"), []).append((key, canonical_text(value)))
    parts: dict[Role, str] = {}
    fields: dict[str, Field] = {}
    for role in ROLES:
        if role in blocks:
            parts[role] = _joined(role, blocks[role], fields)
            if not parts[role].strip():
                return ItemFailure("invalid_input", f"the {role} part of the state is blank")
    return State(parts, fields) if parts else ItemFailure("invalid_input", "the state is empty")


def _decoded(text: str) -> Any:
    if text.strip().startswith("{"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if isinstance(found, dict):
            return found
    return text


def _joined(role: Role, blocks: list[tuple[str, str]], fields: dict[str, Field]) -> str:
    """One known key stands for its part alone; else each value has its key above it. Notes where each value is."""
    if len(blocks) == 1 and blocks[0][0].lower() in KEY_ROLES:
        key, text = blocks[0]
        fields[key] = Field(role, 0, len(text))
        return text
    joined = ""
    for key, text in blocks:
        joined += ("\n\n" if joined else "") + f"{key}:\n"
        fields[key] = Field(role, len(joined), len(joined) + len(text))
        joined += text
    return joined
