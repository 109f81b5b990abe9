from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway.artifacts.tokenizer import Tokenizer, load_tokenizer
from headway.engine.detokenizer import Detokenizer
from tests.artifacts.trained_tokenizers import CORPUS, EXACT, KINDS, save

BYTE_KINDS = ("byte_level", "llama", "gemma")


@cache
def tokenizer(kind: str) -> Tokenizer:
    return load_tokenizer(save(kind, Path(mkdtemp())))


def byte_id(kind: str, byte: int) -> int:
    made = tokenizer(kind)
    if kind == "byte_level":
        return next(i for i in range(3, made.vocab_size) if made.token_bytes(i) == bytes([byte]))
    return int(made.backend.token_to_id(f"<0x{byte:02X}>"))


def pushes(kind: str, ids: list[int], prompt: list[int] | None = None, **options: bool) -> list[str]:
    """What each push gives, and the flush."""
    stream = Detokenizer(tokenizer(kind), prompt_ids=prompt or [], **options)
    return [*(stream.push(i) for i in ids), stream.flush()]


def ids_of(kind: str) -> st.SearchStrategy[list[int]]:
    """Random ids, some of them outside of the vocabulary, mixed with the ids of random text."""
    made = tokenizer(kind)
    anything = st.lists(st.integers(0, made.vocab_size + 2), max_size=12)
    text = st.one_of(st.text(max_size=12), st.sampled_from(CORPUS), st.text(alphabet=" aé中🙂", max_size=8))
    encoded = text.map(lambda t: made.encode(t, add_special_tokens=False))
    return st.lists(st.one_of(anything, encoded), max_size=4).map(lambda parts: [i for part in parts for i in part])


# --- the invariant


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_pushes_join_to_the_full_decode(kind: str, skip: bool) -> None:
    @settings(max_examples=120, deadline=None)
    @given(ids=ids_of(kind))
    def check(ids: list[int]) -> None:
        joined = "".join(pushes(kind, ids, skip_special_tokens=skip))
        assert joined == tokenizer(kind).decode(ids, skip_special_tokens=skip)

    check()


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_text_continues_the_prompt(kind: str, skip: bool) -> None:
    made = tokenizer(kind)

    @settings(max_examples=120, deadline=None)
    @given(prompt=ids_of(kind), ids=ids_of(kind))
    def check(prompt: list[int], ids: list[int]) -> None:
        before = made.decode(prompt, skip_special_tokens=skip)
        if before.endswith("\ufffd"):
            return  # the prompt ends inside a character; tested below
        both = made.decode(prompt + ids, skip_special_tokens=skip)
        assert before + "".join(pushes(kind, ids, prompt, skip_special_tokens=skip)) == both

    check()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd\u2581"), max_size=20))
@example(text="ok 🙂 中é👩‍👧 end")
def test_valid_text_never_shows_half_a_character(kind: str, text: str) -> None:
    assert "\ufffd" not in "".join(pushes(kind, tokenizer(kind).encode(text)))


@pytest.mark.parametrize("prompt", ["", "x", "a中文", "🙂é", "鿿鿿鿿鿿"])
@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet=" aé中文🙂鿿", max_size=12))
def test_bytes_of_a_decoder_without_exact_pieces(prompt: str, text: str) -> None:
    """The marks are replaced after the bytes are joined, so a token alone does not tell its bytes."""
    made = tokenizer("late_marks")
    assert not made.byte_exact
    before = made.encode(prompt, add_special_tokens=False)
    ids = made.encode(prompt + text, add_special_tokens=False)
    assert ids[: len(before)] == before
    given_out = pushes("late_marks", ids[len(before) :], before)
    assert "".join(given_out) == made.decode(ids)[len(prompt) :]
    assert "\ufffd" not in "".join(given_out)


def test_invalid_bytes_are_withheld_for_four_tokens_at_most() -> None:
    bad = tokenizer("late_marks").backend.token_to_id("<0xFF>")
    given_out = pushes("late_marks", [bad] * 9)
    assert given_out == ["", "", "", "\ufffd" * 4, "", "", "", "\ufffd" * 4, "", "\ufffd"]


# --- characters that are split over tokens (case A04)


@pytest.mark.parametrize("kind", BYTE_KINDS)
def test_one_byte_per_token(kind: str) -> None:
    text = "ok 🙂 中é👩‍👧 end"
    given_out = pushes(kind, [byte_id(kind, byte) for byte in text.encode()], prompt=tokenizer(kind).encode("x"))
    assert "".join(given_out) == text
    assert given_out[:8] == ["o", "k", " ", "", "", "", "🙂", " "]
    assert given_out[-1] == ""


@pytest.mark.parametrize("kind", BYTE_KINDS)
def test_a_character_that_never_ends_is_one_replacement_at_the_end(kind: str) -> None:
    assert pushes(kind, [byte_id(kind, byte) for byte in "a🙂".encode()[:3]]) == ["a", "", "", "\ufffd"]


@pytest.mark.parametrize("kind", BYTE_KINDS)
def test_an_invalid_byte_withholds_nothing(kind: str) -> None:
    ids = [byte_id(kind, 0xFF), *(byte_id(kind, byte) for byte in b"twenty ascii tokens!")]
    assert pushes(kind, ids, prompt=tokenizer(kind).encode("x")) == ["\ufffd", *"twenty ascii tokens!", ""]


@pytest.mark.parametrize("kind", BYTE_KINDS)
def test_invalid_bytes_after_half_a_character(kind: str) -> None:
    ids = [byte_id(kind, byte) for byte in b"\xf0\x9f\x99a"]
    assert pushes(kind, ids) == ["", "", "", "\ufffda", ""]


# --- where the prompt ends


@pytest.mark.parametrize("kind", BYTE_KINDS)
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_character_that_the_prompt_leaves_open_is_completed(kind: str, cut: int) -> None:
    ids = [byte_id(kind, byte) for byte in "x🙂y".encode()]
    given_out = pushes(kind, ids[1 + cut :], prompt=ids[: 1 + cut])
    assert "".join(given_out) == "🙂y"
    assert given_out[-3:] == ["🙂", "y", ""]


@pytest.mark.parametrize("kind", BYTE_KINDS)
def test_an_open_character_that_is_not_completed_stays_with_the_prompt(kind: str) -> None:
    prompt = [byte_id(kind, byte) for byte in b"x\xf0\x9f"]
    assert pushes(kind, [byte_id(kind, byte) for byte in b"abc"], prompt=prompt) == ["a", "b", "c", ""]
    assert pushes(kind, [byte_id(kind, byte) for byte in b"\x99a"], prompt=prompt) == ["", "\ufffda", ""]
    assert pushes(kind, [], prompt=prompt) == [""]
    assert pushes(kind, [byte_id(kind, 0x99)], prompt=prompt) == ["", "\ufffd"]


def test_a_leading_space_is_dropped_only_at_the_start_of_a_text() -> None:
    for kind in ("llama", "llama_metaspace", "unigram"):
        made = tokenizer(kind)
        the = made.encode("the", add_special_tokens=False)[:1]
        assert made.token_bytes(the[0]).startswith(b" ")
        bos = [i for i in sorted(made.special_ids) if made.token_name(i) == "<s>"]
        after_nothing, after_bos, after_text = pushes(kind, the), pushes(kind, the, prompt=bos), pushes(kind, the, prompt=the)
        assert not after_nothing[0].startswith(" ")
        assert after_bos == after_nothing
        assert after_text[0].startswith(" ")
    the = tokenizer("gemma").encode(" the", add_special_tokens=False)[:1]
    assert pushes("gemma", the)[0].startswith(" ")


# --- special tokens


def test_special_tokens_are_hidden_or_shown() -> None:
    ids = tokenizer("byte_level").encode("a<|im_end|>b")
    assert "".join(pushes("byte_level", ids)) == "ab"
    assert "".join(pushes("byte_level", ids, skip_special_tokens=False)) == "a<|im_end|>b"


def test_spaces_between_special_tokens_can_be_left_out() -> None:
    made = tokenizer("word_level")
    ids = [made.backend.token_to_id(token) for token in ("the", "<a>", "<b>", "<a>", "dog")]
    shown = {"skip_special_tokens": False}
    assert "".join(pushes("word_level", ids, **shown)) == "the <a> <b> <a> dog"
    assert "".join(pushes("word_level", ids, **shown, spaces_between_special_tokens=False)) == "the <a><b><a> dog"
    assert "".join(pushes("word_level", ids[2:], ids[:2], **shown, spaces_between_special_tokens=False)) == "<b><a> dog"
    assert "".join(pushes("word_level", ids, spaces_between_special_tokens=False)) == "the dog"


# --- cost (case B11)


class CountingDecode:
    """Stands in front of a tokenizer and counts the tokens that are looked at."""

    def __init__(self, made: Tokenizer):
        self._made = made
        self.tokens = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._made, name)

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        self.tokens += len(ids)
        return self._made.decode(ids, skip_special_tokens)

    def token_bytes(self, token_id: int) -> bytes:
        self.tokens += 1
        return self._made.token_bytes(token_id)


@pytest.mark.parametrize("kind", ["byte_level", "llama", "unigram", "wordpiece", "word_level"])
def test_cost_of_a_token_does_not_grow(kind: str) -> None:
    made = tokenizer(kind)
    one_round = made.encode(" ".join(CORPUS[:6]), add_special_tokens=False)
    ids = (one_round * (20_000 // len(one_round) + 1))[:20_000]
    counting = CountingDecode(made)
    stream = Detokenizer(counting)  # type: ignore[arg-type]
    costs = []
    for token_id in ids:
        before = counting.tokens
        stream.push(token_id)
        costs.append(counting.tokens - before)
    most = 1 if kind in EXACT else 2 * 8 + 4  # two windows of at most eight tokens in front, and four new ones
    assert max(costs) <= most
    assert max(costs[-1000:]) <= max(costs[:1000])
    assert sum(costs[-1000:]) <= 1.1 * sum(costs[10:1010])


def test_a_long_prompt_is_not_decoded() -> None:
    for kind in ("llama", "wordpiece"):
        made = tokenizer(kind)
        counting = CountingDecode(made)
        stream = Detokenizer(counting, prompt_ids=made.encode("the dog " * 5000, add_special_tokens=False))  # type: ignore[arg-type]
        stream.push(made.encode("dog", add_special_tokens=False)[-1])
        assert counting.tokens <= 8 + 2 * 8 + 1
