"""Every pattern compiles, matches within its anchors, and comes to an end on lines made to hold it up."""

from __future__ import annotations

import re

import pytest

from headway.doctor.evidence.log.scan import read_text
from headway.doctor.evidence.sight import Sight, sight
from headway.doctor.rules.catalogue import sights

_LENGTH = 6_000


def hostile(seen: Sight, filler: str) -> bytes:
    anchor = seen.anchors[0]
    run = filler * (_LENGTH // len(filler))
    mixed = (anchor + filler) * (_LENGTH // (len(anchor) + len(filler)))
    return "\n".join((run + anchor, anchor + run, mixed)).encode()


def words_of(seen: Sight) -> list[str]:
    """The words that stand in a pattern: a line full of them begins to match again and again."""
    plain = re.sub(r"\\.|\(\?P<\w+>|\(\?[:=!<>]*", " ", seen.pattern.pattern)
    return sorted({found.strip() for found in re.findall(r"[A-Za-z_]{3,}[ A-Za-z_=:]*", plain)})


def test_of_a_long_line_a_pattern_sees_what_is_around_its_anchor() -> None:
    everything = sight("the anchor", pattern=r"(?s)(?P<seen>.*)", reach=500)
    line = "x" * 900_000 + "the anchor" + "y" * 900_000
    found = read_text("log.txt", line.encode(), (everything,)).first(everything)
    assert found is not None
    assert len(found["seen"]) == 1024 + 500


def test_all_compile_and_have_anchors() -> None:
    for seen in sights():
        assert seen.anchors
        assert all(len(anchor) >= 2 for anchor in seen.anchors)
        assert seen.pattern.search("") is None or seen.pattern.pattern == ""


@pytest.mark.parametrize("filler", ["a", " ", "0"])
@pytest.mark.timeout(120)
def test_long_lines_come_to_an_end(filler: str) -> None:
    for seen in sights()[::6]:
        assert read_text("log.txt", hostile(seen, filler), (seen,)).lines == 3


@pytest.mark.timeout(120)
def test_lines_of_a_patterns_own_words_come_to_an_end() -> None:
    for seen in sights()[::5]:
        for word in words_of(seen):
            assert read_text("log.txt", hostile(seen, f"{word} 1 "), (seen,)).lines == 3


@pytest.mark.long
@pytest.mark.timeout(600)
def test_more_lines_of_a_patterns_own_words_come_to_an_end() -> None:
    for seen in sights():
        for filler in (form for word in words_of(seen) for form in (f"{word} ", f"{word} 1 ", f"{word}1.", word)):
            assert read_text("log.txt", hostile(seen, filler), (seen,)).lines == 3


@pytest.mark.long
@pytest.mark.parametrize("filler", ["a", " ", "0", "1,", "(", "'", "\\", "a=", "1.5 GiB ", "GPU ", "a: ", "x y ", "|", "\t"])
@pytest.mark.timeout(600)
def test_more_long_lines_come_to_an_end(filler: str) -> None:
    for seen in sights():
        assert read_text("log.txt", hostile(seen, filler), (seen,)).lines == 3
