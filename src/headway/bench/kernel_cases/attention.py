"""Attention at 9 query and 3 key heads of 64 (SmolLM2-135M) and 32 and 8 of 128 (Llama-3.1-8B): decoding and prefill, beside
scaled_dot_product_attention sequence by sequence and beside the torch backend; encoders at 12 heads of 32; rotation and the write of
keys and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Final

import numpy as np
import torch
import torch.nn.functional as F

from headway.bench.kernel_case import Contenders, KernelCase, Run
from headway.kernels.batch import ForwardBatch
from headway.kernels.native.attention import NativeAttention
from headway.kernels.native.tape import Tape
from headway.kernels.packed_batch import pack
from headway.kernels.paged_kv import SCALE_BYTES, KVShape, PagedKV
from headway.kernels.row_groups import group_rows
from headway.kernels.torch_backend import TORCH
from headway.kvcache.runs import Run as Chunk
from headway.kvcache.runs import forward_batch

_BEYOND_CACHES: Final = 96 << 20  # bytes of copies that are used in turns
_BLOCK: Final = 16
_ALL: Final = frozenset((None,))


@dataclass(frozen=True, slots=True)
class _Heads:
    query: int
    key: int
    size: int


_SMALL, _LARGE = _Heads(9, 3, 64), _Heads(32, 8, 128)


@dataclass(frozen=True, slots=True)
class _Sequences:
    """`count` sequences of `context` tokens, of which `new` are new."""

    count: int
    new: int
    context: int

    def batch(self) -> ForwardBatch:
        blocks = -(-self.context // _BLOCK)
        order = np.random.default_rng(0).permutation(self.count * blocks).tolist()
        chunks = [
            Chunk([0] * self.context, order[i * blocks : (i + 1) * blocks], self.context - self.new, self.new) for i in range(self.count)
        ]
        return forward_batch(chunks, [0], _BLOCK)

    @property
    def pairs(self) -> int:
        """Of a query and a key that it sees."""
        return self.count * sum(range(self.context - self.new + 1, self.context + 1))


def _decode(count: int, context: int) -> _Sequences:
    return _Sequences(count, 1, context)


_SEQUENCES: Final = (
    ("decode", _decode(1, 128)), ("decode", _decode(1, 512)), ("decode", _decode(1, 2048)), ("decode", _decode(1, 16384)),
    ("decode", _decode(64, 128)), ("decode", _decode(8, 2048)), ("prefill", _Sequences(1, 512, 512)), ("prefill", _Sequences(8, 64, 64)),
    ("prefill", _Sequences(1, 64, 2048)),
)  # fmt: skip


def _cache_bytes(heads: _Heads, sequences: _Sequences, kept: torch.dtype) -> int:
    return 2 * heads.key * sequences.count * sequences.context * (heads.size * kept.itemsize + SCALE_BYTES.get(kept, 0))


def _storage(heads: _Heads, sequences: _Sequences, kept: torch.dtype) -> PagedKV:
    """A layer for each copy."""
    copies = 1 + _BEYOND_CACHES // _cache_bytes(heads, sequences, kept)
    blocks = sequences.count * -(-sequences.context // _BLOCK)
    kv = PagedKV(blocks, _BLOCK, KVShape(copies, heads.key, heads.size), kept)
    for layer in kv.layers:
        layer.copy_(torch.randint(-127, 128, layer.shape) if kv.scales else torch.randn(layer.shape))
    for scales in kv.scales:
        scales.fill_(0.01)
    return kv


def _query(heads: _Heads, sequences: _Sequences, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(sequences.count * sequences.new, heads.query, heads.size).to(dtype)


def _paged(heads: _Heads, sequences: _Sequences, kept: torch.dtype, dtype: torch.dtype, tape: Tape | None) -> Run:
    """The native kernels, or the torch backend without a tape."""
    functions = TORCH if tape is None else NativeAttention(tape)
    kv, query, batch = _storage(heads, sequences, kept), _query(heads, sequences, dtype), sequences.batch()
    plan = functions.plan(batch, kv, heads.query, _ALL)
    layers = cycle(range(len(kv.layers)))
    return lambda: functions.attend(query, kv, next(layers), plan, None, heads.size**-0.5, None, None)


def _sdpa(heads: _Heads, sequences: _Sequences, dtype: torch.dtype) -> Run:
    """Keys and values of a sequence side by side already: no gathering is counted."""
    new, context, size = sequences.new, sequences.context, heads.size
    copies = 1 + _BEYOND_CACHES // _cache_bytes(heads, sequences, dtype)
    kept = [torch.randn(sequences.count, 2, 1, heads.key, context, size).to(dtype) for _ in range(copies)]
    query = torch.randn(1, heads.query, new, size).to(dtype)
    mask = None if new in (1, context) else torch.ones(new, context, dtype=torch.bool).tril(context - new)
    attend = partial(F.scaled_dot_product_attention, attn_mask=mask, is_causal=new == context, enable_gqa=True)
    turns = cycle(kept)
    return lambda: [attend(query, keys, values) for keys, values in next(turns)]


def _attention(heads: _Heads, sequences: _Sequences, kept: torch.dtype, beside: Callable[[], Run], tape: Tape) -> Contenders:
    dtype = torch.bfloat16 if kept is torch.int8 else kept
    return Contenders(_paged(heads, sequences, kept, dtype, tape), beside())


def _paged_cases() -> Iterator[KernelCase]:
    for heads in (_SMALL, _LARGE):
        for name, sequences in _SEQUENCES:
            for kept in (torch.bfloat16, torch.int8, torch.float32):
                if kept is not torch.bfloat16 and (heads is _LARGE or sequences.count > 1):
                    continue
                dtype = torch.bfloat16 if kept is torch.int8 else kept
                others = {"sdpa": partial(_sdpa, heads, sequences, dtype), "torch backend": partial(_paged, heads, sequences, dtype, dtype, None)}
                moved = 2 * sequences.count * sequences.new * heads.query * heads.size * dtype.itemsize
                for beside, other in others.items():
                    yield KernelCase(
                        family="attention", name=f"{name} {_NAMES[kept]}",
                        shape=f"{sequences.count}x{sequences.new} of {sequences.context}, {heads.query}/{heads.key}x{heads.size}",
                        nbytes=_cache_bytes(heads, sequences, kept) + moved, operations=4.0 * sequences.pairs * heads.query * heads.size,
                        arithmetic="fp32" if kept is torch.float32 else "bf16", beside=beside,
                        make=partial(_attention, heads, sequences, kept, other),
                    )  # fmt: skip


_NAMES: Final = {torch.bfloat16: "bf16", torch.int8: "int8 KV", torch.float32: "fp32"}


def _rows_contenders(lengths: tuple[int, ...], tape: Tape) -> Contenders:
    groups = group_rows(pack([[0] * n for n in lengths])).groups
    qkv = torch.randn(sum(lengths), 3 * 12, 32).bfloat16()
    ours = NativeAttention(tape)
    return Contenders(
        lambda: ours.attend_rows(qkv, groups, 12, None, 32**-0.5, None), lambda: TORCH.attend_rows(qkv, groups, 12, None, 32**-0.5, None)
    )


def _row_cases() -> Iterator[KernelCase]:
    for lengths in ((29,), (29,) * 32, tuple(range(10, 74)), (216,) * 8, (512,)):
        total = sum(lengths)
        yield KernelCase(
            family="attention", name="encoder bf16", shape=f"{len(lengths)} rows of {min(lengths)}-{max(lengths)}, 12x32",
            nbytes=2.0 * total * 4 * 12 * 32, operations=4.0 * sum(n * n for n in lengths) * 12 * 32, arithmetic="bf16",
            beside="torch backend", make=partial(_rows_contenders, lengths), from_memory=False,
        )  # fmt: skip


def _write_contenders(tokens: int, tape: Tape) -> Contenders:
    heads = _SMALL
    sequences = _Sequences(tokens, 1, 128)
    kv, batch, ours = PagedKV(tokens * 8, _BLOCK, KVShape(1, heads.key, heads.size), torch.bfloat16), sequences.batch(), NativeAttention(tape)
    rows = torch.randn(tokens, heads.query + 2 * heads.key, heads.size).bfloat16()
    cos, sin = torch.ones(tokens, 1, heads.size).bfloat16(), torch.zeros(tokens, 1, heads.size).bfloat16()
    plan, torch_plan = ours.plan(batch, kv, heads.query, _ALL), TORCH.plan(batch, kv, heads.query, _ALL)
    return Contenders(
        lambda: ours.rotate_and_store(rows, heads.query, cos, sin, kv, 0, plan),
        lambda: TORCH.rotate_and_store(rows, heads.query, cos, sin, kv, 0, torch_plan),
    )


def _write_cases() -> Iterator[KernelCase]:
    for tokens in (1, 64, 512):
        moved = 2 * tokens * (_SMALL.query + 2 * _SMALL.key) * _SMALL.size
        yield KernelCase(
            family="attention", name="rotary + KV write bf16", shape=f"{tokens} tokens, {_SMALL.query}/{_SMALL.key}x{_SMALL.size}",
            nbytes=2.0 * moved, operations=3.0 * moved, arithmetic="fp32", beside="torch backend",
            make=partial(_write_contenders, tokens), from_memory=False,
        )  # fmt: skip


CASES: Final = (*_paged_cases(), *_row_cases(), *_write_cases())
