"""Seeded weights in every packed format, written number by number from the public descriptions of the formats.

Nothing here uses Headway. A packer gives the stored tensors of one matrix and the float32 matrix that they mean.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

Stored = dict[str, torch.Tensor]
Packer = Callable[[np.random.Generator, int, int], tuple[Stored, np.ndarray]]
_I8, _E4M3, _E5M2 = torch.int8, torch.float8_e4m3fn, torch.float8_e5m2
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


@dataclass(frozen=True)
class Case:
    """`claim` is the quantization section of config.json."""

    name: str
    claim: dict[str, Any]
    pack: Packer


def words(numbers: Sequence[int], bits: int) -> list[int]:
    """A stream without gaps, lowest bits first, cut into signed 32-bit words."""
    whole = 0
    for place, number in enumerate(numbers):
        whole |= int(number) << (place * bits)
    unsigned = [(whole >> (32 * i)) & 0xFFFFFFFF for i in range(math.ceil(len(numbers) * bits / 32))]
    return [word - (1 << 32) if word >= 1 << 31 else word for word in unsigned]


def along_rows(matrix: np.ndarray, bits: int) -> torch.Tensor:
    return torch.tensor([words(row.tolist(), bits) for row in matrix], dtype=torch.int32)


def halves(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Positive scales that float16 holds; weights of quantized matrices are then of the usual size."""
    return (rng.uniform(0.5, 1.5, shape) * 0.02).astype(np.float16)


def awq(group: int) -> Packer:
    def pack(rng: np.random.Generator, out: int, width: int) -> tuple[Stored, np.ndarray]:
        size = width if group == -1 else group
        q, z = rng.integers(0, 16, (width, out)), rng.integers(0, 16, (width // size, out))
        s = halves(rng, width // size, out)

        def eights(matrix: np.ndarray) -> torch.Tensor:
            order = [0, 2, 4, 6, 1, 3, 5, 7]
            return along_rows(np.concatenate([matrix[:, c : c + 8][:, order] for c in range(0, out, 8)], 1), 4)

        each = np.arange(width) // size
        weight = (q - z[each]) * s.astype(np.float64)[each]
        return {"qweight": eights(q), "qzeros": eights(z), "scales": torch.from_numpy(s)}, weight.T

    return pack


def gptq(bits: int, group: int, *, version: int = 1, symmetric: bool = False, reordered: bool = False, indexed: bool = True) -> Packer:
    def pack(rng: np.random.Generator, out: int, width: int) -> tuple[Stored, np.ndarray]:
        size = width if group == -1 else group
        count = math.ceil(width / size)
        each = np.arange(width) // size
        if reordered:
            each = rng.permutation(each)
        q = rng.integers(0, 1 << bits, (width, out))
        z = np.full((count, out), 1 << (bits - 1)) if symmetric else rng.integers(1, 1 << bits, (count, out))
        s = halves(rng, count, out)
        stored = {
            "qweight": along_rows(q.T, bits).T.contiguous(),
            "qzeros": along_rows(z - (version == 1), bits),
            "scales": torch.from_numpy(s),
        }
        if indexed:
            stored["g_idx"] = torch.tensor(each, dtype=torch.int32)
        return stored, ((q - z[each]) * s.astype(np.float64)[each]).T

    return pack


def pack_quantized(bits: int, group: int | None, *, symmetric: bool = True, reordered: bool = False) -> Packer:
    def pack(rng: np.random.Generator, out: int, width: int) -> tuple[Stored, np.ndarray]:
        size = group or width
        count = math.ceil(width / size)
        each = np.arange(width) // size
        if reordered:
            each = rng.permutation(each)
        low = -(1 << (bits - 1))
        q = rng.integers(low, -low, (out, width))
        z = np.zeros((out, count), np.int64) if symmetric else rng.integers(low, -low, (out, count))
        s = halves(rng, out, count)
        stored = {
            "weight_packed": along_rows(q - low, bits),
            "weight_scale": torch.from_numpy(s).bfloat16(),
            "weight_shape": torch.tensor([out, width]),
        }
        s = stored["weight_scale"].double().numpy()
        if not symmetric:
            stored["weight_zero_point"] = along_rows((z - low).T, bits).T.contiguous()
        if reordered:
            stored["weight_g_idx"] = torch.tensor(each, dtype=torch.int32)
        return stored, (q - z[:, each]) * s[:, each]

    return pack


def numbers(kind: torch.dtype, blocks: tuple[int, int] | None, scale: str, *, flat: bool = False, zero: bool = False) -> Packer:
    """A number for each weight. `blocks` None = one scale; (1, 0) = one for each output."""

    def pack(rng: np.random.Generator, out: int, width: int) -> tuple[Stored, np.ndarray]:
        rows, columns = (out, width) if blocks is None else (blocks[0], blocks[1] or width)
        down, across = math.ceil(out / rows), math.ceil(width / columns)
        if kind is torch.int8:
            weight, unit = torch.from_numpy(rng.integers(-127, 128, (out, width))).to(kind), 0.004
        else:
            weight, unit = torch.from_numpy(rng.normal(size=(out, width)) * 30).float().to(kind), 0.01
        s = (rng.uniform(0.5, 1.5, (down, across)) * unit).astype(np.float32)
        z = rng.integers(-5, 6, (down, across)) if zero else np.zeros((down, across), np.int64)
        shape = (1,) if blocks is None else (down,) if flat else (down, across)
        stored = {"weight": weight, scale: torch.from_numpy(s).reshape(shape)}
        if zero:
            stored["weight_zero_point"] = torch.from_numpy(z).to(kind).reshape(shape)
        i, j = np.arange(out)[:, None] // rows, np.arange(width)[None] // columns
        return stored, (weight.double().numpy() - z[i, j]) * s.astype(np.float64)[i, j]

    return pack


def four_bit_floats(group: int) -> Packer:
    """nvfp4 for groups of 16, mxfp4 for 32."""

    def pack(rng: np.random.Generator, out: int, width: int) -> tuple[Stored, np.ndarray]:
        codes = rng.integers(0, 16, (out, width))
        values = np.array(E2M1)[codes % 8] * np.where(codes < 8, 1.0, -1.0)
        stored = {"weight_packed": torch.from_numpy((codes[:, 0::2] + 16 * codes[:, 1::2]).astype(np.uint8))}
        if group == 16:
            scales = torch.from_numpy(rng.uniform(50, 400, (out, width // 16))).float().to(torch.float8_e4m3fn)
            overall = np.float32(8192.0 * rng.uniform(0.8, 1.2))
            stored |= {"weight_scale": scales, "weight_global_scale": torch.tensor([overall])}
            each = scales.double().numpy() / float(overall)
        else:
            exponents = rng.integers(117, 124, (out, width // 32))
            stored["weight_scale"] = torch.from_numpy(exponents.astype(np.uint8))
            each = 2.0 ** (exponents - 127)
        return stored, values * np.repeat(each, group, 1)

    return pack


def squeezellm(bits: int, *, outliers: bool = False, full: int = 0) -> Packer:
    def pack(rng: np.random.Generator, out: int, width: int) -> tuple[Stored, np.ndarray]:
        table = (rng.normal(size=(out, 1 << bits)) * 0.1).astype(np.float16)
        q = rng.integers(0, 1 << bits, (out, width))
        weight = np.take_along_axis(table.astype(np.float64), q, 1)
        stored = {"qweight": along_rows(q, bits).T.contiguous(), "lookup_table": torch.from_numpy(table)}
        if outliers:
            sparse = np.where(rng.uniform(size=(out, width)) < 0.03, rng.normal(size=(out, width)), 0.0).astype(np.float32)
            sparse[3] = 0.0
            place = np.nonzero(sparse)
            ends = np.concatenate([[0], np.cumsum((sparse != 0).sum(1))])
            stored |= {
                "rows": torch.tensor(ends, dtype=torch.int32), "cols": torch.tensor(place[1], dtype=torch.int32),
                "vals": torch.from_numpy(sparse[place]), "startrows": torch.zeros(4, dtype=torch.int32),
            }  # fmt: skip
            weight = weight + sparse
        if full:
            which = rng.choice(out, full, replace=False)
            lines = rng.normal(size=(width, full)).astype(np.float32)
            stored |= {"full_rows": torch.from_numpy(lines), "full_row_indices": torch.tensor(which, dtype=torch.int32)}
            weight = weight.copy()
            weight[which] += lines.T
        return stored, weight

    return pack


def bitsandbytes(block: int, *, nested: bool) -> Packer:
    def pack(rng: np.random.Generator, out: int, width: int) -> tuple[Stored, np.ndarray]:
        code = np.sort(rng.uniform(-1, 1, 16)).astype(np.float32)
        q = rng.integers(0, 16, out * width)
        count = math.ceil(out * width / block)
        state: dict[str, Any] = {"quant_type": "nf4", "blocksize": block, "dtype": "bfloat16", "shape": [out, width]}
        if len(q) % 2:
            q = np.append(q, 0)
        stored = {
            "weight": torch.from_numpy((q[0::2] * 16 + q[1::2]).astype(np.uint8))[:, None],
            "weight.quant_map": torch.from_numpy(code),
        }
        if nested:
            inner, outer = rng.integers(0, 256, count), rng.uniform(0.01, 0.05, math.ceil(count / 8)).astype(np.float32)
            table = np.linspace(-1, 1, 256).astype(np.float32)
            scales = table.astype(np.float64)[inner] * np.repeat(outer, 8)[:count] + 0.125
            state |= {"nested_blocksize": 8, "nested_dtype": "float32", "nested_offset": 0.125}
            stored |= {
                "weight.absmax": torch.from_numpy(inner.astype(np.uint8)), "weight.nested_absmax": torch.from_numpy(outer),
                "weight.nested_quant_map": torch.from_numpy(table),
            }  # fmt: skip
        else:
            single = rng.uniform(0.05, 0.2, count).astype(np.float32)
            scales, stored["weight.absmax"] = single.astype(np.float64), torch.from_numpy(single)
        text = json.dumps(state).encode()
        stored["weight.quant_state.bitsandbytes__nf4"] = torch.tensor(list(text), dtype=torch.uint8)
        weight = code.astype(np.float64)[q[: out * width]] * np.repeat(scales, block)[: out * width]
        return stored, weight.reshape(out, width)

    return pack


def llm_int8(rng: np.random.Generator, out: int, width: int) -> tuple[Stored, np.ndarray]:
    q, most = rng.integers(-127, 128, (out, width)), rng.uniform(0.2, 0.6, out).astype(np.float32)
    stored = {"weight": torch.from_numpy(q).to(torch.int8), "SCB": torch.from_numpy(most), "weight_format": torch.tensor(0, dtype=torch.uint8)}
    return stored, q * most.astype(np.float64)[:, None] / 127.0


def modelopt_nvfp4(rng: np.random.Generator, out: int, width: int) -> tuple[Stored, np.ndarray]:
    """The scale of the whole matrix multiplies, and is a single number."""
    stored, weight = four_bit_floats(16)(rng, out, width)
    overall = 1.0 / stored.pop("weight_global_scale").double()
    return {"weight": stored["weight_packed"], "weight_scale": stored["weight_scale"], "weight_scale_2": overall.float().reshape(())}, weight


def modelopt_blocks(rng: np.random.Generator, out: int, width: int) -> tuple[Stored, np.ndarray]:
    """Blocks of 128 x 128, whose scales are stored with four dimensions."""
    stored, weight = numbers(_E4M3, (128, 128), "weight_scale")(rng, out, width)
    return {**stored, "weight_scale": stored["weight_scale"][:, None, :, None]}, weight


def quark_mxfp4(rng: np.random.Generator, out: int, width: int) -> tuple[Stored, np.ndarray]:
    stored, weight = four_bit_floats(32)(rng, out, width)
    return {"weight": stored["weight_packed"], "weight_scale": stored["weight_scale"]}, weight


def group(form: str, weights: dict[str, Any]) -> dict[str, Any]:
    """The section of a compressed-tensors checkpoint with one group."""
    groups = {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": groups, "ignore": ["lm_head"], "quantization_status": "compressed"}


def _gptq_claim(bits: int, size: int, **more: Any) -> dict[str, Any]:
    return {"quant_method": "gptq", "bits": bits, "group_size": size, "desc_act": False, "sym": False, **more}


def _ints(bits: int, size: int | None, **more: Any) -> dict[str, Any]:
    strategy = {"strategy": "group", "group_size": size} if size else {"strategy": "channel"}
    return {"num_bits": bits, "type": "int", "symmetric": True, **strategy, **more}


def _quark(dtype: str, scheme: str, **more: Any) -> dict[str, Any]:
    weight = {"dtype": dtype, "qscheme": scheme, **more}
    return {"quant_method": "quark", "global_quant_config": {"weight": weight}, "layer_quant_config": {}, "exclude": ["lm_head"], "export": {"pack_method": "reorder"}}


def _floats(bits: int = 8, **more: Any) -> dict[str, Any]:
    return {"num_bits": bits, "type": "float", "symmetric": True, **more}


CASES = (
    Case("awq", {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}, awq(32)),
    Case("awq one group, old names", {"quant_method": "awq", "w_bit": 4, "q_group_size": -1, "zero_point": True, "version": "GEMM"}, awq(-1)),
    Case("gptq 4 bit", _gptq_claim(4, 32), gptq(4, 32)),
    Case("gptq 4 bit without g_idx", _gptq_claim(4, 32, sym=True), gptq(4, 32, symmetric=True, indexed=False)),
    Case("gptq 4 bit act-order", _gptq_claim(4, 16, desc_act=True), gptq(4, 16, reordered=True)),
    Case("gptq 4 bit one group", _gptq_claim(4, -1, desc_act=True), gptq(4, -1)),
    Case("gptq 3 bit", _gptq_claim(3, 32), gptq(3, 32)),
    Case("gptq 3 bit act-order", _gptq_claim(3, 32, desc_act=True), gptq(3, 32, reordered=True)),
    Case("gptq 8 bit", _gptq_claim(8, 32), gptq(8, 32)),
    Case("gptq 2 bit", _gptq_claim(2, 32), gptq(2, 32)),
    Case("gptq 4 bit short last group", _gptq_claim(4, 64), gptq(4, 64, indexed=False)),
    Case("gptq v2", _gptq_claim(4, 32, checkpoint_format="gptq_v2"), gptq(4, 32, version=2)),
    Case("gptq v2 symmetric", _gptq_claim(8, 32, checkpoint_format="gptq_v2", sym=True), gptq(8, 32, version=2, symmetric=True)),
    Case("packed 4 bit", group("pack-quantized", _ints(4, 32)), pack_quantized(4, 32)),
    Case("packed 4 bit zero points", group("pack-quantized", _ints(4, 32, symmetric=False)), pack_quantized(4, 32, symmetric=False)),
    Case("packed 4 bit act-order", group("pack-quantized", _ints(4, 16, actorder="group")), pack_quantized(4, 16, reordered=True)),
    Case("packed 4 bit short last group", group("pack-quantized", _ints(4, 64, symmetric=False)), pack_quantized(4, 64, symmetric=False)),
    Case("packed 8 bit by output", group("pack-quantized", _ints(8, None)), pack_quantized(8, None)),
    Case("packed 3 bit zero points", group("pack-quantized", _ints(3, 32, symmetric=False)), pack_quantized(3, 32, symmetric=False)),
    Case("packed 5 bit by output", group("pack-quantized", _ints(5, None)), pack_quantized(5, None)),
    Case("int8 by output", group("int-quantized", _ints(8, None)), numbers(_I8, (1, 0), "weight_scale")),
    Case("int8 zero points", group("int-quantized", _ints(8, 32, symmetric=False)), numbers(_I8, (1, 32), "weight_scale", zero=True)),
    Case("int8 one scale", group("naive-quantized", _ints(8, None, strategy="tensor")), numbers(_I8, None, "weight_scale")),
    Case("float8 one scale", group("float-quantized", _floats(strategy="tensor")), numbers(_E4M3, None, "weight_scale")),
    Case("float8 by output", group("float-quantized", _floats(strategy="channel")), numbers(_E4M3, (1, 0), "weight_scale")),
    Case("float8 blocks", group("float-quantized", _floats(strategy="block", block_structure=[16, 32])), numbers(_E4M3, (16, 32), "weight_scale")),
    Case("nvfp4", group("nvfp4-pack-quantized", _floats(4, strategy="tensor_group", group_size=16)), four_bit_floats(16)),
    Case("mxfp4", group("mxfp4-pack-quantized", _floats(4, strategy="group", group_size=32)), four_bit_floats(32)),
    Case("fp8 one scale", {"quant_method": "fp8", "activation_scheme": "static"}, numbers(_E4M3, None, "weight_scale")),
    Case("fp8 e5m2 by output", {"quant_method": "fp8"}, numbers(_E5M2, (1, 0), "weight_scale", flat=True)),
    Case("fbgemm fp8", {"quant_method": "fbgemm_fp8"}, numbers(_E4M3, (1, 0), "weight_scale")),
    Case("fp8 blocks", {"quant_method": "fp8", "weight_block_size": [24, 40]}, numbers(_E4M3, (24, 40), "weight_scale_inv")),
    Case("squeezellm 4 bit", {"quant_method": "squeezellm", "wbits": 4}, squeezellm(4)),
    Case("squeezellm 3 bit outliers", {"quant_method": "squeezellm", "wbits": 3}, squeezellm(3, outliers=True, full=3)),
    Case("squeezellm 4 bit outliers", {"quant_method": "squeezellm", "wbits": 4}, squeezellm(4, outliers=True)),
    Case("llm.int8", {"quant_method": "bitsandbytes", "load_in_8bit": True}, llm_int8),
    Case("modelopt fp8", {"quant_method": "modelopt", "quant_algo": "FP8"}, numbers(_E4M3, None, "weight_scale")),
    Case("modelopt fp8 by output", {"quant_method": "modelopt", "quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"}, numbers(_E4M3, (1, 0), "weight_scale", flat=True)),
    Case("modelopt fp8 blocks", {"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, modelopt_blocks),
    Case("modelopt nvfp4", {"quant_method": "modelopt", "quant_algo": "NVFP4"}, modelopt_nvfp4),
    Case("quark fp8", _quark("fp8_e4m3", "per_tensor"), numbers(_E4M3, None, "weight_scale")),
    Case("quark int8", _quark("int8", "per_channel", symmetric=True), numbers(_I8, (1, 0), "weight_scale", flat=True)),
    Case("quark mxfp4", _quark("fp4", "per_group", group_size=32, scale_format="e8m0"), quark_mxfp4),
    Case("nf4", {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, bitsandbytes(64, nested=False)),
    Case("nf4 twice", {"quant_method": "bitsandbytes", "load_in_4bit": True}, bitsandbytes(64, nested=True)),
)  # fmt: skip
BY_NAME = {case.name: case for case in CASES}


def packed_tensors(plain: Stored, case: Case, which: Callable[[str, torch.Tensor], bool], *, turned: bool = False, seed: int = 5) -> tuple[Stored, Stored]:
    """The tensors of a checkpoint with random numbers in the matrices that `which` chooses: packed as `case` says, and as they are meant.
    `turned`: matrices are packed the other way round."""
    rng = np.random.default_rng(seed)
    stored, meant = dict(plain), dict(plain)
    for name in [name for name, tensor in plain.items() if which(name, tensor)]:
        parts, weight = case.pack(rng, *plain[name].shape[:: -1 if turned else 1])
        del stored[name]
        stored |= {f"{name.removesuffix('.weight')}.{ending}": tensor.contiguous() for ending, tensor in parts.items()}
        meant[name] = torch.from_numpy(np.ascontiguousarray(weight.T if turned else weight)).float()
    return stored, meant
