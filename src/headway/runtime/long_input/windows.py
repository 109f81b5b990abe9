"""Windows over a long input: which content tokens each forward pass reads, and which window speaks for a token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open range of content tokens [start, end) that one forward pass reads."""

    start: int
    end: int


class WindowError(ValueError):
    """Windows that cannot be laid out: a width, an overlap or a content that makes none."""


def windows(length: int, width: int, overlap: int) -> list[Window]:
    """Cover [0, length) with windows of `width` tokens that share `overlap`; the last one ends at `length`.

    `width` is what is left of a window beside its special tokens. Every token is in at least one window, and all
    windows but an only one have `width` tokens. Raises WindowError unless 0 <= overlap < width and length > 0.
    """
    if not 0 <= overlap < width:
        raise WindowError(f"an overlap of {overlap} tokens does not fit windows of {width} content tokens")
    if length <= 0:
        raise WindowError("there is no token to read")
    if length <= width:
        return [Window(0, length)]
    starts = [*range(0, length - width, width - overlap), length - width]
    return [Window(start, start + width) for start in starts]


def covers(laid: Sequence[Window], length: int) -> bool:
    """Whether every one of `length` tokens is in some window. Windows are in order of their starts."""
    reached = 0
    for window in laid:
        if window.start > reached:
            return False
        reached = max(reached, window.end)
    return reached >= length


def deepest(laid: Sequence[Window], length: int) -> list[int]:
    """For each of `length` tokens the window in which it has most context on its shorter side, the earlier one on ties.

    An end of the text counts as an end of context like any other. `laid` are windows in order that cover the text.
    """
    chosen = [0] * length
    depth = [-1] * length
    for number, window in enumerate(laid):
        for token in range(window.start, window.end):
            margin = min(token - window.start, window.end - 1 - token)
            if margin > depth[token]:
                chosen[token], depth[token] = number, margin
    return chosen
