"""One fixture, retold. The same seed gives the same text."""

from __future__ import annotations

from random import Random

from tests.doctor.judging import Known, Material
from tests.doctor.rewriting.dressing import coloured, dressed
from tests.doctor.rewriting.names import renamed
from tests.doctor.rewriting.noise import with_noise
from tests.doctor.rewriting.numbers import redrawn


def rewritten(known: Known, seed: int) -> Known:
    random = Random(f"{known.name}:{seed}")
    told = renamed(redrawn(known, random), random)
    lines = told.material.log.decode("utf-8").replace("\r\n", "\n").split("\n")
    last = [lines.pop()] if lines and not lines[-1] else []
    lines = with_noise(lines, random)
    if random.random() < 0.5:
        lines = coloured(lines)
    lines = dressed(lines, random) + last
    ending = "\r\n" if random.random() < 0.3 else "\n"
    return Known(known.name, Material(ending.join(lines).encode(), told.material.context), told.expectation)
