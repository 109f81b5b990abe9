"""Every contender of the linear cases runs; a case says which bytes and operations it stands for."""

from __future__ import annotations

import pytest
import torch

from headway.bench.kernel_case import KernelCase
from headway.bench.kernel_cases import linear
from headway.kernels.native.library import native_library
from headway.kernels.native.tape import Tape

SMALLEST = [case for case in linear.CASES if case.shape == "[4,576]x[576,1536]"]


@pytest.mark.parametrize("case", SMALLEST, ids=lambda case: f"{case.name}-{case.beside}")
def test_native_and_torch_give_the_same_shape(case: KernelCase, monkeypatch: pytest.MonkeyPatch) -> None:
    library = native_library()
    if not library.sets:
        pytest.skip(library.missing or "no native kernels")
    monkeypatch.setattr(linear, "_BEYOND_CACHES", 1)  # a single copy
    monkeypatch.setattr(linear, "use_huge_pages", lambda: 0)
    contenders = case.make(Tape(library.sets[0], 1))
    assert contenders.torch is not None
    results = [run() for run in (contenders.native, contenders.torch)]
    assert [result.shape for result in results if isinstance(result, torch.Tensor)] == [(4, 1536)] * 2


def test_bytes_and_operations() -> None:
    """[4,576] x [576,1536], counted by hand: weights, and bfloat16 inputs and results."""
    weights, around = 576 * 1536, 2 * 4 * (576 + 1536)
    found = {case.name: case.nbytes - around for case in SMALLEST}
    assert found == {
        "linear bf16": 2 * weights, "linear fp32": 4 * weights, "linear int8": weights + 4 * 1536,
        "linear 4 bit": weights / 2 + 2 * weights / 32 + 4 * 1536,
    }  # fmt: skip
    assert {case.operations for case in SMALLEST} == {2 * 4 * weights}
    assert len({(case.name, case.shape, case.beside) for case in linear.CASES}) == len(linear.CASES)
