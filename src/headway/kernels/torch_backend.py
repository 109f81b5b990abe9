"""The fast torch backend: everything a machine without a compiler and without a GPU can do."""

from __future__ import annotations

from headway.kernels.attention_plan import plan_attention
from headway.kernels.interface import Kernels
from headway.kernels.reference import add_rows, select_rows
from headway.kernels.rotation_and_store import one_after_the_other
from headway.kernels.row_attention import attend_rows
from headway.kernels.torch_attention import attend, store
from headway.kernels.torch_linear import pack_linear
from headway.kernels.torch_pointwise import (
    ACTIVATIONS,
    add_rms_norm,
    add_scaled,
    embed,
    finish_logits,
    gelu_gate,
    gelu_tanh_gate,
    layer_norm,
    layer_norm_heads,
    norm_heads,
    rms_norm,
    rotary_tables,
    rotate,
    silu_gate,
)
from headway.kernels.torch_sampling import TORCH_SAMPLING

TORCH = Kernels(
    name="torch", embed=embed, add_rows=add_rows, select_rows=select_rows, add_scaled=add_scaled, pack_linear=pack_linear, rms_norm=rms_norm, add_rms_norm=add_rms_norm, norm_heads=norm_heads, rotate=rotate, silu_gate=silu_gate,
    gelu_tanh_gate=gelu_tanh_gate, gelu_gate=gelu_gate, layer_norm=layer_norm, layer_norm_heads=layer_norm_heads, activations=ACTIVATIONS,
    rotary_tables=rotary_tables, finish_logits=finish_logits, plan=plan_attention, store=store, rotate_and_store=one_after_the_other(rotate, store), attend=attend, attend_rows=attend_rows, sampling=TORCH_SAMPLING,
)  # fmt: skip
