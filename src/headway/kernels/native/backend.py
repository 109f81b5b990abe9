"""The native backend: all kernels of csrc/ that are there, bound to one tape; torch's for what is left."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from headway.kernels.interface import IntegerKernels, Kernels
from headway.kernels.native import linear, linear_integer, pointwise
from headway.kernels.native.attention import NativeAttention
from headway.kernels.native.sampling import native_sampling
from headway.kernels.native.tape import Tape
from headway.kernels.torch_backend import TORCH


def native_kernels(instruction_set: str, threads: int) -> Kernels:
    """For models of float32 or bfloat16. One thread at a time uses them: all that is computed with them shares a tape."""
    tape = Tape(instruction_set, threads)
    attention = NativeAttention(tape)
    return replace(
        TORCH,
        name=instruction_set,
        tape=tape,
        embed=partial(pointwise.embed, tape),
        add_rows=partial(pointwise.add_rows, tape),
        select_rows=partial(pointwise.select_rows, tape),
        add_scaled=partial(pointwise.add_scaled, tape),
        pack_linear=partial(linear.pack_linear, tape),
        integers=IntegerKernels(linear_integer.packed_bytes, partial(linear_integer.pack_integer_linear, tape)),
        rms_norm=partial(pointwise.rms_norm, tape),
        add_rms_norm=partial(pointwise.add_rms_norm, tape),
        norm_heads=partial(pointwise.norm_heads, tape),
        layer_norm=partial(pointwise.layer_norm, tape),
        layer_norm_heads=partial(pointwise.layer_norm_heads, tape),
        rotary_tables=partial(pointwise.rotary_tables, tape),
        rotate=partial(pointwise.rotate, tape),
        silu_gate=partial(pointwise.gate, tape, "silu"),
        gelu_gate=partial(pointwise.gate, tape, "gelu"),
        gelu_tanh_gate=partial(pointwise.gate, tape, "gelu_tanh"),
        activations={name: partial(pointwise.activate, tape, name) for name in TORCH.activations},
        finish_logits=partial(pointwise.finish_logits, tape),
        plan=attention.plan,
        store=attention.store,
        rotate_and_store=attention.rotate_and_store,
        attend=attention.attend,
        attend_rows=attention.attend_rows,
        quantized_cache=True,
        sampling=native_sampling(tape),
    )
