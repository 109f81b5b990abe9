"""Ranges of numbers in a configuration document."""

from __future__ import annotations

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from headway.router.config.document.node import Node


class NumericRange(Node):
    """At most one lower and one upper end, and some number between them. Without ends every number is in it."""

    gt: float | None = None
    gte: float | None = None
    lt: float | None = None
    lte: float | None = None

    @model_validator(mode="after")
    def _is_a_range(self) -> NumericRange:
        if (self.gt is not None and self.gte is not None) or (self.lt is not None and self.lte is not None):
            raise PydanticCustomError("range_twice", "a range has one lower end (gt or gte) and one upper end (lt or lte), not both")
        lower = self.gt if self.gt is not None else self.gte
        upper = self.lt if self.lt is not None else self.lte
        if lower is not None and upper is not None and (lower > upper or (lower == upper and (self.gt is not None or self.lt is not None))):
            raise PydanticCustomError("range_empty", "no number is in this range")
        return self

    @property
    def ends(self) -> tuple[float, ...]:
        return tuple(end for end in (self.gt, self.gte, self.lt, self.lte) if end is not None)

    def holds(self, value: float) -> bool:
        return not (
            (self.gt is not None and not value > self.gt)
            or (self.gte is not None and not value >= self.gte)
            or (self.lt is not None and not value < self.lt)
            or (self.lte is not None and not value <= self.lte)
        )


class NumericPredicate(NumericRange):
    """A range with at least one end."""

    @model_validator(mode="after")
    def _has_an_end(self) -> NumericPredicate:
        if not self.ends:
            raise PydanticCustomError("predicate_empty", "a predicate needs at least one of gt, gte, lt, lte")
        return self
