"""Every pattern compiles, matches within its anchors, and comes to an end on lines made to hold it up."""

from __future__ import annotations

import pytest

from headway.doctor.evidence.log.scan import read_text
from headway.doctor.evidence.sight import Sight
from headway.doctor.rules.catalogue import sights

_LENGTH = 6_000


def hostile(sight: Sight, filler: str) -> bytes:
    anchor = sight.anchors[0]
    run = filler * (_LENGTH // len(filler))
    mixed = (anchor + filler) * (_LENGTH // (len(anchor) + len(filler)))
    return "\n".join((run + anchor, anchor + run, mixed)).encode()


def test_all_compile_and_have_anchors() -> None:
    for sight in sights():
        assert sight.anchors
        assert all(len(anchor) >= 2 for anchor in sight.anchors)
        assert sight.pattern.search("") is None or sight.pattern.pattern == ""


@pytest.mark.parametrize("filler", ["a", " ", "0"])
@pytest.mark.timeout(120)
def test_long_lines_come_to_an_end(filler: str) -> None:
    for sight in sights()[::6]:
        assert read_text("log.txt", hostile(sight, filler), (sight,)).lines == 3


@pytest.mark.long
@pytest.mark.parametrize("filler", ["a", " ", "0", "1,", "(", "'", "\\", "a=", "1.5 GiB ", "GPU ", "a: ", "x y ", "|", "\t"])
@pytest.mark.timeout(600)
def test_more_long_lines_come_to_an_end(filler: str) -> None:
    for sight in sights():
        assert read_text("log.txt", hostile(sight, filler), (sight,)).lines == 3
