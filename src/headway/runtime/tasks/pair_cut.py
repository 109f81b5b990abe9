"""How a pair of texts is shortened: the longer one first, as `longest_first` in the tokenizers library."""

from __future__ import annotations


def cut_pair(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens are kept of two texts so that both fit `room`. The shorter one stays whole if it can; else each gets
    half, and the longer one the odd token (the second when they are equally long)."""
    if first + second <= room:
        return first, second
    shorter = min(first, second)
    if shorter > room // 2:
        shorter = room // 2
    longer = room - shorter
    return (longer, shorter) if first > second else (shorter, longer)
