"""windows: a text as pieces that a model reads one at a time, every token scored once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """The model reads tokens [start, end) of a text; those from `scored` on count, the ones before are context."""

    start: int
    scored: int
    end: int


def windows(length: int, width: int, stride: int) -> list[Window]:
    """Cover [0, length) with windows of at most `width` tokens that advance by `stride`; each token is scored in exactly one.

    Every window but the first has at least `width - stride` tokens of context before what it scores. Raises ValueError unless
    0 < stride <= width. Source: "Perplexity of fixed-length models" in the documentation of transformers.
    """
    if not 0 < stride <= width:
        raise ValueError(f"a stride must be from 1 to the width, {width}, got {stride}")
    found = [Window(0, 0, min(width, length))] if length else []
    while found and found[-1].end < length:
        scored = found[-1].end
        end = min(scored + stride, length)
        found.append(Window(end - min(width, end), scored, end))
    return found
