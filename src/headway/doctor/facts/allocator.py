"""What an allocator says when memory ran out: what was asked for, what is free, and who holds the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.memory import OUT_OF_MEMORY, SIZE, gib

# The message is one line or several; these words stand in its later pieces only.
PIECES: Final = sight(
    "memory in use", "is allocated by PyTorch", "reserved by PyTorch but unallocated", "private pools (e.g., CUDA Graphs)",
    "has a total capacity of", "GiB total capacity;", "Tried to allocate", pattern=r".",
)  # fmt: skip
SIGHTS: Final = (PIECES,)

_LINES_OF_ONE: Final = 8  # a wrapped message has at most so many lines
_NEW: Final[dict[str, re.Pattern[str]]] = {
    "asked": re.compile(rf"Tried to allocate ({SIZE})"),
    "total": re.compile(rf"(?:has a total capacity of |GPU \d+; )({SIZE})"),
    "free": re.compile(rf"(?:of which ({SIZE}) is free|; ({SIZE}) free;)"),
    "own": re.compile(rf"this process has ({SIZE}) memory in use"),
    "allocated": re.compile(rf"(?:Of the allocated memory ({SIZE}) is allocated by PyTorch|; ({SIZE}) already allocated;)"),
    "unallocated": re.compile(rf"({SIZE}) is reserved by PyTorch but unallocated"),
    "pools": re.compile(rf"({SIZE}) allocated in private pools"),
    "reserved": re.compile(rf"({SIZE}) reserved in total by PyTorch"),
}
_GPU: Final = re.compile(r"GPU (\d+)(?: has a total|; )")
_FOREIGN: Final = re.compile(rf"[Pp]rocess (\d+) has ({SIZE}) memory in use")


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """GiB; None = not said. `foreign`: (pid, GiB) of other processes on the same device, sums that cannot be left out.
    `unallocated`: reserved by the allocator, in no tensor. `pools`: in the private pools of graphs."""

    hit: Hit
    gpu: int
    asked: float | None
    total: float | None
    free: float | None
    own: float | None
    allocated: float | None
    unallocated: float | None
    pools: float | None
    foreign: tuple[tuple[int, float], ...]

    @property
    def foreign_gib(self) -> float:
        """What others hold: as named, else what is missing in the sum total - free - own (CUDA context taken off)."""
        if self.foreign:
            return sum(size for _, size in self.foreign)
        if self.total is None or self.free is None or self.own is None:
            return 0.0
        return max(0.0, self.total - self.free - self.own - 0.75)


def out_of_memory_of(log: Log) -> Sequence[OutOfMemory]:
    """Every allocator message, in the order of the log."""
    pieces = log.hits(PIECES)
    found = []
    for hit in log.hits(OUT_OF_MEMORY):
        later = [
            piece.line.text
            for piece in pieces
            if piece.line.source == hit.line.source and 0 < piece.line.number - hit.line.number <= _LINES_OF_ONE
            and piece.line.process == hit.line.process and not OUT_OF_MEMORY.pattern.search(piece.line.text)
        ]  # fmt: skip
        found.append(_read(hit, " ".join((hit.line.text, *later))))
    return tuple(found)


def _read(hit: Hit, text: str) -> OutOfMemory:
    size = {name: _first(pattern, text) for name, pattern in _NEW.items()}
    allocated, reserved, unallocated = size["allocated"], size.pop("reserved"), size["unallocated"]
    if unallocated is None and allocated is not None and reserved is not None:
        size["unallocated"] = max(0.0, reserved - allocated)
    if size["own"] is None and reserved is not None:
        size["own"] = reserved
    gpu = _GPU.search(text)
    return OutOfMemory(hit, int(gpu[1]) if gpu else 0, foreign=_foreign(text, size["total"], size["free"], size["own"]), **size)


def _foreign(text: str, total: float | None, free: float | None, own: float | None) -> tuple[tuple[int, float], ...]:
    """Other processes. In a container the own process is listed by its outer pid as well: it is left out when counting it
    twice would make the sum larger than the card. Sizes beyond the card (a driver's error under WSL) are left out too."""
    others = [(int(pid), gib(size)) for pid, size in _FOREIGN.findall(text)]
    if total is None:
        return tuple(others)
    others = [(pid, size) for pid, size in others if size <= total]
    used = total - (free or 0.0)
    if own is not None and others and own + sum(size for _, size in others) > used + 0.5:
        twin = min(others, key=lambda other: abs(other[1] - own))
        if abs(twin[1] - own) < 0.5:
            others.remove(twin)
    return tuple(others)


def _first(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    return gib(next(group for group in found.groups() if group)) if found else None
