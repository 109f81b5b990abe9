"""How many options fit into one input, by their tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

FEW: Final = 16  # so many options are asked at once without counting


def fitting_options(count: int, comfortable: int, room: Callable[[], int], lengths: Callable[[], Sequence[int]]) -> int:
    """`comfortable` if all options fit into `room` tokens together; else so many that any group of that size fits. At least 2:
    what does not fit then is refused as too long. `room` and `lengths` are only asked for more than a few options."""
    if count <= FEW:
        return comfortable
    left, sizes = room(), lengths()
    if sum(sizes) <= left:
        return comfortable
    return max(2, min(comfortable, left // max(sizes)))
