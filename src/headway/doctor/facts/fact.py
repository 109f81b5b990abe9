"""A value with the place it was read at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from headway.doctor.finding import Quote

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    value: T
    quote: Quote
