"""GPTQ beside the formula it speeds up, and what it is for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headway.compression.gptq import BLOCK, GptqSettings, gptq
from headway.compression.input_sums import InputSums, relative_error
from headway.compression.rounding import Grid, nearest
from headway.errors import ArtifactError

OUT, WIDTH = 8, 192


def matrix(seed: int = 0) -> torch.Tensor:
    return torch.randn(OUT, WIDTH, generator=torch.Generator().manual_seed(seed)) * 0.1


def inputs(tokens: int = 600) -> torch.Tensor:
    """Correlated, and of very different sizes."""
    generator = torch.Generator().manual_seed(1)
    mixing = torch.randn(WIDTH, WIDTH, generator=generator) * 0.3 + torch.eye(WIDTH)
    sizes = torch.logspace(-1, 1, WIDTH)[torch.randperm(WIDTH, generator=generator)]
    return torch.randn(tokens, WIDTH, generator=generator) @ mixing * sizes


def sums_of(x: torch.Tensor) -> InputSums:
    sums = InputSums(WIDTH)
    for part in x.split(100):
        sums.add(part)
    return sums


def obs(weight: np.ndarray, hessian: np.ndarray, order: np.ndarray, scales: np.ndarray, group: int) -> np.ndarray:
    """Optimal brain surgeon, one input at a time in float64 (Frantar and Alistarh 2022, equations 3 and 4): the inverse of H of what is left
    is downdated after each. Scales are given. The rounded numbers [out, in]."""
    left, inverse = weight.astype(np.float64).copy(), np.linalg.inv(hessian.astype(np.float64))
    numbers = np.zeros_like(weight, dtype=np.int64)
    for j in order:
        scale = scales[:, j // group].astype(np.float64)
        numbers[:, j] = np.clip(np.round(left[:, j] / scale), -8, 7)
        error = (left[:, j] - numbers[:, j] * scale) / inverse[j, j]
        left -= error[:, None] * inverse[j][None]
        inverse = inverse - np.outer(inverse[:, j], inverse[j]) / inverse[j, j]
    return numbers


@pytest.mark.parametrize("act_order", [False, True])
def test_equals_the_formula(act_order: bool) -> None:
    """One group for the whole width, so that scales are the same; more inputs than a block."""
    assert WIDTH > BLOCK
    weight, products = matrix(), sums_of(inputs()).products
    grid = Grid(4, True, 64 if act_order else None, torch.float32)
    found = gptq(weight, products, grid, GptqSettings(damping=0.01, act_order=act_order))
    damped = products.double().numpy() + 0.01 * float(products.diagonal().mean()) * np.eye(WIDTH)
    order = np.argsort(-products.diagonal().numpy(), kind="stable") if act_order else np.arange(WIDTH)
    expected = obs(weight.numpy(), damped, order, grid.scales_of(weight)[0].numpy(), 64 if act_order else WIDTH)
    differing = (found.numbers.numpy() != expected).mean()
    assert differing < 0.01, "float32 may decide a tie otherwise, and what follows with it"


@pytest.mark.parametrize("act_order", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_outputs_are_closer_than_those_of_the_nearest(act_order: bool, symmetric: bool) -> None:
    weight, sums = matrix(), sums_of(inputs())
    grid = Grid(4, symmetric, 32, torch.bfloat16)
    plain = relative_error(nearest(weight, grid).weight(), weight, sums)
    ours = relative_error(gptq(weight, sums.products, grid, GptqSettings(act_order=act_order)).weight(), weight, sums)
    assert ours < (0.6 if act_order else 0.85) * plain
    x = inputs()
    held = relative_error(gptq(weight, sums.products, grid, GptqSettings(act_order=act_order)).weight(), weight, sums_of(x))
    outputs = float((x @ (gptq(weight, sums.products, grid, GptqSettings(act_order=act_order)).weight() - weight).t()).norm() / (x @ weight.t()).norm())
    assert held == pytest.approx(outputs, rel=1e-3)


def test_inputs_that_know_nothing_of_each_other_leave_the_nearest() -> None:
    weight = matrix()
    products = torch.diag(torch.linspace(1, 5, WIDTH))
    grid = Grid(4, True, 64, torch.float32)
    for act_order in (False, True):
        found = gptq(weight, products, grid, GptqSettings(act_order=act_order))
        assert torch.equal(found.numbers, nearest(weight, grid).numbers)


def test_inputs_that_are_always_zero() -> None:
    """Their weights are rounded to the nearest, not thrown away: another text may have them."""
    weight, x = matrix(), inputs()
    x[:, 10:20] = 0.0
    grid = Grid(4, True, 32, torch.float32)
    found = gptq(weight, sums_of(x).products, grid, GptqSettings())
    assert torch.equal(found.numbers[:, 10:20], nearest(weight, grid).numbers[:, 10:20])
    untouched = gptq(weight, torch.zeros(WIDTH, WIDTH), grid, GptqSettings())
    assert torch.equal(untouched.numbers, nearest(weight, grid).numbers)


def test_fewer_tokens_than_inputs() -> None:
    """The Hessian is singular; damping makes it none."""
    weight, sums = matrix(), sums_of(inputs(20))
    found = gptq(weight, sums.products, Grid(4, True, 32, torch.float32), GptqSettings(damping=1e-9))
    assert bool(torch.isfinite(found.weight()).all())


def test_activations_that_are_not_finite() -> None:
    with pytest.raises(ArtifactError, match="not finite"):
        gptq(matrix(), torch.full((WIDTH, WIDTH), float("nan")), Grid(4, True, 32, torch.float32), GptqSettings())
