"""The `key: number` pairs of a state, which packages with number pooling read beside its words."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

MAX_PAIRS: Final = 16
NUMBER_FEATURES: Final = 4
_PAIR = re.compile(r"([A-Za-z][A-Za-z0-9_ .\-]{0,40}?)\s*[:=]\s*(-?\d+(?:\.\d+)?)\s*(%?)")


@dataclass(frozen=True, slots=True)
class NumberPair:
    """`line` is what stands before the first colon of the line, if that is not the key ("zone_a: dirt=34"), else the key."""

    key: str
    line: str
    value: float


def number_pairs(text: str) -> list[NumberPair]:
    """The first `MAX_PAIRS` of them, in order."""
    found: list[NumberPair] = []
    for line in text.splitlines():
        head = line.split(":", 1)[0].strip()
        for match in _PAIR.finditer(line):
            key = match[1].strip()
            found.append(NumberPair(key, head or key, float(match[2])))
            if len(found) == MAX_PAIRS:
                return found
    return found


def number_features(value: float) -> npt.NDArray[np.float32]:
    """What a model sees of a number [4]: clipped hundredths, signed log, whether it is a fraction, clipped tenths."""
    size = abs(value)
    return np.array(
        [
            max(-1.0, min(1.0, value / 100.0)),
            math.copysign(math.log1p(size), value) / 5.0,
            1.0 if 0.0 < size < 1.0 else 0.0,
            max(-1.0, min(1.0, value / 10.0)),
        ],
        dtype=np.float32,
    )
