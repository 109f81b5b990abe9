"""The batch-invariant backend: a token's result depends on its own sequence only, to the last bit. Slower (docs/serving.md)."""

from __future__ import annotations

from headway.kernels.interface import Kernels
from headway.kernels.invariant_attention import attend, plan, store
from headway.kernels.invariant_rows import (
    ACTIVATIONS,
    add_rms_norm,
    add_scaled,
    finish_logits,
    gelu_gate,
    gelu_tanh_gate,
    norm_heads,
    pack_linear,
    rms_norm,
    rotary_tables,
    rotate,
    silu_gate,
)
from headway.kernels.reference import add_rows, attend_rows, select_rows
from headway.kernels.rotation_and_store import one_after_the_other
from headway.kernels.torch_pointwise import embed, layer_norm, layer_norm_heads
from headway.kernels.torch_sampling import TORCH_SAMPLING

INVARIANT = Kernels(
    name="invariant", embed=embed, add_rows=add_rows, select_rows=select_rows, add_scaled=add_scaled, pack_linear=pack_linear, rms_norm=rms_norm, add_rms_norm=add_rms_norm, norm_heads=norm_heads, rotate=rotate, silu_gate=silu_gate,
    gelu_tanh_gate=gelu_tanh_gate, gelu_gate=gelu_gate, layer_norm=layer_norm, layer_norm_heads=layer_norm_heads, activations=ACTIVATIONS,
    rotary_tables=rotary_tables, finish_logits=finish_logits, plan=plan, store=store, rotate_and_store=one_after_the_other(rotate, store), attend=attend, attend_rows=attend_rows, sampling=TORCH_SAMPLING,
)  # fmt: skip
