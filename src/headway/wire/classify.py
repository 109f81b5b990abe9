"""The body of `POST /v1/classify`, checked: what to read, with which head, how long input is treated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Overflow: TypeAlias = Literal["reject", "truncate", "window"]


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """`deadline_ms` counts from the arrival of the request; None = no deadline."""

    deadline_ms: float | None = None
    return_meta: bool = False


@dataclass(frozen=True, slots=True)
class WindowOption:
    """`tokens` with the special ones, `overlap` in content tokens."""

    tokens: int
    overlap: int


@dataclass(frozen=True, slots=True)
class TextInput:
    """One text, or a pair of texts."""

    text: str
    text_pair: str | None = None


@dataclass(frozen=True, slots=True)
class GroundedInput:
    """An answer that is to be supported by a context."""

    answer: str
    context: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class InvalidInput:
    """An item that cannot be read; its siblings go on. `message` is shown."""

    message: str


ClassifyInput: TypeAlias = TextInput | GroundedInput | InvalidInput


@dataclass(frozen=True, slots=True)
class ClassifyRequest:
    """None = the head's own setting."""

    inputs: tuple[ClassifyInput, ...]
    head: str | None = None
    overflow: Overflow | None = None
    max_tokens: int | None = None
    window: WindowOption | None = None
    threshold: float | None = None
    return_tokens: bool = False
    options: CommonOptions = field(default_factory=CommonOptions)
