"""The functions that a kernel backend provides, with shapes and dtypes. T tokens, H query heads, K key heads, D head size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.float8_matrix import Float8Matrix
from headway.kernels.integer_weight import IntegerForm, IntegerMatrix
from headway.kernels.paged_kv import PagedKV
from headway.kernels.row_groups import RowGroups
from headway.kernels.sampling import SamplingKernels

Activation = Literal["silu", "gelu", "gelu_tanh", "relu"]

CPU: Final = torch.device("cpu")


def reach(context: int, block_size: int) -> int:
    """How many columns of a key bias `attend` may read: whole blocks and tiles, the end of which a mask hides."""
    return context + block_size + 16


class PackedLinear(Protocol):
    """y = x W^T + b with W in the layout that the backend likes best."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[T, in] -> [T, out], in the dtype of x."""

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        """[T, in] -> float32 [T, out], not rounded to the dtype of x where the backend can."""

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        """[T, in] -> activation(x W^T + b), rounded once where the backend can."""

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """residual [T, out] + (x W^T + b), rounded once where the backend can."""


@dataclass(frozen=True, slots=True)
class IntegerKernels:
    """Matrix products with the integers that a checkpoint stores."""

    held_bytes: Callable[[IntegerForm, int, int], int | None]
    """form, out, in -> bytes that such a matrix takes once it is packed, without its bias; None for one that the backend has no
    arithmetic for."""

    pack: Callable[[IntegerMatrix, torch.Tensor | None], PackedLinear]
    """matrix, bias [out] or None -> PackedLinear. Walks the chunks of rows once."""


@dataclass(frozen=True, slots=True)
class Float8Kernels:
    """Matrix products with 8-bit floats."""

    can_multiply: Callable[[int, int], bool]
    """out, in -> whether there is a product for matrices of this shape."""

    pack: Callable[[Float8Matrix, torch.Tensor | None], PackedLinear]
    """matrix, bias [out] or None -> PackedLinear."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """One backend. All functions are pure but for arguments that end in an underscore in their description."""

    name: str

    embed: Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]
    """table [V, n], ids int64 [T], scale -> table[ids] * scale, [T, n]. Raises IndexError for an id that is not in the table."""

    add_rows: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
    """x [T, n], table [P, n], index int64 [T] -> x + table[index], [T, n]. Raises IndexError as `embed`."""

    select_rows: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    """x [T, n], index int64 [N] -> x[index], [N, n]."""

    add_scaled: Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]
    """residual [T, n], x [T, n], scale -> residual + scale * x."""

    pack_linear: Callable[[torch.Tensor, torch.Tensor | None], PackedLinear]
    """weight [out, in], bias [out] or None -> PackedLinear. Keeps no reference to `weight` that doubles its memory."""

    rms_norm: Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]
    """x [..., n], weight [n], epsilon -> x / sqrt(mean(x^2) + epsilon) * weight in the dtype of x. A float32 weight with
    another x is multiplied in float32, before the result is rounded."""

    add_rms_norm: Callable[[torch.Tensor, torch.Tensor, torch.Tensor, float, float], torch.Tensor]
    """residual [T, n], x [T, n], weight [n], epsilon, scale -> residual + scale * `rms_norm` of x."""

    norm_heads: Callable[[torch.Tensor, torch.Tensor, float], None]
    """x_ [T, heads, D] (strided is fine), weight [heads, D], epsilon: `rms_norm` of every head, in place."""

    layer_norm: Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None, float], torch.Tensor]
    """x [..., n], weight [n], bias [n] or None, epsilon -> (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias in
    the dtype of x, rounded once."""

    layer_norm_heads: Callable[[torch.Tensor, torch.Tensor, float], None]
    """x_ [T, heads, D] (strided is fine), weight [heads, D], epsilon: `layer_norm` of every head without a bias, in place."""

    rotary_tables: Callable[[torch.Tensor, torch.Tensor, float, torch.dtype], tuple[torch.Tensor, torch.Tensor]]
    """positions int64 [T], frequencies float32 [n], factor, dtype -> cos and sin [T, 1, 2n] for `rotate`: of the angles
    position * frequency in float32, times factor, rounded once to dtype; both halves alike but for the sign of sin."""

    rotate: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]
    """x_ [T, heads, D] (strided is fine), cos and sin [T, 1, D]: rotates in place, pairing element i with i + D/2.
    `sin` carries the sign: its first half is negative."""

    silu_gate: Callable[[torch.Tensor], torch.Tensor]
    """[T, 2n] = gate and up side by side -> silu(gate) * up, [T, n]."""

    gelu_tanh_gate: Callable[[torch.Tensor], torch.Tensor]
    """[T, 2n] -> gelu(gate, tanh form) * up, [T, n]."""

    gelu_gate: Callable[[torch.Tensor], torch.Tensor]
    """[T, 2n] -> gelu(gate, by the error function) * up, [T, n]."""

    activations: Mapping[Activation, Callable[[torch.Tensor], torch.Tensor]]
    """[T, n] -> [T, n], element by element; gelu is the exact one, by the error function."""

    finish_logits: Callable[[torch.Tensor, float | None, float | None], torch.Tensor]
    """logits_ [N, V], divisor, softcap -> float32 [N, V]: divided by the divisor, then softcap * tanh(logits / softcap). Float32
    logits may be changed in place."""

    plan: Callable[[ForwardBatch, PagedKV, int, frozenset[int | None]], Any]
    """batch, kv, H, windows (None = unlimited) -> what `store` and `attend` need, made once for all layers of a step."""

    store: Callable[[torch.Tensor, PagedKV, int, Any], None]
    """kv rows [T, 2K, D] (keys, then values; strided is fine), kv_, layer, plan: writes them to their slots."""

    rotate_and_store: Callable[[torch.Tensor, int, torch.Tensor, torch.Tensor, PagedKV, int, Any], None]
    """rows_ [T, H + 2K, D] (queries, keys, values), H, cos and sin [T, 1, R], kv_, layer, plan: `rotate` of the first R dimensions of
    queries and keys in place, then `store` of keys and values."""

    attend: Callable[[torch.Tensor, PagedKV, int, Any, int | None, float, float | None, torch.Tensor | None], torch.Tensor]
    """query [T, H, D] (strided is fine), kv, layer, plan, window, scale, softcap, key_bias -> [T, H * D]. A token at position p sees
    positions max(0, p - window + 1) .. p of its own sequence; softmax in float32. Query head h reads key head h // (H/K).
    With a softcap c, scores (scaled, before the mask) become c * tanh(scores / c) (Gemma 2).
    key_bias float32 [H, P] is added to the scores of the keys at positions 0 .. P - 1, in float32 (ALiBi); only without a
    window, and P is at least `reach` of the longest context."""

    attend_rows: Callable[[torch.Tensor, RowGroups, int, int | None, float, torch.Tensor | None], torch.Tensor]
    """qkv [T, 3H, D] (query, key and value heads), groups that cover all T tokens, H, reach, scale, bias -> [T, H * D]. A
    token sees the tokens of its own row that are at most `reach` away, on both sides; None = all. Softmax in float32.
    bias [H, at least L, at least L] is added to the scores, row and column 0 for a row's first token; only without a reach."""

    sampling: SamplingKernels

    integers: IntegerKernels | None = None
    """None: the backend computes with floats only, and matrices of integers reach `pack_linear` dequantized."""

    float8: Float8Kernels | None = None
    """None: matrices that are rounded to 8-bit floats reach `pack_linear` in the dtype of the model."""

    quantized_cache: bool = False
    """Whether `store` and `attend` take a PagedKV of int8, with rows and queries in the dtype of the model."""

    tape: Any = None
    """Native kernels: the `Tape` that calls go to, and that can record them."""

    device: torch.device = CPU
    """Where weights, the cache and all tensors of a pass are. Arrays of a batch (numpy) are on the CPU for every backend."""

    decode_buffers: Callable[[PagedKV, int, int], Any] | None = None
    """kv, most sequences, most positions -> the fixed inputs of captured decode steps (`kernels/triton/decode_buffers.py`); None: a pass
    cannot be captured."""
