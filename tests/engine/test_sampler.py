"""The sampler against transformers' logits processors, against arithmetic done by hand, and by counting draws."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from headway.engine.logits_processing import penalise, restrict
from headway.engine.sampler import NO_TOKEN, Sampler, rank_rows
from headway.engine.sampling_batch import SamplingBatch
from headway.kernels.torch_sampling import TORCH_SAMPLING
from tests.engine.sequences import make_sequence

VOCAB = 700  # larger than the candidate window of top-k/top-p, so that both of its paths run


def rows(count: int, seed: int = 0, scale: float = 3.0) -> torch.Tensor:
    return torch.randn(count, VOCAB, generator=torch.Generator().manual_seed(seed)) * scale


def kept(logits: torch.Tensor) -> list[set[int]]:
    return [set(torch.nonzero(torch.isfinite(row)).flatten().tolist()) for row in logits]


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 1000),
    scale=st.sampled_from([0.01, 1.0, 6.0]),
    options=st.lists(
        st.tuples(st.sampled_from([0, 1, 5, 600]), st.sampled_from([1.0, 0.999, 0.9, 0.3, 1e-6]), st.sampled_from([0.0, 0.05, 1.0]), st.sampled_from([0.5, 1.0, 1.7])),
        min_size=1,
        max_size=5,
    ),
)
def test_filters_keep_what_transformers_keeps_row_by_row(seed, scale, options) -> None:
    logits = rows(len(options), seed, scale)
    sequences = [make_sequence([1], temperature=t, top_k=k, top_p=p, min_p=m) for k, p, m, t in options]
    batch = SamplingBatch.of(sequences, VOCAB)
    ours = logits.clone()
    TORCH_SAMPLING.draw(ours, batch.choices, torch.zeros(len(options), dtype=torch.float64), logits.argmax(-1), True)
    for i, (k, p, m, t) in enumerate(options):
        want = TemperatureLogitsWarper(t)(None, logits[i : i + 1])
        if m:
            want = MinPLogitsWarper(m)(None, want)
        if k:
            want = TopKLogitsWarper(k)(None, want)
        if p < 1:
            want = TopPLogitsWarper(p)(None, want)
        difference = kept(ours[i : i + 1])[0] ^ kept(want)[0]
        # The two sum probabilities in opposite orders, so one token at the border may differ by rounding.
        assert len(difference) <= (1 if 0 < p < 1 else 0), (k, p, m, t, difference)


@pytest.mark.parametrize("penalty", [0.5, 1.3, 2.0])
def test_repetition_penalty_equals_transformers(penalty: float) -> None:
    prompt, output = [1, 2, 3, 3], [5, 5, 9]
    logits = rows(1)
    want = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([prompt + output]), logits.clone())
    batch = SamplingBatch.of([make_sequence(prompt, output, repetition_penalty=penalty)], VOCAB)
    penalise(logits, batch)
    torch.testing.assert_close(logits, want)


def test_frequency_and_presence_count_the_output_only() -> None:
    logits = torch.zeros(1, VOCAB)
    batch = SamplingBatch.of([make_sequence([7, 7, 7], [5, 5, 9], frequency_penalty=0.5, presence_penalty=0.25)], VOCAB)
    penalise(logits, batch)
    assert logits[0, 5] == pytest.approx(-(0.5 * 2 + 0.25))
    assert logits[0, 9] == pytest.approx(-(0.5 + 0.25))
    assert logits[0, 7] == 0


def test_penalties_follow_tokens_as_they_are_sampled() -> None:
    sequence = make_sequence([1], temperature=0, presence_penalty=2.0)
    sampler = Sampler(VOCAB)
    base = torch.zeros(1, VOCAB)
    base[0, :4] = torch.tensor([3.0, 2.5, 2.0, 1.5])
    seen = []
    for _ in range(4):
        token = sampler.sample(base.clone(), [sequence])[0].token_id
        sequence.tokens.append(token)
        seen.append(token)
    assert seen == [0, 1, 2, 3]


def test_the_same_batch_object_serves_unchanged_sequences_and_a_new_one_changed_ones() -> None:
    sampler = Sampler(VOCAB)
    a, b = make_sequence([1], temperature=0), make_sequence([1], temperature=0)
    sampler.sample(rows(2), [a, b])
    first = sampler._batch
    sampler.sample(rows(2), [a, b])
    assert sampler._batch is first
    sampler.sample(rows(1), [a])
    assert sampler._batch is not first


def test_allowed_ids_bad_words_bias_and_min_tokens() -> None:
    sequences = [
        make_sequence([1], [3], allowed_token_ids=[4, 8]),
        make_sequence([1], [3, 6], bad_words_ids=[[6, 2], [11], [9, 9, 9]]),
        make_sequence([1], [3], logit_bias={5: 100.0, 6: -100.0}),
        make_sequence([1], [3], eos=(0, 2), stop_token_ids=[10], min_tokens=2),
        make_sequence([1], [3, 4], eos=(0, 2), stop_token_ids=[10], min_tokens=2),
    ]
    logits = rows(5)
    before = logits.clone()
    restrict(logits, SamplingBatch.of(sequences, VOCAB))
    assert kept(logits)[0] == {4, 8}
    assert set(range(VOCAB)) - kept(logits)[1] == {2, 11}
    assert logits[2, 5] == before[2, 5] + 100
    assert logits[2, 6] == before[2, 6] - 100
    assert set(range(VOCAB)) - kept(logits)[3] == {0, 2, 10}
    assert torch.equal(logits[4], before[4])


def test_a_bad_word_matches_generated_tokens_only() -> None:
    logits = rows(1)
    restrict(logits, SamplingBatch.of([make_sequence([1, 6], [], bad_words_ids=[[6, 2]])], VOCAB))
    assert torch.isfinite(logits).all()


def test_a_row_without_any_allowed_token_gives_no_token_and_leaves_its_neighbour_alone() -> None:
    sequences = [make_sequence([1], allowed_token_ids=[4], bad_words_ids=[[4]], temperature=1.0, seed=1), make_sequence([1], temperature=0)]
    logits = rows(2)
    best = int(logits[1].argmax())
    got = Sampler(VOCAB).sample(logits, sequences)
    assert [t.token_id for t in got] == [NO_TOKEN, best]


def test_draws_follow_the_distribution() -> None:
    """Chi-square over 12,000 draws of a five-token distribution; 23.5 is the 0.9999 quantile for 4 degrees of freedom."""
    probs = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05])
    draws = 12_000
    logits = torch.full((draws, VOCAB), float("-inf"))
    logits[:, :5] = probs.log()
    sequences = [make_sequence([1], order=i, temperature=1.0) for i in range(draws)]
    tokens = Sampler(VOCAB, seed=3).sample(logits, sequences)
    counts = torch.bincount(torch.tensor([t.token_id for t in tokens]), minlength=5).float()
    assert counts.numel() == 5
    assert float(((counts - draws * probs) ** 2 / (draws * probs)).sum()) < 23.5


def test_a_seed_repeats_itself_whatever_else_is_in_the_batch() -> None:
    logits = rows(3, scale=1.0)

    def draw(position: int, others: int) -> list[int]:
        sampler = Sampler(VOCAB, seed=others)
        mine = make_sequence([1], temperature=1.0, seed=42)
        out = []
        for _ in range(5):
            sequences = [make_sequence([1], temperature=1.0) for _ in range(others)]
            sequences.insert(position, mine)
            batch = rows(others + 1, 9)
            batch[position] = logits[0]
            out.append(sampler.sample(batch, sequences)[position].token_id)
            mine.tokens.append(out[-1])
        return out

    assert draw(0, 0) == draw(2, 4) == draw(0, 1)
    assert len(set(draw(0, 0))) > 1


@pytest.mark.parametrize(("mode", "shift"), [("raw_logprobs", 0.0), ("raw_logits", 0.0), ("processed_logprobs", 5.0), ("processed_logits", 5.0)])
def test_logprobs_are_of_the_untouched_or_the_processed_distribution(mode: str, shift: float) -> None:
    logits = rows(1)
    want = logits.clone()
    want[0, 3] += shift
    if mode.endswith("logprobs"):
        want = want.log_softmax(-1)
    sequence = make_sequence([1], temperature=0, logprobs=4, logit_bias={3: 5.0})
    got = Sampler(VOCAB, logprobs_mode=mode).sample(logits, [sequence])[0]
    assert got.logprobs is not None
    assert got.logprobs[0][0] == got.token_id
    for token, value, rank in got.logprobs:
        assert value == pytest.approx(float(want[0, token]), abs=1e-5)
        assert rank == int((want[0] >= want[0, token]).sum())
    assert {t for t, _, _ in got.logprobs} == {got.token_id} | set(want[0].topk(4).indices.tolist())


def test_raw_logprobs_do_not_depend_on_the_temperature() -> None:
    def of(temperature: float) -> dict[int, float]:
        token = Sampler(VOCAB).sample(rows(1), [make_sequence([1], temperature=temperature, logprobs=5, seed=1)])[0]
        assert token.logprobs is not None
        return {t: v for t, v, _ in token.logprobs}

    cold, hot = of(0.0), of(1.5)
    shared = cold.keys() & hot.keys()
    assert len(shared) >= 5
    assert all(cold[t] == pytest.approx(hot[t], abs=1e-6) for t in shared)


def test_logprobs_zero_gives_the_chosen_token_only_and_minus_one_gives_all() -> None:
    sequences = [make_sequence([1], temperature=0, logprobs=n) for n in (0, -1)] + [make_sequence([1], temperature=0)]
    got = Sampler(VOCAB).sample(rows(3), sequences)
    assert got[0].logprobs is not None
    assert len(got[0].logprobs) == 1
    assert got[1].logprobs is not None
    assert len(got[1].logprobs) == VOCAB
    assert got[2].logprobs is None
    total = sum(math.exp(v) for _, v, _ in got[1].logprobs)
    assert total == pytest.approx(1, abs=1e-4)


def test_extra_ids_are_reported_with_their_rank() -> None:
    table = torch.tensor([[0.1, 0.4, 0.3, 0.2]])
    assert rank_rows(TORCH_SAMPLING, table, [1], [1], [[0]], normalised=False)[0] == [(1, pytest.approx(0.4), 1), (0, pytest.approx(0.1), 4)]
