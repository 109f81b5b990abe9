"""The batch-invariant backend: a token's result depends on its own sequence only, to the last bit. Slower (docs/serving.md)."""

from __future__ import annotations

from headway.kernels.interface import Kernels
from headway.kernels.invariant_attention import attend, plan, store
from headway.kernels.invariant_rows import (
    ACTIVATIONS,
    elementwise,
    gelu_gate,
    gelu_tanh_gate,
    norm_heads,
    pack_linear,
    rms_norm,
    rotate,
    silu_gate,
)
from headway.kernels.reference import attend_rows
from headway.kernels.torch_pointwise import layer_norm, layer_norm_heads

INVARIANT = Kernels(
    name="invariant", pack_linear=pack_linear, rms_norm=rms_norm, norm_heads=norm_heads, rotate=rotate, silu_gate=silu_gate,
    gelu_tanh_gate=gelu_tanh_gate, gelu_gate=gelu_gate, layer_norm=layer_norm, layer_norm_heads=layer_norm_heads, activations=ACTIVATIONS,
    elementwise=elementwise, plan=plan, store=store, attend=attend, attend_rows=attend_rows,
)  # fmt: skip
