"""A bounded reading equals the beginning of the whole reading, whatever the tokenizer and the text."""

from __future__ import annotations

import random

import pytest
from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from headway.artifacts.tokenizer import Tokenizer, tokenizer_at
from headway.errors import RequestError
from headway.runtime.long_input.bounded_text import BoundedText
from tests.runtime.tasks.task_models import TaskModels

VARIANTS = {"wordpiece": "sequence-bert", "byte-level": "sequence-roberta", "unigram": "sequence-xlm-roberta"}
GROUPS = "groups of three digits from the right"
ALPHABETS = {
    "words": ["the ", "cafeteria ", "don't ", "re-read, ", "(see ", "\n\n", "  ", "\t", "x" * 130 + " "],
    "run": list("abcdefghij0123456789"),
    "one letter": ["a"],
    "digits": list("0123456789"),
    "chinese": list("的一是不了人我在有他这中大来上国，。、"),
    "emoji": ["🙂", "👩‍👩‍👧", "é", "e\u0301", "ا", "ب", "-"],
    "hangul": ["\u1112", "\u1161", "\u11ab", "한", " "],
    "special": ["[SEP]", "</s>", " ", "word", "[CLS] "],
    "spaces": [" ", "\n", "\r\n", "a"],
}  # fmt: skip


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    packages = TaskModels(tmp_path_factory.mktemp("tokenizers"))
    return {kind: tokenizer_at(packages.folder(variant)) for kind, variant in VARIANTS.items()} | {GROUPS: Tokenizer(grouping())}


def grouping() -> Backend:
    """The beginning of a number depends on where it ends, however far away."""
    backend = Backend(models.BPE({str(i): i for i in range(10)} | {" ": 10, "00": 11, "11": 12}, [("0", "0"), ("1", "1")]))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"\d{1,3}(?=(\d{3})*(?!\d))"), "isolated")
    return backend


@pytest.mark.parametrize("kind", [*VARIANTS, GROUPS])
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_a_beginning_has_the_tokens_of_the_whole(tokenizers: dict[str, Tokenizer], kind: str, alphabet: str) -> None:
    bounded = BoundedText(tokenizers[kind])
    chance = random.Random(kind + alphabet)
    for need in (1, 17, 300):
        for _ in range(3):
            text = "".join(chance.choices(ALPHABETS[alphabet], k=chance.randint(100, 9000)))
            whole = tokenizers[kind].backend.encode(text, add_special_tokens=False)
            found = bounded.read(text, need, offsets=True)
            assert list(found.ids) == whole.ids[: len(found.ids)]
            assert list(found.offsets) == whole.offsets[: len(found.ids)]
            assert found.complete == (len(found.ids) == len(whole.ids))
            assert found.complete or len(found.ids) >= need


@pytest.mark.parametrize("kind", VARIANTS)
def test_a_long_text_is_not_read_to_its_end(tokenizers: dict[str, Tokenizer], kind: str) -> None:
    bounded = BoundedText(tokenizers[kind])
    found = bounded.read("the cafeteria opens. " * 20_000, 100)
    assert not found.complete
    assert 100 <= len(found.ids) < 5000


def test_many_texts_read_as_each_alone(tokenizers: dict[str, Tokenizer]) -> None:
    texts = ["", "a", "the cafeteria " * 3000, "您好", "x" * 9000]
    for tokenizer in tokenizers.values():
        bounded = BoundedText(tokenizer)
        together = bounded.read_all(texts, 50)
        assert [(list(c.ids), c.complete) for c in together] == [(list(c.ids), c.complete) for c in (bounded.read(t, 50) for t in texts)]


def test_a_lone_surrogate_is_refused(tokenizers: dict[str, Tokenizer]) -> None:
    bounded = BoundedText(tokenizers["wordpiece"])
    for read in (lambda: bounded.read("a\ud800", 5), lambda: bounded.read_all(["a", "\ud800"], 5)):
        with pytest.raises(RequestError, match="lone surrogate"):
            read()
