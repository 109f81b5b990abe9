"""Pieces of documents."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import RequestError
from headway.router.stores.vectors.chunking import Chunking, pieces, text_of_file

KINDS = ["Hello{n} there. ", "word{n} ", "一句{n}话。", "LONG", "\n", "é{n}", "🙂{n} ", "end{n}! "]


def unique(kinds: list[str]) -> str:
    """Parts with running numbers, so that each piece is found in one place only."""
    long = "".join
    return long(long(f"<{n:04d}{at:02d}>" for at in range(12)) if kind == "LONG" else kind.format(n=n) for n, kind in enumerate(kinds))


texts = st.lists(st.sampled_from(KINDS), max_size=60).map(unique)


@given(texts, st.sampled_from([(16, 0), (16, 8), (40, 10)]))
def test_pieces_are_small_enough_and_every_character_is_in_one(text: str, sizes: tuple[int, int]) -> None:
    found = pieces(text, Chunking(*sizes))
    assert all(len(piece.encode()) <= sizes[0] * 4 for piece in found)
    covered = [character.isspace() for character in text]
    place = 0
    for piece in found:
        place = text.index(piece, place)  # in order; a short piece may also stand somewhere before
        covered[place : place + len(piece)] = [True] * len(piece)
    assert all(covered)


def test_neighbours_share_their_ends() -> None:
    found = pieces("".join(f"Sentence number {number}. " for number in range(40)), Chunking(40, 16))
    assert len(found) > 3
    for first, second in itertools.pairwise(found):
        assert second.split(". ")[0] in first


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.md", "# Ü\n".encode(), "# Ü\n"),
        ("a.csv", b"name,age\nbo,3\n", "name: bo; age: 3"),
        ("a.json", b'{"a": {"b": [1, "x"]}}', "a.b: 1\na.b: x"),
        ("a.html", b"<html><head><title>t</title></head><body><h1>A&amp;B</h1><p>c<br>d</p><style>x</style></body></html>", "A&B\nc\nd"),
    ],
)
def test_text_of_files(name: str, content: bytes, text: str) -> None:
    assert text_of_file(name, content) == text


def test_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(RequestError):
        Chunking(20, 15)
