"""Prompts have the lengths that were asked for, and files that cannot be used are named."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.bench.prompts import DatasetOptions, Prompt, RandomText, make_prompts
from headway.errors import ConfigError, NotBuiltError
from tests.bench.word_tokenizer import WordTokenizer

WORDS = WordTokenizer()


def lengths(prompts: list[Prompt]) -> list[int]:
    for prompt in prompts:
        assert list(prompt.token_ids) == WORDS.encode(prompt.text, add_special_tokens=False)
    return [len(prompt.token_ids) for prompt in prompts]


@given(st.integers(1, 50), st.integers(0, 2**32))
def test_random_text_encodes_to_its_length_and_has_no_special_tokens(length: int, seed: int) -> None:
    text = RandomText(WORDS, random.Random(seed)).make(length)
    ids = WORDS.encode(text)
    assert len(ids) == length
    assert not WORDS.special_ids & set(ids)


def test_random_prompts_differ_share_their_prefix_and_repeat_with_the_seed() -> None:
    options = DatasetOptions(count=8, input_len=12, output_len=5, prefix_len=6, seed=3)
    prompts = make_prompts(options, WORDS)
    assert lengths(prompts) == [18] * 8
    assert len({prompt.token_ids[:6] for prompt in prompts}) == 1
    assert len({prompt.token_ids for prompt in prompts}) == 8
    assert {prompt.output_len for prompt in prompts} == {5}
    assert make_prompts(options, WORDS) == prompts


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 2**32))
def test_what_follows_a_prefix_leaves_its_tokens_alone(before: int, after: int, seed: int) -> None:
    class Letters(WordTokenizer):  # one neighbour in ten merges
        special_ids = frozenset(range(100))

    texts = RandomText(Letters(), random.Random(seed))
    prefix = texts.make(before)
    ids = WORDS.encode(texts.make(before + after, prefix))
    assert len(ids) == before + after
    assert ids[:before] == WORDS.encode(prefix)


def test_a_tokenizer_without_stable_tokens_still_gives_no_special_ones() -> None:
    class Unsteady(WordTokenizer):
        drawn: ClassVar[set[int]] = set()

        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            return [50, *super().encode(text)]

        def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
            if len(ids) > 1:
                self.drawn.update(ids)
            return super().decode(ids)

    RandomText(Unsteady(), random.Random(0)).make(500)
    assert not Unsteady.drawn & WORDS.special_ids
    assert len(Unsteady.drawn) > 50


def test_range_ratio_spreads_lengths_within_its_bounds() -> None:
    prompts = make_prompts(DatasetOptions(count=200, input_len=20, output_len=10, range_ratio=0.5), WORDS)
    assert min(lengths(prompts)) == 10
    assert max(lengths(prompts)) == 30
    assert {p.output_len for p in prompts} == set(range(5, 16))


def test_prefix_repetition_uses_each_prefix_equally() -> None:
    options = DatasetOptions("prefix_repetition", count=12, prefix_len=8, prefix_count=3, suffix_len=4, output_len=2)
    prompts = make_prompts(options, WORDS)
    assert lengths(prompts) == [12] * 12
    starts = [prompt.token_ids[:8] for prompt in prompts]
    assert sorted(starts.count(start) for start in set(starts)) == [4, 4, 4]


def test_sonnet_keeps_near_the_length_and_shares_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "poem.txt"
    path.write_text("\n".join(f" w{i} w{i + 1} w{i + 2} w{i + 3}" for i in range(10, 90)))
    prompts = make_prompts(DatasetOptions("sonnet", str(path), 5, input_len=200, output_len=7, prefix_len=100), WORDS)
    assert all(195 <= length <= 205 for length in lengths(prompts)), "a line is 5 tokens"
    assert len({prompt.token_ids[:100] for prompt in prompts}) == 1
    assert len({prompt.token_ids for prompt in prompts}) == 5


def test_sharegpt_takes_question_and_answer_lengths(tmp_path: Path) -> None:
    def talk(question: int, answer: int) -> dict[str, object]:
        return {"conversations": [{"value": " w11" * question}, {"value": " w12" * answer}]}

    path = tmp_path / "talks.json"
    path.write_text(json.dumps([talk(5, 6), talk(1, 9), talk(2000, 9), talk(7, 2), {"conversations": []}]))
    options = DatasetOptions("sharegpt", str(path), 3, output_len=None)
    prompts = make_prompts(options, WORDS)
    assert lengths(prompts) == [5, 5, 5], "only one conversation has usable lengths; it is repeated"
    assert {prompt.output_len for prompt in prompts} == {6}


@pytest.mark.parametrize("content", ["{", "{}", "[1]", '[{"conversations": [{"value": 1}, {}]}]', "[]"])
def test_a_file_that_is_no_sharegpt_file_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "talks.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"talks\.json"):
        make_prompts(DatasetOptions("sharegpt", str(path), 3), WORDS)


def test_what_cannot_be_made_says_so() -> None:
    with pytest.raises(NotBuiltError, match="hf"):
        make_prompts(DatasetOptions("hf"), WORDS)
    with pytest.raises(ConfigError, match="no dataset 'poems'"):
        make_prompts(DatasetOptions("poems"), WORDS)
    with pytest.raises(ConfigError, match="--dataset-path"):
        make_prompts(DatasetOptions("sharegpt"), WORDS)
    with pytest.raises(ConfigError, match="cannot be read"):
        make_prompts(DatasetOptions("sonnet", "/no/such/file"), WORDS)
    with pytest.raises(ConfigError, match="range ratio"):
        make_prompts(DatasetOptions(range_ratio=1.0), WORDS)
