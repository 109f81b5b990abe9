"""Updates are added to what the layer beneath computes, whatever its weights are, and to the rows that are meant."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from headway.kernels.choice import default_kernels
from headway.kernels.integer_weight import IntegerForm, IntegerMatrix, IntegerWeight
from headway.kernels.interface import Kernels, PackedLinear
from headway.layers.low_rank import ActiveUpdates, AdaptedLinear, LowRankUpdate, Rows

ROWS, IN, OUT = 6, 32, 40
chance = torch.Generator().manual_seed(3)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=chance)


def floats(kernels: Kernels, dtype: torch.dtype) -> PackedLinear:
    return kernels.pack_linear(random(OUT, IN).to(dtype), random(OUT).to(dtype))


def integers(kernels: Kernels, dtype: torch.dtype) -> PackedLinear:
    if kernels.integers is None:
        return floats(kernels, dtype)
    codes = torch.randint(-128, 128, (OUT, IN), generator=chance).to(torch.int8)
    form = IntegerForm(bits=8, group=IN)
    return kernels.integers.pack(IntegerMatrix(form, OUT, IN, [IntegerWeight(form, codes, random(OUT, 1).abs() / 100)]), None)


@pytest.mark.parametrize("rows", [slice(1, 4), torch.tensor([0, 3, 5])], ids=["neighbours", "apart"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("make", [floats, integers])
def test_rows_get_their_update(make: Callable[[Kernels, torch.dtype], PackedLinear], stored: torch.dtype, dtype: torch.dtype, rows: Rows) -> None:
    kernels = default_kernels(dtype)
    beneath, active = make(kernels, dtype), ActiveUpdates()
    layer = AdaptedLinear(beneath, "here", active, kernels)
    x, residual = random(ROWS, IN).to(dtype), random(ROWS, OUT).to(dtype)
    downs, ups = (random(3, IN), random(2, IN)), (random(3, 8), random(2, 20))
    up = torch.zeros(OUT, 5)
    up[4:12, :3], up[20:40, 3:] = ups[0].T, ups[1].T
    update = LowRankUpdate(torch.cat(downs).to(stored), up.to(stored))
    added = torch.zeros(ROWS, OUT)
    added[rows, 4:12] = x[rows].float() @ downs[0].T @ ups[0]
    added[rows, 20:40] = x[rows].float() @ downs[1].T @ ups[1]
    wanted = [
        (lambda each: each(x), beneath(x).float() + added),
        (lambda each: each.widened(x), beneath.widened(x) + added),
        (lambda each: each.add_to(residual, x), beneath.add_to(residual, x).float() + added),
        (lambda each: each.activated(x, "relu"), (beneath.widened(x) + added).relu()),
    ]
    with active.applying([(rows, {"here": update}), (slice(0, ROWS), {"elsewhere": update})]):
        for call, expected in wanted:
            error = (call(layer).float() - expected).abs().max() / expected.abs().max()
            assert error < (1e-5 if dtype == stored == torch.float32 else 2e-2)
    for call, _ in wanted:
        assert torch.equal(call(layer), call(beneath))
