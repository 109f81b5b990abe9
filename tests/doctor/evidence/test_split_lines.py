"""Lines that a container runtime cut: an event over the cut is seen, and quoted with the line it stands in."""

from __future__ import annotations

import json

import pytest

from headway.doctor.evidence.log.scan import read_text
from headway.doctor.evidence.log.split_lines import rejoined
from headway.doctor.evidence.sight import sight

BOOM = sight("the tank burst", pattern=r"the tank burst at (?P<bar>\d+) bar")
_FILLER = "x" * 40


def cri(stream: str, tag: str, text: str) -> str:
    return f"2026-11-29T09:14:03.123456789Z {stream} {tag} {text}\n"


def docker(text: str, stream: str = "stderr") -> str:
    return json.dumps({"log": text, "stream": stream, "time": "2026-11-29T09:14:03.1Z"}, separators=(",", ":")) + "\n"


def quotes(text: str) -> list[tuple[int | None, str]]:
    return [(hit.quote().line, hit.quote().text) for hit in read_text("log.txt", text.encode(), (BOOM,)).hits(BOOM)]


def test_an_event_over_the_cut_of_cri() -> None:
    text = cri("stderr", "F", "first") + cri("stderr", "P", f"{_FILLER} the ta") + cri("stderr", "F", f"nk burst at 7 bar {_FILLER}")
    assert quotes(text) == [(2, f"{_FILLER} the tank burst at 7 bar {_FILLER}")]


def test_parts_of_two_streams_between_each_other() -> None:
    text = cri("stdout", "P", "the tank ") + cri("stderr", "P", "ordinary ") + cri("stdout", "P", "burst at ") + cri("stderr", "F", "words") + cri("stdout", "F", "9 bar")
    log = read_text("log.txt", text.encode(), (BOOM,))
    assert [hit.number("bar") for hit in log.hits(BOOM)] == [9.0]
    assert log.lines == 5


def test_what_stands_in_a_later_part_has_that_parts_number() -> None:
    text = cri("stdout", "P", "y" * 400) + cri("stdout", "P", "z" * 400) + cri("stdout", "F", f"w the tank burst at 3 bar {_FILLER}")
    assert quotes(text) == [(3, f"the tank burst at 3 bar {_FILLER}")]


def test_an_event_over_the_cut_of_docker() -> None:
    long = '"' + "a" * 16_370
    text = docker("start\n") + docker(long + " the tank bu") + docker("rst at 12 bar now\n") + docker("the tank burst at 1 bar\n")
    found = read_text("log.txt", text.encode(), (BOOM,)).hits(BOOM)
    assert [(hit.line.number, hit.number("bar")) for hit in found] == [(2, 12.0), (4, 1.0)]
    assert found[0].quote().line == 3


def test_a_short_message_without_a_line_feed_is_whole() -> None:
    assert quotes(docker("the tank burst") + docker(" at 5 bar\n")) == []


@pytest.mark.parametrize("text", [cri("stdout", "P", "the tank burst at 5 bar"), docker("b" * 16_400 + " the tank burst at 5 bar")])
def test_a_last_part_that_never_comes(text: str) -> None:
    assert len(quotes(text)) == 1
    assert rejoined(text, text.split("\n")[:-1]).held == 1


def test_parts_on_both_sides_of_a_block() -> None:
    """Logs are read in blocks of a megabyte."""
    line = cri("stdout", "F", "z" * 70)
    before = line * ((1 << 20) // len(line))
    text = before + cri("stdout", "P", "the tank bu" + "") + cri("stdout", "F", "rst at 8 bar") + line * 3
    shifts = [cri("stdout", "F", "s" * size) for size in range(0, 160, 20)]
    assert [len(quotes(shift + text)) for shift in shifts] == [1] * len(shifts)


def test_lines_of_nobody_are_as_they_were() -> None:
    raws = ["a", '{"log":"short","stream":"stdout"}', "stdout P is a word"]
    assert rejoined("\n".join((*raws, "")), raws).raws == raws
