"""Mixtures of experts: the sum over each token's experts, with one pass through every expert that anybody needs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
import torch
import torch.nn.functional as F

from headway.kernels.interface import Kernels, PackedLinear
from headway.kernels.invariant_backend import INVARIANT
from headway.kernels.torch_backend import TORCH
from headway.layers.moe import MixtureOfExperts, Routing
from tests.kernels.counted_calls import CountedCalls

HIDDEN, INNER = 16, 24


@dataclass
class CountedLinears:
    """Kernels whose linear layers note how many rows each call has."""

    rows: list[int] = field(default_factory=list)

    def kernels(self) -> Kernels:
        return replace(TORCH, pack_linear=self._pack)

    def _pack(self, weight: torch.Tensor, bias: torch.Tensor | None) -> PackedLinear:
        inner, rows = TORCH.pack_linear(weight, bias), self.rows

        class Counted:
            def __call__(self, x: torch.Tensor) -> torch.Tensor:
                rows.append(x.shape[0])
                return inner(x)

            def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
                raise AssertionError("an expert's part is weighted before it is added")

        return Counted()


@dataclass
class Weights:
    router: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


def weights(experts: int) -> Weights:
    generator = torch.Generator().manual_seed(3)
    return Weights(
        torch.randn(experts, HIDDEN, generator=generator),
        torch.randn(experts, 2 * INNER, HIDDEN, generator=generator),
        torch.randn(experts, HIDDEN, INNER, generator=generator),
    )


def layer(kernels: Kernels, routing: Routing, values: Weights) -> MixtureOfExperts:
    made = MixtureOfExperts(kernels, "silu", routing)
    made.router.load(values.router)
    for expert, gate_up, down in zip(made.experts, values.gate_up, values.down, strict=True):
        expert.gate_up.load(gate_up)
        expert.down.load(down)
    return made


def one_token(values: Weights, routing: Routing, x: torch.Tensor) -> tuple[torch.Tensor, list[int]]:
    """[hidden] -> what its experts make of it, and which they are; written out expert by expert."""
    probabilities = (values.router @ x).softmax(-1)
    chosen = sorted(range(routing.experts), key=lambda i: -float(probabilities[i]))[: routing.chosen]
    total = sum(float(probabilities[i]) for i in chosen) if routing.renormalized else 1.0
    out = torch.zeros(HIDDEN)
    for i in chosen:
        gate, up = (values.gate_up[i] @ x).chunk(2)
        out += values.down[i] @ (F.silu(gate) * up) * float(probabilities[i]) / total
    return out, chosen


def tokens(count: int) -> torch.Tensor:
    return torch.randn(count, HIDDEN, generator=torch.Generator().manual_seed(count))


@pytest.mark.parametrize("renormalized", [True, False])
@pytest.mark.parametrize("chosen", [1, 3, 8])
@pytest.mark.parametrize("count", [1, 2, 50])
def test_equals_the_sum_written_out(renormalized: bool, chosen: int, count: int) -> None:
    routing, values = Routing(8, chosen, renormalized), weights(8)
    x, residual = tokens(count), tokens(count + 100)[:count]
    expected = residual + torch.stack([one_token(values, routing, row)[0] for row in x])
    torch.testing.assert_close(layer(TORCH, routing, values)(x, residual), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 5, 200])
def test_only_experts_that_somebody_needs_run_and_each_once(count: int) -> None:
    routing, values, counted = Routing(64, 4, renormalized=True), weights(64), CountedLinears()
    x = tokens(count)
    active = {i for row in x for i in one_token(values, routing, row)[1]}
    layer(counted.kernels(), routing, values)(x, torch.zeros_like(x))
    assert len(counted.rows) == 1 + 2 * len(active)
    assert counted.rows[0] == count
    assert sum(counted.rows[1:]) == 2 * 4 * count  # no expert sees a token that is not its own


def test_calls_depend_on_active_experts_not_on_tokens() -> None:
    values = weights(8)
    made = layer(TORCH, Routing(8, 2, renormalized=True), values)

    def calls(x: torch.Tensor) -> Counter[str]:
        with CountedCalls() as counter:
            made(x, torch.zeros_like(x))
        return counter.calls

    one = tokens(1)
    assert calls(one.expand(300, -1).contiguous()) == calls(one)


def test_a_token_gets_the_same_bits_whatever_is_beside_it() -> None:
    """With kernels that do not depend on the batch, neither does this: experts are added up in the order of their numbers."""
    made = layer(INVARIANT, Routing(8, 3, renormalized=True), weights(8))
    x = tokens(40)
    everything = made(x, torch.zeros_like(x))
    alone = torch.cat([made(row[None], torch.zeros(1, HIDDEN)) for row in x])
    assert torch.equal(alone, everything)


def test_the_result_has_the_dtype_of_the_model() -> None:
    values = weights(4)
    half = Weights(*(part.bfloat16() for part in (values.router, values.gate_up, values.down)))
    x = tokens(3).bfloat16()
    out = layer(TORCH, Routing(4, 2, renormalized=True), half)(x, x)
    assert out.dtype == torch.bfloat16
