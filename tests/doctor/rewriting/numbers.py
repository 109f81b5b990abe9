"""Other numbers for each fixture, consistent among the log, the context and what is expected."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from tests.doctor.judging import Known, Material
from tests.doctor.rewriting.swaps import swapped


@dataclass(frozen=True, slots=True)
class Redraw:
    """`swaps`: text of the fixture -> text of its sibling. `patterns`: pattern of the expectation -> the sibling's."""

    swaps: Mapping[str, str]
    patterns: Mapping[str, str] = field(default_factory=dict)


def redrawn(known: Known, random: Random) -> Known:
    from tests.doctor.rewriting.numbers_elsewhere import ELSEWHERE
    from tests.doctor.rewriting.numbers_memory import MEMORY

    draw: Callable[[Random], Redraw] | None = (MEMORY | ELSEWHERE).get(known.name)
    if draw is not None:
        redraw = draw(random)
        known = swapped(known, redraw.swaps, redraw.patterns)
    factor = random.uniform(0.85, 1.2)
    text = _rates(known.material.log.decode("utf-8"), factor)
    return Known(known.name, Material(_table(text, factor).encode(), known.material.context), known.expectation)


def _rates(text: str, factor: float) -> str:
    """Throughput of statistics lines."""
    return re.sub(r"(?<=throughput: )\d+\.\d(?= tokens/s)", lambda found: f"{float(found[0]) * factor:.1f}", text)


def _table(text: str, factor: float) -> str:
    """Seconds of tables of requests, all slower or faster alike."""
    columns: list[bool] = []
    lines: list[str] = []
    for line in text.split("\n"):
        words = re.split(r"(\s+)", line)
        if "prompt_tok" in line and "_s" in line:
            columns = [word.endswith("_s") for word in words if word.strip()]
        elif columns and re.match(r"r\d+\s", line) and len(line.split()) == len(columns):
            cells = iter(columns)
            words = [_scaled(word, next(cells), factor) if word.strip() else word for word in words]
        lines.append("".join(words))
    return "\n".join(lines)


def _scaled(word: str, is_seconds: bool, factor: float) -> str:
    return f"{float(word) * factor:.2f}" if is_seconds else word
