"""Words, spans, windows and what fits: properties that hold for every text."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from headway.runtime.readers.vela2.encoder_reader import merged_options, merged_words
from headway.runtime.readers.vela2.parts import (
    UNCOVERED,
    DoesNotFit,
    PartTokens,
    covers_words,
    kept_lengths,
    token_windows,
    uncovered,
    word_windows,
)
from headway.runtime.readers.vela2.spans import find_spans, trimmed
from headway.runtime.readers.vela2.words import Word, word_ranges, words_of

TEXTS = st.text(st.sampled_from("ab1-_@.:/,!?()[]\"'é你好한 \t\r\n😀👨‍👩‍👧́ whtps") | st.characters(codec="utf-8"), max_size=60)


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in word_ranges(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.org/x?y=1, or www.b.com.", ["see", "https://a.org/x?y=1", ",", "or", "www.b.com", "."]),
        ("mail tom.b+c@ex-ample.co.uk!", ["mail", "tom.b+c@ex-ample.co.uk", "!"]),
        ("@tom_1 says re-use_it 42", ["@tom_1", "says", "re-use_it", "42"]),
        ("你好world한글", ["你", "好", "world", "한", "글"]),
        ("a😀b", ["a", "😀", "b"]),
        ("网址https://a.org/路径", ["网", "址", "https://a.org/", "路", "径"]),
        ("שלום עולם", ["שלום", "עולם"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(TEXTS)
def test_words_are_all_that_is_no_space(text: str) -> None:
    ranges = word_ranges(text)
    assert all(first[1] <= second[0] for first, second in pairwise(ranges))
    inside = {at for start, end in ranges for at in range(start, end)}
    assert all(at in inside or text[at].isspace() for at in range(len(text)))
    assert not any(any(char.isspace() for char in word) for word in words(text))


def byte_tokenizer() -> Tokenizer:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend = Tokenizer(models.BPE({char: number for number, char in enumerate(sorted(alphabet))}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return backend


@given(TEXTS)
def test_each_word_is_read_at_its_first_token(text: str) -> None:
    """Also where several tokens are one character."""
    offsets = byte_tokenizer().encode(text).offsets
    found = words_of(text, offsets)
    assert [(word.start, word.end) for word in found] == word_ranges(text)
    for word in found:
        overlapping = [i for i, (a, b) in enumerate(offsets) if a < word.end and b > word.start]
        assert (word.token, word.last) == (overlapping[0], overlapping[-1])


def test_words_without_tokens_are_left_out() -> None:
    assert words_of("one two", [(0, 3)]) == [Word(0, 3, 0, 0)]
    assert words_of("one two", []) == []
    assert words_of("one two", [(0, 0), (4, 7)]) == [Word(4, 7, 1, 1)]


@given(TEXTS, st.data())
def test_spans_are_slices_of_the_text(text: str, data: st.DataObject) -> None:
    found = words_of(text, byte_tokenizer().encode(text).offsets)
    p = np.array(data.draw(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=len(found), max_size=len(found)))).reshape(-1, 2)
    spans = find_spans(p, found, text, data.draw(st.floats(0, 1)))
    assert all(0 <= span.start < span.end <= len(text) and span.label in (0, 1) and 0 <= span.probability <= 1 for span in spans)
    assert all(first.end <= second.start for first, second in pairwise(spans))
    assert not any(text[span.start].isspace() or text[span.end - 1].isspace() for span in spans)


def spans_of(text: str, p: list[tuple[float, float]], threshold: float = 0.5) -> list[tuple[str, int, float]]:
    found = words_of(text, byte_tokenizer().encode(text).offsets)
    return [(text[s.start : s.end], s.label, round(s.probability, 4)) for s in find_spans(np.array(p), found, text, threshold)]


def test_what_stands_together_is_settled_together() -> None:
    # "ann.bo" is three words of one unit: the labels vote, and the dot between gets the winner.
    assert spans_of("ann.bo x", [(0.9, 0.1), (0.2, 0.1), (0.1, 0.6), (0.0, 0.0)]) == [("ann.bo", 0, 0.4)]
    # Neighbours with one label are one span, those with two are two.
    assert spans_of("ann bo cy", [(0.9, 0.1), (0.7, 0.1), (0.1, 0.8)]) == [("ann bo", 0, 0.8), ("cy", 1, 0.8)]
    assert spans_of("ann bo", [(0.5, 0.1), (0.6, 0.1)]) == [("bo", 0, 0.6)]  # over the threshold, not at it


def test_ends_are_trimmed() -> None:
    assert trimmed(' ("ann") ', 0, 9) == (3, 6)
    assert trimmed("https://a.org/x).你", 0, 17) == (0, 15)
    assert trimmed("()", 0, 2) == (2, 2)


@given(st.integers(0, 400), st.integers(1, 90), st.integers(0, 200))
def test_windows_of_tokens_cover_all(total: int, width: int, overlap: int) -> None:
    windows = token_windows(total, width, overlap)
    assert windows[-1][1] == total
    assert uncovered(total, windows) == 0
    assert all(0 < end - start <= width for start, end in windows) or total == 0
    shared = [first[1] - second[0] for first, second in pairwise(windows)]
    assert all(0 <= each <= min(overlap, width // 4) for each in shared)


@given(st.lists(st.integers(1, 9), max_size=60), st.integers(1, 40), st.data())
def test_windows_of_words_cut_none_that_fits(sizes: list[int], width: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, width))
    ends = np.cumsum(sizes).tolist()
    text = [Word(end - size, end, end - size, end - 1) for size, end in zip(sizes, ends, strict=True)]
    total = ends[-1] if ends else 0
    windows = word_windows(text, total, width, stride)
    assert uncovered(total, windows) == 0
    assert all(first[0] < second[0] for first, second in pairwise(windows))
    if max(sizes, default=0) <= width:
        assert covers_words(text, windows)
    assert all(end - start <= width for start, end in windows) or not text


def test_a_word_in_no_window_whole_is_not_covered() -> None:
    long = [Word(0, 9, 0, 8)]
    assert not covers_words(long, [(0, 5), (4, 9)])
    assert covers_words(long, [(0, 9)])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6), st.integers(1, 8))
def test_words_average_over_the_windows_that_hold_them(ranges: list[tuple[int, int]], count: int) -> None:
    places = [(min(a, b, count), min(max(a, b), count)) for a, b in ranges]
    values = [np.arange((end - start) * 2, dtype=float).reshape(-1, 2) + number for number, (start, end) in enumerate(places)]
    merged = merged_words(values, places, count, 2)
    for word in range(count):
        held = [value[word - start] for value, (start, end) in zip(values, places, strict=True) if start <= word < end]
        assert merged[word] == pytest.approx(np.mean(held, 0) if held else [UNCOVERED] * 2)


def test_options_average_and_labels_take_the_largest() -> None:
    stacked = np.array([[1.0, -2.0], [3.0, -4.0]])
    assert merged_options(stacked, is_set=False).tolist() == [2.0, -3.0]
    assert merged_options(stacked, is_set=True).tolist() == [3.0, -2.0]


@given(st.integers(0, 300), st.lists(st.integers(1, 200), min_size=1, max_size=3), st.integers(10, 300), st.sets(st.sampled_from([0, 1, 2]), min_size=1))
def test_what_is_kept_fits(schema: int, sizes: list[int], most: int, read: set[int]) -> None:
    roles = ("user", "context", "answer")[: len(sizes)]
    parts = [PartTokens(role, (0,) * size) for role, size in zip(roles, sizes, strict=True)]
    wanted = frozenset(roles[index] for index in read if index < len(roles)) or frozenset(roles[:1])
    try:
        kept = kept_lengths(schema, parts, most, wanted)
    except DoesNotFit:
        assert schema + len(roles) > most
        return
    assert schema + sum(kept.values()) <= most
    assert all(1 <= kept[part.role] <= len(part.ids) for part in parts)
    unread = [part for part in parts if part.role not in wanted]
    if any(kept[part.role] > min(1, len(part.ids)) for part in unread):
        assert all(kept[part.role] == len(part.ids) for part in parts if part.role in wanted)


@pytest.mark.timeout(20)  # quadratic patterns take minutes for these
@pytest.mark.parametrize("unit", ["a.", "www.", "a@", "http://", "-a", "a.b@c."])
def test_long_runs_without_a_blank_are_read_in_linear_time(unit: str) -> None:
    text = unit * 200_000
    ranges = word_ranges(text)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == len(text)
