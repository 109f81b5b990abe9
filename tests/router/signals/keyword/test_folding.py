"""Folding, and the way back to the original text."""

from __future__ import annotations

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from headway.router.signals.keyword.folding import fold, original_spans

HARD = st.sampled_from([*"aZ1 é", "e\u0301", "ß", "ẞ", "İ", "\u0345", "ﬁ", "\u1100", "\u1161", "\u11a8", "각", "क", "ि", "ो", "\u09c7", "\u09be", "ก", "ำ", "Σ", "ΐ", "😀", "\u030a"])
texts = st.text(max_size=30) | st.lists(HARD, max_size=12).map("".join)


@settings(max_examples=300, deadline=None)
@given(texts, st.booleans())
def test_spellings_of_the_same_text_fold_alike(text: str, case_sensitive: bool) -> None:
    folded = fold(text, case_sensitive)
    assert folded == fold(unicodedata.normalize("NFD", text), case_sensitive)
    assert folded == fold(unicodedata.normalize("NFC", text), case_sensitive)
    assert unicodedata.is_normalized("NFC", folded)
    assert fold(folded, case_sensitive) == folded
    if case_sensitive:
        assert folded == unicodedata.normalize("NFC", text)


@settings(max_examples=300, deadline=None)
@given(texts, st.booleans(), st.data())
def test_a_span_of_the_original_folds_to_what_was_found(text: str, case_sensitive: bool, data: st.DataObject) -> None:
    folded = fold(text, case_sensitive)
    if not folded:
        return
    start = data.draw(st.integers(0, len(folded) - 1))
    end = data.draw(st.integers(start + 1, len(folded)))
    (span,) = original_spans(text, case_sensitive, [(start, end)])
    assert span is not None
    first, last = span
    assert 0 <= first < last <= len(text)
    assert folded[start:end] in fold(text[first:last], case_sensitive)
    (whole,) = original_spans(text, case_sensitive, [(0, len(folded))])
    assert fold(text[whole[0] : whole[1]], case_sensitive) == folded  # type: ignore[index]


def test_marks_that_change_places_belong_to_their_character_as_a_whole() -> None:
    """The iota below (0345) sorts behind the grave above (0300), and folds to a letter of its own."""
    text = "x0\u0345\u0300"
    assert fold(text) == "x0\u0300\u03b9"
    assert original_spans(text, False, [(0, 1), (1, 3), (3, 4)]) == [(0, 1), (1, 4), (1, 4)]


def test_what_lies_far_behind_in_a_text_of_changing_lengths_has_no_span() -> None:
    text = "ß" * 150_000 + "keyword"
    at = len(fold(text)) - 7
    assert original_spans(text, False, [(0, 2), (at, at + 7)]) == [(0, 1), None]
    assert original_spans("é" * 150_000 + "keyword", False, [(150_000, 150_007)]) == [(150_000, 150_007)]
