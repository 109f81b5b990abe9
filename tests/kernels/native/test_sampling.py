"""Native sampling against torch's, by sets of what is kept, by equal draws for equal numbers, and by counting draws.

Both sum probabilities, in different orders, so the one token at the border of top_p may be kept by either; nothing else may differ.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xgrammar import get_bitmask_shape

from headway.kernels.native.sampling import native_sampling
from headway.kernels.native.tape import Tape
from headway.kernels.sampling import Choices, SamplingKernels
from headway.kernels.torch_sampling import TORCH_SAMPLING

WIDTHS = (1, 2, 7, 16, 700, 1024, 3001)
INFINITY = float("inf")
few = settings(max_examples=60, deadline=None)


@pytest.fixture(scope="module")
def kernels(tape: Tape) -> SamplingKernels:
    return native_sampling(tape)


def random(seed: int, *sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def choices(width: int, options: list[tuple[int, float, float, float]]) -> Choices:
    """(top_k, top_p, min_p, temperature) of each row; top_k 0 = off, temperature 0 = greedy."""
    top_k, top_p, min_p, temperature = zip(*options, strict=True)
    return Choices(
        drawn=torch.tensor([t > 0 for t in temperature]), temperature=torch.tensor([t or 1.0 for t in temperature]),
        min_p=torch.tensor(min_p), top_k=torch.tensor([min(k, width) or width for k in top_k]), top_p=torch.tensor(top_p),
    )  # fmt: skip


def drawn(kernels: SamplingKernels, logits: torch.Tensor, chosen: Choices, numbers: list[float], keep: bool = True) -> tuple[list[int], torch.Tensor]:
    own = logits.clone()
    tokens = kernels.draw(own, chosen, torch.tensor(numbers, dtype=torch.float64), TORCH_SAMPLING.argmax(logits)[0], keep)
    return tokens.tolist(), own


OPTIONS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, 5, 50, 600]), st.sampled_from([1.0, 0.999, 0.9, 0.3, 1e-6]), st.sampled_from([0.0, 0.001, 0.05, 1.0]),
        st.sampled_from([0.0, 0.5, 1.0, 1.7]),
    ), min_size=1, max_size=5,
)  # fmt: skip


@few
@given(options=OPTIONS, width=st.sampled_from(WIDTHS), scale=st.sampled_from([0.01, 1.0, 6.0, 30.0]), seed=st.integers(0, 10_000))
def test_the_same_tokens_stay_and_the_same_numbers_draw_the_same(
    kernels: SamplingKernels, options: list[tuple[int, float, float, float]], width: int, scale: float, seed: int
) -> None:
    logits = random(seed, len(options), width) * scale
    assume(all(len(row.unique()) == width for row in logits))  # torch keeps any of equal ones
    numbers = torch.rand(len(options), generator=torch.Generator().manual_seed(seed)).tolist()
    chosen = choices(width, options)
    ours, left = drawn(kernels, logits, chosen, numbers)
    theirs, want = drawn(TORCH_SAMPLING, logits, chosen, numbers)
    blind, _ = drawn(kernels, logits, chosen, numbers, keep=False)
    assert blind == ours
    for row, (_, top_p, _, temperature) in enumerate(options):
        if temperature == 0:
            assert ours[row] == int(logits[row].argmax())
            continue
        difference = int((left[row].isfinite() != want[row].isfinite()).sum())
        assert difference <= (top_p < 1)
        both = left[row].isfinite() & want[row].isfinite()
        assert torch.equal(left[row][both], want[row][both])
        if difference == 0:
            assert ours[row] == theirs[row]


@pytest.mark.parametrize("top_k", [1, 3, 40, 999])
def test_of_equal_numbers_the_first_stay(kernels: SamplingKernels, top_k: int) -> None:
    logits = random(0, 1, 1000).mul(2).round()
    _, left = drawn(kernels, logits, choices(1000, [(top_k, 1.0, 0.0, 1.0)]), [0.5])
    want = sorted(range(1000), key=lambda i: (-float(logits[0, i]), i))[:top_k]
    assert torch.nonzero(left[0].isfinite()).flatten().tolist() == sorted(want)


def test_a_flat_row_as_wide_as_a_vocabulary(kernels: SamplingKernels) -> None:
    """Everything is needed to reach top_p, and almost nothing parts the numbers."""
    logits = random(3, 2, 50_000) * 1e-3
    chosen = choices(50_000, [(0, 0.97, 0.0, 1.0), (20_000, 0.5, 0.0, 1.0)])
    _, left = drawn(kernels, logits, chosen, [0.3, 0.9])
    _, want = drawn(TORCH_SAMPLING, logits, chosen, [0.3, 0.9])
    # torch adds 50,000 probabilities up in float32.
    assert ((left.isfinite() != want.isfinite()).sum(1) <= torch.tensor([60, 10])).all()


def test_what_is_forbidden_is_never_drawn(kernels: SamplingKernels) -> None:
    logits = torch.full((3, 2000), -INFINITY)
    logits[:, [5, 1999]] = torch.tensor([1.0, 1.0])
    chosen = choices(2000, [(0, 1.0, 0.0, 1.0), (50, 1.0, 0.0, 1.0), (50, 0.99, 0.0, 1.0)])
    for number in (0.0, 0.49, 0.51, math.nextafter(1.0, 0.0)):
        tokens, _ = drawn(kernels, logits, chosen, [number] * 3)
        assert tokens == [5 if number < 0.5 else 1999] * 3


@pytest.mark.parametrize("options", [(0, 1.0, 0.0, 1.0), (4, 1.0, 0.0, 1.0), (0, 0.9, 0.0, 1.0)])
def test_draws_follow_the_distribution(kernels: SamplingKernels, options: tuple[int, float, float, float]) -> None:
    """Chi-square over 12,000 draws of five tokens; 23.5 is the 0.9999 quantile for 4 degrees of freedom, an upper bound for 3."""
    probs = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05], dtype=torch.float64)
    draws = 12_000
    logits = torch.full((draws, 700), -INFINITY)
    logits[:, :5] = probs.log().float()
    numbers = torch.rand(draws, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).tolist()
    tokens, _ = drawn(kernels, logits, choices(700, [options] * draws), numbers, keep=False)
    stay = probs if options == (0, 1.0, 0.0, 1.0) else probs[:4] / probs[:4].sum()
    counts = torch.bincount(torch.tensor(tokens), minlength=len(stay)).double()
    assert len(counts) == len(stay)
    assert float(((counts - draws * stay) ** 2 / (draws * stay)).sum()) < 23.5


@few
@given(rows=st.integers(0, 5), width=st.sampled_from(WIDTHS), whole=st.booleans(), seed=st.integers(0, 999))
def test_argmax(kernels: SamplingKernels, rows: int, width: int, whole: bool, seed: int) -> None:
    logits = random(seed, rows, width + 3)[:, :width] * 4
    logits = logits.round() if whole else logits
    tokens, values = kernels.argmax(logits)
    assert values.tolist() == logits.amax(-1).tolist()
    assert tokens.tolist() == [next(i for i, v in enumerate(row) if v == max(row)) for row in logits.tolist()]


@pytest.mark.parametrize("width", [3, 40, 3000])
def test_argmax_of_what_is_not_finite(kernels: SamplingKernels, width: int) -> None:
    logits = torch.zeros(5, width)
    logits[0, -1] = float("nan")
    logits[1, [1, 2]] = INFINITY
    logits[2] = -INFINITY
    logits[3, 0], logits[3, 1:] = INFINITY, float("nan")
    logits[4] = -INFINITY
    logits[4, 2] = -3.0
    tokens, values = kernels.argmax(logits)
    assert tokens.tolist() == [width - 1, 1, 0, 1, 2]
    assert values.isnan().tolist() == [True, False, False, True, False]
    assert values[[1, 2, 4]].tolist() == [INFINITY, -INFINITY, -3.0]


@few
@given(
    rows=st.integers(1, 4), width=st.sampled_from(WIDTHS), count=st.sampled_from((0, 1, 5, 20, 3001)), scale=st.sampled_from((0.01, 5.0)),
    normalised=st.booleans(), seed=st.integers(0, 999),
)  # fmt: skip
def test_ranks(kernels: SamplingKernels, rows: int, width: int, count: int, scale: float, normalised: bool, seed: int) -> None:
    logits, count = random(seed, rows, width) * scale, min(count, width)
    asked = [[(seed * 7 + row * 13 + i) % width for i in range(1 + row % 3)] for row in range(rows)]
    ours, theirs = (k.rank(logits, asked, count, normalised) for k in (kernels, TORCH_SAMPLING))
    # log_softmax of torch and ours round at different places.
    torch.testing.assert_close(torch.tensor(ours.values), torch.tensor(theirs.values), atol=2e-6, rtol=1e-6)
    torch.testing.assert_close(torch.tensor(ours.best_values), torch.tensor(theirs.best_values), atol=2e-6, rtol=1e-6)
    assert ours.ranks == [int((logits[row] >= logits[row, token]).sum()) for row, tokens in enumerate(asked) for token in tokens]
    assert ours.best == [sorted(range(width), key=lambda i, row=row: (-float(logits[row, i]), i))[:count] for row in range(rows)]


def test_ranks_of_a_row_with_nan_end(kernels: SamplingKernels) -> None:
    logits = torch.full((1, 50), float("nan"))
    found = kernels.rank(logits, [[3]], 5, True)
    assert math.isnan(found.values[0])
    assert len(found.best[0]) == 5


@pytest.mark.parametrize("torch_itself", [False, True], ids=["native", "torch"])
@few
@given(rows=st.lists(st.integers(0, 5), unique=True, min_size=1), width=st.sampled_from([1, 31, 32, 33, 700, 3001]), seed=st.integers(0, 10_000))
def test_what_a_mask_forbids(kernels: SamplingKernels, torch_itself: bool, rows: list[int], width: int, seed: int) -> None:
    """Bit by bit; whole words of 0 and of 1 among them. (xgrammar's own function reads past rows that do not fill their last word.)"""
    logits = random(seed, 6, width)
    words = random(seed + 1, *get_bitmask_shape(6, width))
    masks = torch.where(words < -0.5, 0, torch.where(words > 0.5, -1, (words * 2**31).clamp(-(2**31), 2**31 - 128).to(torch.int64))).to(torch.int32)
    expected = logits.clone()
    allowed = np.unpackbits(masks.numpy().view(np.uint8), axis=1, bitorder="little")[:, :width].astype(bool)
    for row in rows:
        expected[row, torch.from_numpy(~allowed[row])] = -INFINITY
    (TORCH_SAMPLING if torch_itself else kernels).forbid(logits, masks, rows)
    assert torch.equal(logits, expected)
