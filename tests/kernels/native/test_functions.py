"""How exact the vector functions are, against float64: in units in the last place of float32 (2^-23 relative, at most twice the spacing).

`erf` is only reached through gelu, `exp` through silu; the bounds hold for the whole activation. Below 0 gelu falls to nothing faster than
any power, and the argument of its exponential carries the error: there the bound is absolute.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from headway.kernels.interface import Activation
from headway.kernels.native import pointwise
from headway.kernels.native.tape import Tape

ULP = 2.0**-23
GRID = torch.cat((torch.linspace(-30, 30, 40_001), torch.linspace(-1, 1, 20_001), torch.logspace(-30, 0, 999), -torch.logspace(-30, 0, 999)))


def exact(name: Activation, x: torch.Tensor) -> torch.Tensor:
    forms: dict[Activation, Callable[[torch.Tensor], torch.Tensor]] = {
        "silu": lambda x: x / (1 + torch.exp(-x)),
        "gelu": lambda x: x * 0.5 * torch.special.erfc(-x / math.sqrt(2)),
        "gelu_tanh": lambda x: x / (1 + torch.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        "relu": lambda x: x.clamp(min=0),
    }
    return forms[name](x.double())


@pytest.mark.parametrize(("name", "above", "below"), [("silu", 1.2, 0.5), ("gelu", 2.0, 0.5), ("gelu_tanh", 2.2, 0.5), ("relu", 0.0, 0.0)])
def test_activations_in_units_in_the_last_place(tape: Tape, name: Activation, above: float, below: float) -> None:
    """`above` -1 relative to the result; `below` it relative to 1."""
    ours, want = pointwise.activate(tape, name, GRID[None])[0].double(), exact(name, GRID)
    errors = (ours - want).abs() / ULP
    near = GRID > -1
    assert float((errors / want.abs().clamp(min=1e-38))[near].max()) <= above
    assert float(errors[~near].max()) <= below


def test_tanh_in_units_in_the_last_place(tape: Tape) -> None:
    ours = pointwise.finish_logits(tape, GRID[None].clone(), None, 1.0)[0].double()
    want = GRID.double().tanh()
    assert float(((ours - want).abs() / ULP / want.abs().clamp(min=1e-38)).max()) <= 1.2


@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh", "relu"])
def test_what_is_not_finite(tape: Tape, name: Activation) -> None:
    x = torch.tensor([[float("inf"), float("nan"), 1e30, -1e30, 0.0]])
    found = pointwise.activate(tape, name, x)[0]
    assert found[0] == float("inf")
    assert found[1].isnan()
    assert found[2] == x[0, 2]
    assert found[3] == 0
    assert found[4] == 0
