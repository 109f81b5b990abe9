"""The sampler on native kernels: the same seeds give the same tokens, ranks and log-probabilities as on torch's."""

from __future__ import annotations

import pytest
import torch

from headway.engine.sampler import NO_TOKEN, NOT_FINITE, SampledToken, Sampler
from headway.kernels.native.library import native_library
from headway.kernels.native.sampling import native_sampling
from headway.kernels.native.tape import Tape
from headway.kernels.sampling import SamplingKernels
from headway.kernels.torch_sampling import TORCH_SAMPLING
from tests.engine.sequences import make_sequence

pytestmark = pytest.mark.skipif(not native_library().sets, reason=native_library().missing or "")
VOCAB = 700
PARAMS = (
    {"temperature": 0.0}, {"temperature": 0.0, "logprobs": 3}, {"temperature": 1.0, "seed": 5, "logprobs": 2}, {"temperature": 0.7, "top_k": 20},
    {"temperature": 1.3, "top_p": 0.8, "logprobs": 700}, {"temperature": 1.0, "min_p": 0.02}, {"temperature": 0.9, "top_k": 40, "top_p": 0.9, "logit_bias": {3: 4.0}},
    {"temperature": 1.0, "presence_penalty": 1.0, "repetition_penalty": 1.2}, {"temperature": 1.0, "allowed_token_ids": [1, 5, 9]},
)  # fmt: skip


@pytest.fixture(scope="module", params=native_library().sets)
def kernels(request: pytest.FixtureRequest) -> SamplingKernels:
    return native_sampling(Tape(request.param, 2))


def run(kernels: SamplingKernels, mode: str, steps: int) -> list[list[SampledToken]]:
    sampler = Sampler(VOCAB, seed=3, logprobs_mode=mode, kernels=kernels)
    sequences = [make_sequence([1, 2, i], order=i, **params) for i, params in enumerate(PARAMS)]
    out = []
    for step in range(steps):
        logits = torch.randn(len(PARAMS), VOCAB, generator=torch.Generator().manual_seed(step)) * 3
        out.append(sampler.sample(logits, sequences))
        for sequence, token in zip(sequences, out[-1], strict=True):
            sequence.tokens.append(token.token_id)
    return out


@pytest.mark.parametrize("mode", ["raw_logprobs", "raw_logits", "processed_logprobs", "processed_logits"])
def test_the_same_seeds_give_the_same_answers(kernels: SamplingKernels, mode: str) -> None:
    for ours, theirs in zip(run(kernels, mode, 12), run(TORCH_SAMPLING, mode, 12), strict=True):
        assert [t.token_id for t in ours] == [t.token_id for t in theirs]
        for mine, other in zip(ours, theirs, strict=True):
            if mine.logprobs is None or other.logprobs is None:
                assert mine.logprobs is other.logprobs
                continue
            # What was filtered away has minus infinity, all alike: torch lists it in any order.
            said, want = ([entry for entry in token.logprobs if entry[1] > -1e30] for token in (mine, other))
            assert [entry[0] for entry in said] == [entry[0] for entry in want]
            assert [entry[1] for entry in said] == pytest.approx([entry[1] for entry in want], abs=3e-6)


def test_rows_without_a_choice(kernels: SamplingKernels) -> None:
    sequences = [
        make_sequence([1], allowed_token_ids=[4], bad_words_ids=[[4]], temperature=1.0, seed=1), make_sequence([1], temperature=0.0),
        make_sequence([1], temperature=1.0), make_sequence([1], temperature=1.0, top_p=0.5),
    ]  # fmt: skip
    logits = torch.randn(4, VOCAB, generator=torch.Generator().manual_seed(1))
    logits[2, 9], logits[3, 9] = float("nan"), float("inf")
    best = int(logits[1].argmax())
    got = Sampler(VOCAB, kernels=kernels).sample(logits, sequences)
    assert [t.token_id for t in got] == [NO_TOKEN, best, NO_TOKEN, NO_TOKEN]
    assert [t.error for t in got] == [None, None, NOT_FINITE, NOT_FINITE]
