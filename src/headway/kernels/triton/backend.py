"""The Triton backend: kernels of this package for one device; torch's operators, which run there too, for what is left."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from headway.kernels.interface import Float8Kernels, IntegerKernels, Kernels
from headway.kernels.torch_backend import TORCH
from headway.kernels.triton.attention import attend
from headway.kernels.triton.attention_plan import plan_attention
from headway.kernels.triton.decode_buffers import decode_buffers
from headway.kernels.triton.float8_linear import can_multiply, has_float8, pack_float8_linear
from headway.kernels.triton.float_linear import pack_linear
from headway.kernels.triton.gates import gelu_gate, gelu_tanh_gate, silu_gate
from headway.kernels.triton.integer_linear import pack_integer_linear, packed_bytes
from headway.kernels.triton.norms import add_rms_norm, layer_norm, layer_norm_heads, norm_heads, rms_norm
from headway.kernels.triton.place import NAME
from headway.kernels.triton.rotary_store import rotate, rotate_and_store, store


def triton_kernels(device: torch.device) -> Kernels:
    """For models of float32, bfloat16 or float16 whose weights and cache are on `device` (`place.triton_place`)."""
    return replace(
        TORCH,
        name=NAME,
        device=device,
        pack_linear=partial(pack_linear, device),
        integers=IntegerKernels(packed_bytes, partial(pack_integer_linear, device)),
        float8=Float8Kernels(can_multiply, partial(pack_float8_linear, device)) if has_float8(device) else None,
        rms_norm=rms_norm,
        add_rms_norm=add_rms_norm,
        norm_heads=norm_heads,
        layer_norm=layer_norm,
        layer_norm_heads=layer_norm_heads,
        rotate=rotate,
        silu_gate=silu_gate,
        gelu_gate=gelu_gate,
        gelu_tanh_gate=gelu_tanh_gate,
        plan=plan_attention,
        store=store,
        rotate_and_store=rotate_and_store,
        attend=attend,
        decode_buffers=decode_buffers if device.type == "cuda" else None,
    )
