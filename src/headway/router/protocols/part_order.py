"""PartOrder: the parts of a streamed answer one after the other, for protocols in which one block is open at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import orjson

from headway.router.upstream.errors import UpstreamError
from headway.wire.answer_delta import Delta

MOST_HELD: Final = 16 * 1024 * 1024  # characters
Kind: TypeAlias = tuple[str, int]


class PartOrder:
    """Backends may write several tool calls at once, their pieces alternating. The call that began first passes as it comes; pieces of anything else
    are held until its arguments are a whole JSON value, or the answer ends. Pieces in their usual order are never held."""

    def __init__(self) -> None:
        self._open: Kind | None = None
        self._arguments: list[str] = []  # of the open call
        self._held: list[tuple[Kind, Delta]] = []
        self._size = 0

    def take(self, delta: Delta) -> list[Delta]:
        """What can be said now, each with one part. Raises UpstreamError when more is held than MOST_HELD."""
        found: list[Delta] = []
        for kind, part in _parts(delta):
            if self._goes_on(kind):
                found.append(self._said(kind, part))
            else:
                self._hold(kind, part)
            found += self._released()
        return found

    def rest(self) -> list[Delta]:
        """What is still held when the answer has ended, part by part in the order in which they began."""
        found: list[Delta] = []
        while self._held:
            found += self._begin_next()
        return found

    def _goes_on(self, kind: Kind) -> bool:
        return kind == self._open or (not self._held and self._may_close())

    def _may_close(self) -> bool:
        return self._open is None or self._open[0] != "call" or _is_whole(self._arguments)

    def _said(self, kind: Kind, part: Delta) -> Delta:
        if kind != self._open:
            self._open, self._arguments = kind, []
        self._arguments += [call.arguments for call in part.calls]
        return part

    def _hold(self, kind: Kind, part: Delta) -> None:
        self._size += _length(part)
        if self._size > MOST_HELD:
            raise UpstreamError("the backend sent too many pieces of other tool calls before the first one was complete")
        self._held.append((kind, part))

    def _released(self) -> Iterator[Delta]:
        while self._held and self._may_close():
            yield from self._begin_next()

    def _begin_next(self) -> list[Delta]:
        """Everything that is held of the part that began first; of text only what came before something else."""
        first = self._held[0][0]
        mine = [part for kind, part in self._held if kind == first] if first[0] == "call" else [self._held[0][1]]
        self._held = [entry for entry in self._held if entry[0] != first] if first[0] == "call" else self._held[1:]
        self._size -= sum(map(_length, mine))
        return [self._said(first, part) for part in mine]


def _parts(delta: Delta) -> Iterator[tuple[Kind, Delta]]:
    if delta.reasoning:
        yield ("reasoning", 0), Delta(reasoning=delta.reasoning)
    if delta.text:
        yield ("text", 0), Delta(text=delta.text, logprobs=delta.logprobs)
    if delta.refusal:
        yield ("refusal", 0), Delta(refusal=delta.refusal)
    for call in delta.calls:
        yield ("call", call.index), Delta(calls=(call,))


def _is_whole(pieces: list[str]) -> bool:
    """Only a piece that ends an object is worth a look at all of them."""
    last = next((piece for piece in reversed(pieces) if piece.strip()), "")
    if not last.rstrip().endswith("}"):
        return False
    try:
        orjson.loads("".join(pieces))
    except orjson.JSONDecodeError:
        return False
    return True


def _length(part: Delta) -> int:
    return len(part.reasoning) + len(part.text) + len(part.refusal) + sum(len(call.arguments) + len(call.name) for call in part.calls)
