"""ThinkingMarks: the texts around a model's reasoning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThinkingMarks:
    """`opens`: an answer begins with reasoning although no mark stands in front of it."""

    begin: str = "<think>"
    end: str = "</think>"
    opens: bool = False


THINK_TAGS = ThinkingMarks()
