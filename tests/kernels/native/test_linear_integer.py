"""Linear layers of codes against the dequantized weight, with inputs rounded as the kernels round them."""

from __future__ import annotations

from itertools import pairwise

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from headway.kernels.integer_reference import round_inputs
from headway.kernels.integer_weight import IntegerForm, IntegerMatrix, IntegerWeight
from headway.kernels.native.linear_integer import pack_integer_linear, packed_bytes, panel_form
from headway.kernels.native.tape import Tape

FORMS = {
    "int8 channels": IntegerForm(8, 192), "Q8_0": IntegerForm(8, 32), "int8 floors": IntegerForm(8, 16, minimums=True),
    "Q4_0": IntegerForm(4, 32, 8), "Q4_1": IntegerForm(4, 32, minimums=True), "AWQ": IntegerForm(4, 64, minimums=True),
    "int4 channels": IntegerForm(4, 192, 8), "int4 wide": IntegerForm(4, 96, 8, minimums=True), "narrow": IntegerForm(4, 16, 8),
}  # fmt: skip


def a_weight(form: IntegerForm, out: int, width: int, seed: int = 0) -> IntegerWeight:
    """Of order 1. float16 holds scales and minimums exactly: then nothing of the weight is rounded when it is packed."""
    generator = torch.Generator().manual_seed(seed)
    low, high, dtype = (0, 16, torch.uint8) if form.bits == 4 else (-128, 128, torch.int8)
    codes = torch.randint(low, high, (out, width), generator=generator).to(dtype)
    scales = (torch.rand(out, width // form.group, generator=generator) + 0.1) / (high - low)
    minimums = torch.randn(scales.shape, generator=generator) / 4 if form.minimums else None
    return IntegerWeight(form, codes, scales.half().float(), None if minimums is None else minimums.half().float())


def in_chunks(weight: IntegerWeight, *cuts: int) -> IntegerMatrix:
    out, width = weight.codes.shape
    edges = (0, *cuts, out)
    chunks = [weight.taken(torch.arange(a, b)) for a, b in pairwise(edges)]
    return IntegerMatrix(weight.form, out, width, chunks)


def some_inputs(rows: int, inputs: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Numbers that rounding to codes leaves as they are: whole, the largest of four is 127, each row times its power of two."""
    generator = torch.Generator().manual_seed(rows + inputs)
    x = torch.randint(-127, 128, (rows, inputs), generator=generator).float()
    x[:, ::4] = x[:, ::4].sign().add(0.5).sign() * 127
    return (x * 2.0 ** (torch.arange(rows) % 9 - 4)[:, None]).to(dtype)


def product(x: torch.Tensor, weight: IntegerWeight) -> tuple[torch.Tensor, torch.Tensor]:
    """float64 x W^T, and the same with all magnitudes: what roundings on the way are measured by."""
    dense = weight.dequantized().double()
    return x.double() @ dense.T, x.double().abs() @ dense.abs().T


def close(got: torch.Tensor, wanted: torch.Tensor, size: torch.Tensor) -> None:
    """Scales of inputs, of groups, and sums of at most 48 groups round in float32; then comes one rounding to the dtype of the result."""
    last = 2**-8 if got.dtype == torch.bfloat16 else 2**-23
    assert ((got.double() - wanted).abs() <= wanted.abs() * last + size * 2**-20).all()


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_form(tape: Tape, name: str, dtype: torch.dtype) -> None:
    weight = a_weight(FORMS[name], 75, 192)
    bias = torch.randn(75, generator=torch.Generator().manual_seed(1))
    x = some_inputs(14, 192, dtype)
    wanted, size = product(x, weight)
    close(pack_integer_linear(tape, in_chunks(weight, 20, 21, 64), None).widened(x), wanted, size)
    packed = pack_integer_linear(tape, in_chunks(weight), bias)
    size += bias.abs() + x[:, :75].abs()
    close(packed(x), wanted + bias, size)
    close(packed.add_to(x[:, :75], x), wanted + bias + x[:, :75], size)
    close(packed.activated(x, "relu"), (wanted + bias).relu(), size)


@given(rows=st.integers(1, 30), groups=st.integers(1, 5), width=st.integers(1, 80), name=st.sampled_from(["Q8_0", "Q4_0", "Q4_1"]))
def test_products_of_any_shape(tape: Tape, rows: int, groups: int, width: int, name: str) -> None:
    inputs = groups * FORMS[name].group
    weight = a_weight(FORMS[name], width, inputs, seed=rows + 31 * width)
    x = some_inputs(rows, inputs + 1)[:, :inputs]
    close(pack_integer_linear(tape, in_chunks(weight), None)(x), *product(x, weight))


@pytest.mark.parametrize("inputs", [1, 3, 63, 64, 65, 100])
def test_channels_of_any_number_of_inputs(tape: Tape, inputs: int) -> None:
    """One scale for a channel: the last group of inputs is filled up."""
    weight, x = a_weight(IntegerForm(8, inputs), 33, inputs), some_inputs(5, inputs)
    close(pack_integer_linear(tape, in_chunks(weight), None)(x), *product(x, weight))


@pytest.mark.parametrize("name", ["int8 channels", "Q4_0"])
def test_inputs_are_rounded_to_nearest_in_their_group(tape: Tape, name: str) -> None:
    """The identity as weight shows what is left of x: half a code of the group's scale is lost at most, and it is what the reference
    leaves of it, unless a number lies within a few float32 roundings of the middle between two codes."""
    form, width = FORMS[name], 192
    one = torch.eye(width, dtype=torch.int8) if form.bits == 8 else (8 + torch.eye(width)).to(torch.uint8)
    packed = pack_integer_linear(tape, in_chunks(IntegerWeight(form, one, torch.ones(width, width // form.group))), None)
    x = torch.randn(10, width, generator=torch.Generator().manual_seed(9)) * torch.logspace(-3, 3, width)
    form_here = panel_form(form, width)
    assert form_here is not None
    got, tops = packed(x), x.view(10, -1, form_here.group).abs().amax(-1).repeat_interleave(form_here.group, 1)
    assert ((got - x).abs() <= tops / 254 * 1.00001).all()
    sure = ((x / tops * 127) % 1 - 0.5).abs() > 1e-4
    assert sure.float().mean() > 0.99
    assert torch.allclose(got[sure], round_inputs(x, form_here.group)[sure], rtol=1e-6, atol=0)


def test_largest_codes_do_not_overflow(tape: Tape) -> None:
    width = 4096
    for form, code in ((IntegerForm(8, width), -128), (IntegerForm(8, 32), 127), (IntegerForm(4, 64, 8), 15)):
        weight = IntegerWeight(
            form, torch.full((32, width), code, dtype=torch.uint8 if form.bits == 4 else torch.int8), torch.ones(32, width // form.group)
        )
        value = float(code - form.offset)
        got = pack_integer_linear(tape, in_chunks(weight), None)(torch.full((2, width), 127.0))
        assert torch.equal(got, torch.full((2, 32), value * 127 * width))


def test_scales_far_apart_survive_float16(tape: Tape) -> None:
    """Scales of 1e-9 in one channel and 1e5 in another: each channel has its own power of two."""
    form = IntegerForm(4, 32, 8)
    codes = torch.randint(0, 16, (32, 64), generator=torch.Generator().manual_seed(2)).to(torch.uint8)
    scales = torch.logspace(-9, 5, 32)[:, None] * torch.tensor([1.0, 0.013])
    weight = IntegerWeight(form, codes, scales)
    got, dense = pack_integer_linear(tape, in_chunks(weight), None)(torch.ones(1, 64)), weight.dequantized().double()
    assert ((got[0].double() - dense.sum(-1)).abs() <= dense.abs().sum(-1) * 2**-11).all()


def test_floors_far_above_their_scale(tape: Tape) -> None:
    """A group of equal numbers has a scale of 0, and its floor says all."""
    form = IntegerForm(4, 32, minimums=True)
    floors = torch.linspace(-9000, 9000, 32)[:, None]
    weight = IntegerWeight(form, torch.zeros(32, 32, dtype=torch.uint8), torch.zeros(32, 1), floors)
    got = pack_integer_linear(tape, in_chunks(weight), None)(torch.ones(1, 32))
    assert torch.allclose(got[0], floors[:, 0] * 32, rtol=2**-11)


def test_zero_rows_give_the_bias_and_what_is_not_finite_gives_nan(tape: Tape) -> None:
    weight = a_weight(FORMS["Q4_1"], 40, 64)
    x = torch.zeros(4, 64)
    x[1, 5], x[2, 6], x[3, 7] = float("nan"), float("inf"), float("-inf")
    got = pack_integer_linear(tape, in_chunks(weight), torch.ones(40))(x)
    assert torch.equal(got[0], torch.ones(40))
    assert got[1:].isnan().all()


def test_results_do_not_depend_on_other_rows(tape: Tape) -> None:
    x = torch.randn(20, 192, generator=torch.Generator().manual_seed(4))
    for name in ("int8 channels", "Q4_1"):
        packed = pack_integer_linear(tape, in_chunks(a_weight(FORMS[name], 64, 192)), None)
        alone = torch.cat([packed(row[None]) for row in x])
        for rows in (2, 6, 7, 20):
            assert torch.equal(packed(x[:rows]), alone[:rows])


def test_recorded_call_runs_with_fewer_rows(tape: Tape) -> None:
    x = torch.randn(20, 192, generator=torch.Generator().manual_seed(4))
    packed = pack_integer_linear(tape, in_chunks(a_weight(FORMS["Q4_0"], 64, 192)), None)
    with tape.record(tokens=20, outputs=3, sequences=2) as recording:
        result = packed(x)
    for rows in (20, 13, 1):
        recording.run(rows, 1, 1)
        assert torch.equal(result[:rows], packed(x[:rows]))


def test_groups_and_bytes() -> None:
    """Bytes of 32 channels and 192 inputs, counted by hand: codes, float16 scales and floors, a float32 multiplier for each channel."""
    assert packed_bytes(FORMS["int8 channels"], 30, 192) == 32 * (192 + 4)
    assert packed_bytes(FORMS["Q4_0"], 32, 192) == 32 * (96 + 6 * 2 + 4)
    assert packed_bytes(FORMS["Q4_1"], 32, 192) == 32 * (96 + 6 * 4 + 4)
    wide = panel_form(FORMS["int4 wide"], 192)
    assert wide is not None
    assert (wide.group, wide.repeats) == (48, 2)
    assert packed_bytes(IntegerForm(4, 24, 8), 32, 192) is None


def test_groups_that_are_no_multiple_of_sixteen_are_refused(tape: Tape) -> None:
    with pytest.raises(ValueError, match="multiple of 16"):
        pack_integer_linear(tape, in_chunks(a_weight(IntegerForm(4, 24, 8), 32, 48)), None)
