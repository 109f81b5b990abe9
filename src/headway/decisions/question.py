"""A question about a state, whatever wire form it came in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.wire.decisions import QUESTION_TYPES, Content, Option, Question, QuestionType

__all__ = ["QUESTION_TYPES", "Content", "Option", "Question", "QuestionType", "Subject"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What the questions are about. `media` are decoded images and videos, in order; `max_tokens` is the scan budget."""

    state: Content
    media: tuple[Any, ...] = ()
    max_tokens: int | None = None
