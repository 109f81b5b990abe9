"""How fast this machine multiplies matrices, with the threads that torch has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from headway.host.burst_rate import Clocks, Rate, burst_rate

MatrixFormat = Literal["bf16", "fp32", "int8"]
FORMATS: Final[tuple[MatrixFormat, ...]] = ("bf16", "fp32", "int8")
# Rows for each thread, inner and outer size: bursts of half a millisecond, which other load seldom interrupts, and products as in
# the prefill of small and large layers.
_SIZES: Final = ((256, 512, 512), (256, 1024, 1024), (512, 1024, 3072))


def measure_matrix_speed(kind: MatrixFormat, seconds: float = 0.2, clocks: Clocks | None = None) -> Rate:
    """Operations (a product and a sum are two) per second, the best product over all sizes; imports torch."""
    import torch

    threads = torch.get_num_threads()
    bursts = []
    for share, inner, outer in _SIZES:
        product = _product(kind, share * threads, inner, outer)
        product()  # the first call prepares kernels
        bursts.append((product, 2.0 * share * threads * inner * outer))
    return burst_rate(bursts, threads, seconds, clocks)


def _product(kind: MatrixFormat, rows: int, inner: int, outer: int) -> Callable[[], Any]:
    """With the weight packed where oneDNN packs, as the engine's layers are."""
    import torch

    if kind == "int8":
        left, right = torch.ones(rows, inner, dtype=torch.int8), torch.ones(outer, inner, dtype=torch.int8).t()
        return lambda: torch._int_mm(left, right)
    dtype = torch.bfloat16 if kind == "bf16" else torch.float32
    x, weight = torch.ones(rows, inner, dtype=dtype), torch.ones(outer, inner, dtype=dtype)
    packs = torch.backends.mkldnn.is_available() and (kind == "fp32" or torch.ops.mkldnn._is_mkldnn_bf16_supported())  # type: ignore[no-untyped-call]
    if not packs:
        return lambda: torch.nn.functional.linear(x, weight)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, None)
    return lambda: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
