"""The guard alone: reasons, symmetry, and that it lets equal texts pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.router.plugins.response_cache.guard.guard import difference

REASONS = [
    ("pay 5 euros", "pay 50 euros", "numbers"),
    ("from 3 to 5", "from 5 to 3", "numbers"),
    ("open file a_b.txt", "open file a_c.txt", "identifiers"),
    ("see https://x.org/a now", "see https://x.org/b now", "identifiers"),
    ('what means "cat"', 'what means "dog"', "identifiers"),
    ("is a < b", "is a > b", "symbols"),
    ("can I eat this", "can't I eat this", "negation"),
    ("recipes with nuts", "recipes without nuts", "negation"),
    ("how do I upload it", "how do I download it", "opposite"),
    ("最大的城市", "最小的城市", "opposite"),
    ("如何提高血压", "如何降低血压", "opposite"),
    ("今天不开会", "今天开会", "negation"),
    ("what is water", "was ist wasser", "language"),
    ("こんにちは世界", "你好世界", "language"),
    ("tell me about the film Alien", "tell me about the film Psycho", "names"),
    ("does NATO help", "does the UN help", "names"),
    ("list files", "list hidden files", "wording"),
    ("dog bites man", "man bites dog", "wording"),
    ("fly to rome from paris", "fly from rome to paris", "wording"),
    ("why is the sky blue", "why is the sky grey", "wording"),
]
ALIKE = [
    ("What is the capital of France?", "what's the capital of france"),
    ("Please explain recursion", "can you explain recursion to me please"),
    ("why doesn't it start", "why does it not start"),
    ("show me the logs", "could you show the logs"),
    ("我能不能退货", "可以退货吗"),
    ("你好，请问怎么注册", "如何注册"),
    ("Turn the heating on.", "turn the heating on"),
]
texts = st.lists(
    st.sampled_from(["on", "off", "not", "the", "cat", "dogs", "5", "12", "x_1", "Paris", "开", "关", "不", "请问", "猫", "is", "+", "'a'", "C++", "how", "élan"]), max_size=8
).map(" ".join)


@pytest.mark.parametrize(("one", "other", "reason"), REASONS)
def test_reasons(one: str, other: str, reason: str) -> None:
    assert difference(one, other) == difference(other, one) == reason


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_texts_that_pass(one: str, other: str) -> None:
    assert difference(one, other) is None


@given(texts, texts)
def test_it_does_not_matter_which_text_was_first(one: str, other: str) -> None:
    assert difference(one, other) == difference(other, one)


@given(st.text(max_size=60))
def test_equal_texts_pass_and_nothing_breaks_it(text: str) -> None:
    assert difference(text, text) is None
    difference(text, text.upper())
    difference(text, text[::-1])


@given(texts, st.integers(0, 99), st.integers(0, 99))
def test_another_number_never_passes(text: str, one: int, other: int) -> None:
    assert (difference(f"{text} {one}", f"{text} {other}") is None) == (one == other)


@given(texts)
def test_a_negation_more_never_passes(text: str) -> None:
    assert difference(text, f"{text} not") is not None
    assert difference(text, f"{text} 不") is not None


def test_texts_that_are_worded_quite_differently_are_left_to_their_similarity() -> None:
    one = "my laptop battery drains within hours although few programs run"
    other = "notebook loses charge quickly even while idle every single day"
    assert difference(one, other) is None
    assert difference("battery drains", "charge lost") == "wording"
