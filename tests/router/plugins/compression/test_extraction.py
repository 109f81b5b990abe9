"""Shortening one text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.router.plugins.compression.extraction import chunks_of, extract, middle_cut, token_estimate
from headway.router.plugins.lexical import bm25_scores, words

texts = st.lists(st.sampled_from(["A sentence here. ", "line\n", "x" * 300, "一句话。", "🙂", "word "]), max_size=80).map("".join)


@given(texts)
def test_chunks_together_are_the_text(text: str) -> None:
    assert "".join(chunks_of(text)) == text


@given(texts, st.integers(1, 400), st.randoms())
def test_an_extract_is_shorter_or_the_text_and_keeps_its_ends(text: str, target: int, random: object) -> None:
    chunks = chunks_of(text)
    found = extract(chunks, [random.random() for _ in chunks], target)  # type: ignore[attr-defined]
    if not found.omitted:
        assert found.text == text
        return
    assert token_estimate(found.text) < token_estimate(text)
    assert found.text.startswith(chunks[0])
    assert found.text.endswith(chunks[-1])
    assert f"{found.omitted} parts left out" in found.text or found.text.count("parts left out") > 1
    floor = token_estimate(chunks[0]) + token_estimate(chunks[-1])
    marks = found.text.count("parts left out") * 8
    assert token_estimate(found.text) <= max(target, floor) + marks + len(chunks)


def test_what_fits_the_question_stays() -> None:
    lines = [f"Entry {number} is about nothing at all, really nothing whatsoever to see in this line.\n" for number in range(60)]
    lines[37] = "The boiling point of water is 100 degrees at sea level, as everybody knows by now.\n"
    chunks = chunks_of("".join(lines))
    found = extract(chunks, list(bm25_scores("what is the boiling point of water", chunks)), 200)
    assert "boiling point" in found.text
    assert token_estimate(found.text) < 300
    assert found.omitted > 20


@given(st.text(max_size=400), st.integers(40, 100))
def test_a_cut_in_the_middle_keeps_both_ends(text: str, target: int) -> None:
    found = middle_cut(text, target)
    if token_estimate(text) <= target:
        assert found == text
    else:
        assert found[:20] == text[:20]
        assert found[-10:] == text[-10:]


def test_words_of_any_script() -> None:
    assert words("The C3PO café, 发票开具 is!") == ["c3po", "café", "发票", "票开", "开具"]
    assert list(bm25_scores("发票", ["我要开发票", "天气很好"]) > 0) == [True, False]
    assert list(bm25_scores("the", ["the the", "x"])) == [0, 0]
