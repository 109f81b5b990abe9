from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.engine.stop_strings import Piece, StopStrings

LETTERS = st.text(alphabet="ab", max_size=24)
STOPS = st.lists(st.text(alphabet="ab", min_size=1, max_size=5), max_size=4)


def run(pieces: list[str], stops: list[str], include: bool = False) -> tuple[list[str], str | None]:
    """Feed the pieces until a match, as an engine does; the deltas and the match."""
    watch = StopStrings(stops, include)
    deltas = []
    for piece in pieces:
        text, matched = watch.feed(piece)
        deltas.append(text)
        if matched is not None:
            return deltas, matched
    return [*deltas, watch.flush()], watch.matched


def reference(text: str, stops: list[str], include: bool = False) -> tuple[str, str | None]:
    found = [(text.index(stop), text.index(stop) + len(stop), stop) for stop in stops if stop in text]
    if not found:
        return text, None
    start, end, stop = min(found)
    return text[: end if include else start], stop


def split(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(places)]


@pytest.mark.parametrize(
    ("pieces", "stops", "include", "expected", "matched"),
    [
        (["A", "B", "C", "DEF", "G", "HI", "J", "K"], ["DEFGHIJ"], False, "ABC", "DEFGHIJ"),
        (["A", "B", "C", "DEF", "G", "HX"], ["DEFGHIJ"], False, "ABCDEFGHX", None),
        ([" Paris is"], ["Pari"], False, " ", "Pari"),
        (["A", "B", "C", "DEF", "G", "HI", "J", "K"], ["HI", "DEF"], False, "ABC", "DEF"),
        (["A", "B", "C", "DEF", "G", "HI", "J", "K"], ["DEFGHIJ"], True, "ABCDEFGHIJ", "DEFGHIJ"),
        (["A", "B", "C", "DEF", "G", "H"], ["DEFGHIJ"], False, "ABCDEFGH", None),
        (["text"], [], False, "text", None),
        (["🙂🙃", "🙂e\u0301"], ["🙂\u0065"], False, "🙂🙃", "🙂e"),
    ],
)
def test_cases(pieces: list[str], stops: list[str], include: bool, expected: str, matched: str | None) -> None:
    deltas, found = run(pieces, stops, include)
    assert "".join(deltas) == expected
    assert found == matched


def test_no_delta_shows_a_letter_of_the_stop_string() -> None:
    deltas, _ = run(["A", "B", "C", "DEF", "G", "HI", "J", "K"], ["DEFGHIJ"])
    assert deltas == ["A", "B", "C", "", "", "", ""]


def test_near_miss_is_given_out_as_soon_as_it_is_certain() -> None:
    watch = StopStrings(["DEFGHIJ"])
    assert [watch.feed(p) for p in ("DEF", "G", "HX", "Y")] == [Piece(""), Piece(""), Piece("DEFGHX"), Piece("Y")]
    assert watch.flush() == ""


@settings(max_examples=400, deadline=None)
@given(text=LETTERS, stops=STOPS, include=st.booleans(), cuts=st.lists(st.integers(0, 99), max_size=8))
def test_any_split_gives_the_answer_of_the_whole_text(text: str, stops: list[str], include: bool, cuts: list[int]) -> None:
    deltas, matched = run(split(text, cuts), stops, include)
    assert ("".join(deltas), matched) == reference(text, stops, include)


@settings(max_examples=400, deadline=None)
@given(text=LETTERS, stops=STOPS)
def test_exactly_the_longest_possible_beginning_is_held_back(text: str, stops: list[str]) -> None:
    watch = StopStrings(stops)
    given_out, fed = "", ""
    for letter in text:
        fed += letter
        piece = watch.feed(letter)
        given_out += piece.text
        if piece.matched is not None:
            return
        held = max((n for stop in stops for n in range(len(stop)) if n and fed.endswith(stop[:n])), default=0)
        if not any(stop in fed for stop in stops):  # otherwise a match waits, and the text in front of it with it
            assert given_out == fed[: len(fed) - held]


@settings(max_examples=400, deadline=None)
@given(early=LETTERS, late=LETTERS, stops=STOPS, include=st.booleans(), cuts=st.lists(st.integers(0, 99), max_size=6))
def test_before_min_tokens_no_match_ends(early: str, late: str, stops: list[str], include: bool, cuts: list[int]) -> None:
    watch = StopStrings(stops, include)
    out = "".join(watch.feed(piece, may_match=False).text for piece in split(early, cuts))
    assert watch.matched is None
    for piece in split(late, cuts):
        out += watch.feed(piece).text
    out += watch.flush()
    text = early + late
    ends = [(i, i + len(s), s) for s in stops for i in range(len(text)) if text.startswith(s, i) and i + len(s) > len(early)]
    if not ends:
        assert (out, watch.matched) == (text, None)
    else:
        start, end, stop = min(ends)
        assert watch.matched == stop
        # Text that was given out before stop strings counted stays given out.
        assert out == text[: end if include else start]


def test_a_match_that_begins_before_min_tokens_and_ends_after_counts() -> None:
    watch = StopStrings(["STOP"])
    assert watch.feed("a STOP b ST", may_match=False) == Piece("a STOP b ")
    assert watch.feed("OP c") == Piece("", "STOP")


def test_a_match_waits_for_one_that_starts_earlier() -> None:
    watch = StopStrings(["bc", "abcd"])
    assert watch.feed("xabc") == Piece("x")
    assert watch.feed("d") == Piece("", "abcd")
    watch = StopStrings(["bc", "abcd"])
    assert watch.feed("xabc") == Piece("x")
    assert watch.feed("x") == Piece("a", "bc")
    watch = StopStrings(["bc", "abcd"])
    assert watch.feed("xabc") == Piece("x")
    assert (watch.flush(), watch.matched) == ("a", "bc")


def test_of_two_that_start_together_the_shorter_ends_the_text_at_once() -> None:
    assert StopStrings(["abcd", "ab"], include=True).feed("xabcd") == Piece("xab", "ab")


def test_after_a_match_nothing_more_comes() -> None:
    watch = StopStrings(["."])
    assert watch.feed("one. two. ") == Piece("one", ".")
    assert watch.feed("more") == Piece("", ".")
    assert watch.flush() == ""


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        StopStrings([""])


class CountingText(str):
    """Counts how many of its characters are looked at one by one."""

    looked_at = 0

    def __iter__(self):  # type: ignore[no-untyped-def]
        for letter in str.__iter__(self):
            CountingText.looked_at += 1
            yield letter


def test_every_character_is_looked_at_once_however_long_the_text_and_the_stop() -> None:
    stop = "a" * 500 + "b"
    watch = StopStrings([stop])
    CountingText.looked_at = 0
    given_out = sum(len(watch.feed(CountingText("a" * 5)).text) for _ in range(2000))
    # Once for the quick check of the first piece, once in the automaton.
    assert CountingText.looked_at <= 10_000 + 5
    assert given_out == 10_000 - 500
