"""The decoding rule on rows of tags, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import ArtifactError
from headway.runtime.tasks.span_decoding import WordStrategy, decode_spans
from headway.runtime.tasks.tags import tags_of

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def shares(labels: Sequence[str], tags: Sequence[str], sure: float | Sequence[float] = 0.9) -> np.ndarray:
    """Each token's tag gets `sure`, the others share the rest."""
    certain = [sure] * len(tags) if isinstance(sure, float) else list(sure)
    rows = np.array([[(1 - p) / (len(labels) - 1)] * len(labels) for p in certain]).reshape(len(tags), len(labels))
    for row, tag, p in zip(rows, tags, certain, strict=True):
        row[labels.index(tag)] = p
    return rows


def pieces(text: str, pattern: str = r"\S+") -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(pattern, text)]


def spans(text: str, tags: Sequence[str], *, offsets: list[tuple[int, int]] | None = None, labels: Sequence[str] = LABELS,
          sure: float | Sequence[float] = 0.9, words: WordStrategy = "token") -> list[tuple[str, str, int]]:  # fmt: skip
    places = offsets or pieces(text)
    found = decode_spans(text, places, shares(labels, tags, sure), tags_of(labels), words)
    assert all(text[span.start : span.end] == span.text for span in found)
    return [(span.label, span.text, span.start) for span in found]


def test_the_rule_token_by_token() -> None:
    text = "Ada Byron Rex Roe"
    assert spans(text, ["B-PER", "I-PER", "B-PER", "I-PER"]) == [("PER", "Ada Byron", 0), ("PER", "Rex Roe", 10)]
    assert spans(text, ["I-LOC", "I-LOC", "O", "O"]) == [("LOC", "Ada Byron", 0)]
    assert spans(text, ["B-PER", "I-LOC", "O", "I-LOC"]) == [("PER", "Ada", 0), ("LOC", "Byron", 4), ("LOC", "Roe", 14)]
    assert spans(text, ["B-PER", "B-PER", "B-PER", "B-PER"]) == [("PER", "Ada", 0), ("PER", "Byron", 4), ("PER", "Rex", 10), ("PER", "Roe", 14)]
    assert spans(text, ["O", "O", "O", "O"]) == []


def test_the_probability_is_the_mean_over_the_tokens_of_a_span() -> None:
    (found,) = decode_spans("Ada Byron x", pieces("Ada Byron x"), shares(LABELS, ["B-PER", "I-PER", "O"], [0.9, 0.5, 0.99]), tags_of(LABELS))
    assert found.probability == pytest.approx(0.7)


def test_labels_without_prefixes_join_and_bioes_ends_where_it_says() -> None:
    plain = ("O", "PER", "LOC")
    assert spans("Ada Byron Rome", ["PER", "PER", "LOC"], labels=plain) == [("PER", "Ada Byron", 0), ("LOC", "Rome", 10)]
    for single, end in (("S", "E"), ("U", "L")):
        scheme = ("O", "B-PER", "I-PER", f"{end}-PER", f"{single}-PER")
        tags = ["B-PER", f"{end}-PER", f"{single}-PER", "I-PER"]
        assert spans("Ada Byron Rex Roe", tags, labels=scheme) == [("PER", "Ada Byron", 0), ("PER", "Rex", 10), ("PER", "Roe", 14)]


def test_white_space_neither_continues_nor_closes_nor_is_reported() -> None:
    text = "Ada \u3000Byron "
    places = [(0, 3), (3, 5), (4, 10), (10, 11)]
    assert spans(text, ["B-PER", "O", "I-PER", "O"], offsets=places) == [("PER", "Ada \u3000Byron", 0)]
    assert spans(text, ["O", "B-PER", "O", "B-PER"], offsets=places) == []
    assert spans(" Ada", ["B-PER"], offsets=[(0, 4)]) == [("PER", "Ada", 1)]
    assert spans("Ada", ["B-PER", "B-LOC"], offsets=[(0, 3), (0, 0)]) == [("PER", "Ada", 0)]


def test_bytes_of_one_character_are_one_span() -> None:
    text = "x🙂y"
    places = [(0, 1), *[(1, 2)] * 4, (2, 3)]
    assert spans(text, ["O", "O", "B-PER", "O", "O", "O"], offsets=places) == [("PER", "🙂", 1)]
    assert spans(text, ["O", "B-PER", "B-PER", "O", "B-PER", "O"], offsets=places) == [("PER", "🙂", 1)]
    assert spans(text, ["O", "B-PER", "I-PER", "I-PER", "I-PER", "I-PER"], offsets=places) == [("PER", "🙂y", 1)]


NUMBER = "5.975,74"


@pytest.mark.parametrize("words", ["first", "max", "average"])
def test_word_strategies_repair_words(words: WordStrategy) -> None:
    every = pieces(NUMBER, r"\d+|[.,]")
    assert spans(NUMBER, ["B-LOC"] * 5, offsets=every) == [("LOC", "5", 0), ("LOC", ".", 1), ("LOC", "975", 2), ("LOC", ",", 5), ("LOC", "74", 6)]
    assert spans(NUMBER, ["B-LOC"] * 5, offsets=every, words=words) == [("LOC", NUMBER, 0)]
    word = [(0, 3), (3, 5), (5, 8), (8, 10)]
    sure = [0.95, 0.9, 0.5, 0.5]
    assert spans("Groenlinks", ["B-PER", "I-PER", "O", "O"], offsets=word) == [("PER", "Groen", 0)]
    assert spans("Groenlinks", ["B-PER", "B-PER", "O", "O"], offsets=word, words=words, sure=sure) == [("PER", "Groenlinks", 0)]
    assert spans("Ada Byron", ["B-PER", "B-PER"], words=words) == [("PER", "Ada", 0), ("PER", "Byron", 4)]
    assert spans("Ada Byron", ["B-PER", "I-PER"], words=words) == [("PER", "Ada Byron", 0)]


def test_strategies_differ_where_tokens_of_a_word_disagree() -> None:
    word = [(0, 4), (4, 7), (7, 9)]
    tags, sure = ["B-PER", "B-LOC", "B-LOC"], [0.6, 0.95, 0.5]
    found = {words: spans("Berliners", tags, offsets=word, words=words, sure=sure)[0][0] for words in ("first", "max", "average")}
    assert found == {"first": "PER", "max": "LOC", "average": "LOC"}


def test_punctuation_that_the_model_leaves_out_stays_out_of_a_word() -> None:
    text = "(Wells), x"
    places = [(0, 1), (1, 6), (6, 7), (7, 8), (9, 10)]
    assert spans(text, ["O", "B-PER", "O", "O", "O"], offsets=places, words="average") == [("PER", "Wells", 1)]
    assert spans(text, ["B-PER", "I-PER", "I-PER", "O", "O"], offsets=places, words="average") == [("PER", "(Wells)", 0)]
    assert spans("... x", ["O", "O", "O", "O"], offsets=[(0, 1), (1, 2), (2, 3), (4, 5)], words="first") == []


def test_scripts_without_spaces_are_read_character_by_character() -> None:
    text = "联系王小明吧"
    places = [(i, i + 1) for i in range(6)]
    tags = ["O", "O", "B-PER", "I-PER", "I-PER", "O"]
    assert spans(text, tags, offsets=places, words="average") == [("PER", "王小明", 2)]


@given(st.text(alphabet="ab 🙂é\u0301王\n.", max_size=40), st.randoms(use_true_random=False), st.sampled_from(["token", "first", "max", "average"]))
def test_spans_are_places_of_the_text(text: str, chance, words: WordStrategy) -> None:
    places = []
    at = 0
    while at < len(text):
        end = min(len(text), at + chance.randint(1, 4))
        places += [(at, end)] * chance.choice([1, 1, 2])
        at = end
    rows = np.array([[chance.random() for _ in LABELS] for _ in places]).reshape(-1, len(LABELS))
    found = decode_spans(text, places, rows, tags_of(LABELS), words)
    for span in found:
        assert 0 <= span.start < span.end <= len(text)
        assert span.text == text[span.start : span.end] == span.text.strip()
    assert [span.start for span in found] == sorted(span.start for span in found)


@pytest.mark.parametrize("labels", [("NOUN", "VERB"), ("O",), ("B-PER", "I-PER"), ("LABEL_0", "LABEL_1")])
def test_labels_that_make_no_spans_are_refused(labels: tuple[str, ...]) -> None:
    with pytest.raises(ArtifactError, match="needs the label O"):
        tags_of(labels)
