"""Matrices of integers: forms that hold others exactly, rows in other orders, and products with them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.kernels.integer_reference import reference_integers
from headway.kernels.integer_weight import IntegerForm, IntegerMatrix, IntegerWeight, stacked
from headway.kernels.interface import Activation

FORMS = st.builds(
    lambda bits, group, kind: IntegerForm(bits, group, 8 if kind == "offset" and bits == 4 else 0, kind == "minimums"),
    st.sampled_from([4, 8]), st.sampled_from([16, 32, 64, 96, 192]), st.sampled_from(["offset", "minimums"]),
)  # fmt: skip
WIDTH = 192


def made(form: IntegerForm, rows: int = 5, seed: int = 0) -> IntegerWeight:
    """Scales of float16, as files have them: products with codes are exact in float32."""
    random = torch.Generator().manual_seed(seed)
    low, high = (0, 16) if form.bits == 4 else (-128, 128)
    codes = torch.randint(low, high, (rows, WIDTH), generator=random).to(torch.uint8 if form.bits == 4 else torch.int8)
    scales, minimums = (torch.randn(rows, WIDTH // form.group, generator=random).half().float() for _ in range(2))
    return IntegerWeight(form, codes, scales, minimums if form.minimums else None)


def one_by_one(weight: IntegerWeight) -> torch.Tensor:
    """The formula of the module, a number at a time, in float64."""
    form, scales = weight.form, weight.scales.tolist()
    lows = [[0.0] * WIDTH] * len(scales) if weight.minimums is None else weight.minimums.tolist()
    rows = [
        [scales[o][i // form.group] * (code - form.offset) + lows[o][i // form.group] for i, code in enumerate(row)]
        for o, row in enumerate(weight.codes.tolist())
    ]
    return torch.tensor(rows, dtype=torch.float64)


@settings(deadline=None)
@given(FORMS)
def test_what_a_matrix_is(form: IntegerForm) -> None:
    weight = made(form, rows=2)
    expected = one_by_one(weight)
    torch.testing.assert_close(weight.dequantized().double(), expected, rtol=1e-6, atol=1e-6)
    spread = weight.scales.repeat_interleave(form.group, 1) * weight.codes.float() + weight.floors.repeat_interleave(form.group, 1)
    torch.testing.assert_close(spread.double(), expected, rtol=1e-6, atol=1e-6)


@given(FORMS, FORMS)
def test_a_joined_form_holds_both(one: IntegerForm, other: IntegerForm) -> None:
    form = one.joined(other)
    assert form == other.joined(one)
    assert form.bits == max(one.bits, other.bits)
    for each in (one, other):
        weight = made(each)
        moved = weight.as_form(form)
        assert moved.form == form
        assert torch.equal(moved.dequantized(), weight.dequantized())


def test_the_same_form_stays() -> None:
    form = IntegerForm(4, 32, 8)
    assert form.joined(form) == form
    weight = made(form)
    assert weight.as_form(form) is weight


@given(FORMS)
def test_rows_are_stacked_taken_and_folded(form: IntegerForm) -> None:
    parts = [made(form, 3, seed=1), made(form, 4, seed=2)]
    whole = stacked(parts)
    dense = torch.cat([part.dequantized() for part in parts])
    assert torch.equal(whole.dequantized(), dense)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(3))
    assert torch.equal(whole.taken(order).dequantized(), dense[order])
    folded = stacked(parts[1:]).folded(2 * WIDTH)
    assert torch.equal(folded.dequantized(), dense[3:].view(2, 2 * WIDTH))


CODES = torch.zeros(2, 64, dtype=torch.int8)
SCALES = torch.ones(2, 2)


@pytest.mark.parametrize(
    ("form", "codes", "scales", "minimums", "says"),
    [
        (IntegerForm(4, 32), CODES, SCALES, None, "not of the form"),
        (IntegerForm(8, 48), CODES, SCALES, None, "not of the form"),
        (IntegerForm(8, 32, 8), CODES, SCALES, None, "not of the form"),
        (IntegerForm(8, 32), CODES, SCALES, SCALES, "left out"),
        (IntegerForm(8, 32, minimums=True), CODES, SCALES, None, "minimums must be there"),
        (IntegerForm(8, 64), CODES, SCALES, None, "must be float32"),
        (IntegerForm(8, 32), CODES, SCALES.half(), None, "must be float32"),
    ],
)
def test_parts_that_do_not_belong_together(
    form: IntegerForm, codes: torch.Tensor, scales: torch.Tensor, minimums: torch.Tensor | None, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        IntegerWeight(form, codes, scales, minimums)


@pytest.mark.parametrize("activation", ["silu", "gelu", "gelu_tanh", "relu"])
def test_products_are_those_of_the_matrix(activation: Activation) -> None:
    parts = [made(IntegerForm(4, 32, minimums=True), rows, seed=rows) for rows in (3, 4)]
    dense, bias = torch.cat([part.dequantized() for part in parts]).double(), torch.randn(7)
    packed = reference_integers().pack(IntegerMatrix(parts[0].form, 7, WIDTH, iter(parts)), bias)
    x, residual = torch.randn(5, WIDTH), torch.randn(5, 7)
    product = x.double() @ dense.T + bias.double()
    torch.testing.assert_close(packed(x).double(), product, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(packed.add_to(residual, x).double(), residual.double() + product, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(packed(x.bfloat16()).double(), x.bfloat16().double() @ dense.T + bias.double(), rtol=8e-3, atol=1e-3)
    functions = {"silu": "silu", "gelu": "gelu", "gelu_tanh": "gelu", "relu": "relu"}
    options = {"approximate": "tanh"} if activation == "gelu_tanh" else {}
    expected = getattr(torch.nn.functional, functions[activation])(product, **options)
    torch.testing.assert_close(packed.activated(x, activation).double(), expected, rtol=1e-5, atol=1e-4)


def test_rounded_activations_have_127_steps() -> None:
    weight = IntegerWeight(IntegerForm(8, 4), torch.eye(4).to(torch.int8), torch.ones(4, 1))
    x = torch.tensor([[127.0, 0.4, -1.6, 2.5], [0.0, 0.0, 0.0, 0.0], [float("inf"), 1.0, 1.0, 1.0]])
    found = reference_integers(4).pack(IntegerMatrix(weight.form, 4, 4, [weight]), None)(x)
    assert found[:2].tolist() == [[127.0, 0.0, -2.0, 2.0], [0.0, 0.0, 0.0, 0.0]]
    by_twos = reference_integers(2).pack(IntegerMatrix(weight.form, 4, 4, [weight]), None)(x[:1])
    torch.testing.assert_close(by_twos, torch.tensor([[127.0, 0.0, -81 * 2.5 / 127, 2.5]]))
    assert found[2].isnan().all()
