"""Compiles every kernel in the forms that models call it in, for a GPU that need not be there; prints name -> bytes of shared memory.

    TRITON_INTERPRET=0 python -m tests.kernels.triton.compiled_kernels 90
"""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from headway.kernels.integer_weight import IntegerForm
from headway.kernels.interface import Kernels
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kernels.triton import attention_plan
from headway.kernels.triton.backend import triton_kernels
from tests.kernels.batches import Chunk, make_batch
from tests.kernels.native.test_linear_integer import a_weight, in_chunks

_TYPES = {
    torch.float32: "*fp32", torch.bfloat16: "*bf16", torch.float16: "*fp16", torch.int64: "*i64", torch.int32: "*i32", torch.uint8: "*u8",
    torch.int8: "*i8",
}  # fmt: skip
_OPTIONS = ("num_warps", "num_stages")


class Compiler:
    """In the place of every launch."""

    def __init__(self, capability: int):
        self._target = GPUTarget("cuda", capability, 32)
        self.shared: dict[str, int] = {}

    def compile(self, kernel: Any, *args: Any, **named: Any) -> None:
        options = {name: named.pop(name) for name in _OPTIONS if name in named}
        parameters = inspect.signature(kernel.fn).parameters
        bound = dict(zip(parameters, args, strict=False)) | named
        constants = {name: bound[name] for name, each in parameters.items() if "constexpr" in str(each.annotation)}
        types = {name: "constexpr" if name in constants else _type(bound[name]) for name in parameters}
        label = f"{kernel.fn.__name__} {types} {constants} {options}"
        if label not in self.shared:
            source = ASTSource(kernel, types, {(list(parameters).index(name),): value for name, value in constants.items()})
            self.shared[label] = triton.compile(source, target=self._target, options=options).metadata.shared


def _type(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return _TYPES[value.dtype]
    return "fp32" if isinstance(value, float) else "i32"


# Head sizes, with what they are attended with; float32 is multiplied without matrix units, which takes long to compile.
_HEADS: dict[torch.dtype, tuple[int, ...]] = {torch.float32: (64,), torch.bfloat16: (64, 96, 256), torch.float16: (80, 128)}
_FORMS = (IntegerForm(4, 32, 8), IntegerForm(4, 128, minimums=True), IntegerForm(8, 640))


def attend(kernels: Kernels, size: int, dtype: torch.dtype, window: int | None, softcap: float | None, bias: torch.Tensor | None) -> None:
    """A decode in parts, one in a piece and a prefill."""
    for split_keys in (256, 16):
        attention_plan._SPLIT_KEYS = split_keys
        batch = make_batch([Chunk([0], 40, [0, 1, 2]), Chunk([0] * 9, 30, [3, 4])], 16)
        kv, rows = PagedKV(5, 16, KVShape(1, 2, size), dtype), torch.zeros(10, 10, size, dtype=dtype)
        plan = kernels.plan(batch, kv, 6, frozenset())
        table = torch.zeros(10, 1, size, dtype=dtype)
        kernels.rotate_and_store(rows, 6, table, table, kv, 0, plan)
        kernels.store(rows[:, 6:], kv, 0, plan)
        kernels.attend(rows[:, :6], kv, 0, plan, window, 0.1, softcap, bias)


def call_all(kernels: Kernels) -> None:
    assert kernels.integers is not None
    for dtype, sizes in _HEADS.items():
        x, weight = torch.zeros(4, 640, dtype=dtype), torch.zeros(640, dtype=dtype)
        for factors in {dtype: weight, torch.float32: weight.float()}.values():
            kernels.rms_norm(x, factors, 1e-5)
            kernels.add_rms_norm(x, x, factors, 1e-5, 1.0)
            kernels.norm_heads(x.view(4, 10, 64), factors.view(10, 64), 1e-5)
        kernels.layer_norm(x, weight, weight, 1e-5)
        kernels.layer_norm_heads(x.view(4, 10, 64), weight.view(10, 64), 1e-5)
        kernels.rotate(x.view(4, 10, 64), x[:, None, :64], x[:, None, :64])
        for gate in (kernels.silu_gate, kernels.gelu_gate, kernels.gelu_tanh_gate):
            gate(x)
        for size in sizes:
            attend(kernels, size, dtype, None, None, None)
        for form in _FORMS if dtype != torch.float32 else _FORMS[:1]:
            layer = kernels.integers.pack(in_chunks(a_weight(form, 64, 640)), None)
            for rows in (1, 64):
                layer(torch.zeros(rows, 640, dtype=dtype))
    attend(kernels, 128, torch.bfloat16, 20, 50.0, None)
    attend(kernels, 64, torch.bfloat16, None, None, torch.zeros(6, 100))


def main(capability: int) -> None:
    compiler = Compiler(capability)
    JITFunction.run = lambda self, *args, grid, warmup, **named: compiler.compile(self, *args, **named)
    call_all(triton_kernels(torch.device("cpu")))
    print(json.dumps(compiler.shared))


if __name__ == "__main__":
    main(int(sys.argv[1]))
