"""What is proposed, against a slow search that says the same in plain words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.engine.speculation.ngram import NgramProposer
from headway.engine.speculation.proposer import Ask
from headway.engine.speculation.settings import SpeculationSettings
from headway.engine.speculation.suffix import SuffixProposer
from headway.engine.speculation.token_text import TokenText
from tests.engine.sequences import make_sequence

TEXT = st.lists(st.integers(0, 3), min_size=1, max_size=40)


def looked_up(tokens: list[int], shortest: int, longest: int, limit: int) -> list[int]:
    """For each length from the longest on: the earliest place where the last tokens stood before."""
    for length in range(longest, shortest - 1, -1):
        end = tokens[len(tokens) - length :]
        for start in range(len(tokens) - length):
            if len(end) == length and tokens[start : start + length] == end:
                return tokens[start + length :][:limit]
    return []


@given(TEXT, st.integers(1, 4), st.integers(0, 3), st.integers(1, 6))
def test_ngram_is_the_earliest_of_the_longest(tokens, shortest, more, limit) -> None:
    proposer = NgramProposer(shortest, shortest + more)
    sequence = make_sequence(tokens[:1])
    for token in tokens[1:]:  # it grows as in an engine, so that what is kept for it is tested too
        proposer.propose([Ask(sequence, 1)])
        sequence.tokens.append(token)
    assert proposer.propose([Ask(sequence, limit)]) == [looked_up(tokens, shortest, shortest + more, limit)]


def suffix(**settings: float) -> SuffixProposer:
    return SuffixProposer(SpeculationSettings("suffix", 24, **settings))  # type: ignore[arg-type]


def propose(proposer: SuffixProposer, tokens: list[int], limit: int = 10) -> list[int]:
    return proposer.propose([Ask(make_sequence(tokens), limit)])[0]


def test_suffix_follows_the_majority_and_not_further_than_what_matched() -> None:
    text = [1, 2, 7, 1, 2, 8, 5, 1, 2, 8, 6, 9, 1, 2]
    assert propose(suffix(), text) == [8, 5]  # two tokens match; behind 8 both have one vote
    assert propose(suffix(), text, limit=1) == [8]
    assert propose(suffix(suffix_decoding_max_spec_factor=1.5), text) == [8, 5, 1]
    assert propose(suffix(suffix_decoding_min_token_prob=0.5), text) == [8]
    assert propose(suffix(), [1, 2, 3]) == []


def test_suffix_remembers_answers_but_not_those_with_a_salt() -> None:
    proposer = suffix()
    secret, other = make_sequence([0], [4, 5, 6, 7, 8]), make_sequence([0], [1, 2, 3, 9, 9])
    secret.request.cache_salt = "mine"
    proposer.ended(secret)
    assert propose(proposer, [0, 4, 5, 6]) == []
    proposer.ended(other)
    assert propose(proposer, [0, 1, 2, 3]) == [9, 9]
    salted = make_sequence([0, 1, 2, 3])
    salted.request.cache_salt = "mine"
    assert proposer.propose([Ask(salted, 4)]) == [[]]


def test_suffix_forgets_the_oldest_answers() -> None:
    proposer = suffix(suffix_decoding_max_cached_requests=2)
    for answer in ([1, 2, 3], [4, 5, 6], [7, 8, 9]):
        proposer.ended(make_sequence([0], answer))
    assert [propose(proposer, [0, first, first + 1]) for first in (1, 4, 7)] == [[], [6], [9]]


@given(st.lists(st.lists(st.integers(0, 9), max_size=300), max_size=8), st.integers(0, 700))
def test_a_text_grows_and_is_cut(parts, kept) -> None:
    text, whole = TokenText(), []
    for part in parts:
        text.extend(part)
        whole += part
    text.follow([*whole, 3])
    whole.append(3)
    assert text.ids.tolist() == whole
    text.keep_last(kept)
    assert text.ids.tolist() == whole[len(whole) - min(kept, len(whole)) :]
