"""A question about a state, whatever wire form it came in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Content: TypeAlias = Any  # text, or any JSON value that stands for text
QuestionType: TypeAlias = Literal["choice", "noul", "score", "set", "span"]
QUESTION_TYPES: tuple[QuestionType, ...] = ("choice", "noul", "score", "set", "span")


@dataclass(frozen=True, slots=True)
class Option:
    """An option, level or label. For a noul the keys are "false" and "true", for a score "0", "1", ..."""

    key: str
    description: Content | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """`options` in the order given; both sides of a noul are always there, false first. The id is not here: it must not
    influence the answer."""

    type: QuestionType
    instructions: Content | None
    options: tuple[Option, ...]
    over: Any | None = None
    preset: str | None = None
    threshold: float | None = None
    head: Literal["router", "broad"] | None = None
    truncate: bool = False
    require_full_input: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """What the questions are about. `media` are decoded images and videos, in order; `max_tokens` is the scan budget."""

    state: Content
    media: tuple[Any, ...] = ()
    max_tokens: int | None = None
