"""A stream of bytes cut into blocks of whole lines. A line of a hundred megabytes is cut, never held whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headway.doctor.evidence.log.opening import Stream

_BLOCK: Final = 1 << 20
_LINE_AT_MOST: Final = 4 << 20


def blocks(stream: Stream) -> Iterator[bytes]:
    """Blocks that end at a line's end. What goes over the limit of a line is dropped up to its LF."""
    rest = b""
    dropping = False
    while piece := stream.read(_BLOCK):
        if dropping:
            cut = piece.find(b"\n")
            if cut < 0:
                continue
            piece, dropping = piece[cut:], False
        rest += piece
        cut = rest.rfind(b"\n")
        if cut >= 0:
            yield rest[: cut + 1]
            rest = rest[cut + 1 :]
        elif len(rest) > _LINE_AT_MOST:
            rest, dropping = rest[:_LINE_AT_MOST], True
    if rest:
        yield rest
