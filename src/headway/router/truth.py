"""Kleene's three truth values."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Truth(Enum):
    """FALSE < UNKNOWN < TRUE; AND is the least, OR the greatest of its parts, NOT turns the order round."""

    FALSE = 0
    UNKNOWN = 1
    TRUE = 2

    @classmethod
    def of(cls, known: bool) -> Truth:
        return cls.TRUE if known else cls.FALSE

    def negated(self) -> Truth:
        return Truth(2 - self.value)


def all_of(parts: Iterable[Truth]) -> Truth:
    """AND; TRUE when there are none."""
    found = Truth.TRUE
    for part in parts:
        if part is Truth.FALSE:
            return part
        if part is Truth.UNKNOWN:
            found = part
    return found


def any_of(parts: Iterable[Truth]) -> Truth:
    """OR; FALSE when there are none."""
    found = Truth.FALSE
    for part in parts:
        if part is Truth.TRUE:
            return part
        if part is Truth.UNKNOWN:
            found = part
    return found
