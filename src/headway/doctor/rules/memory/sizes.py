"""Sizes that several memory rules need: weights as loaded, keys and values per token, what a split or fewer bits would give."""

from __future__ import annotations

import math
from typing import Final

from headway.doctor.case import Case
from headway.doctor.facts.launch import Launch
from headway.doctor.facts.memory import WEIGHTS

BLOCK: Final = 16
_DEFAULT_CAP: Final = 0.92  # vLLM since 0.20; 0.9 before
_OLD_CAP: Final = 0.9
_CONTEXT_GIB: Final = 1.0  # driver context, and a first activation
_FP8_CACHE: Final = ("fp8", "int8")


def tensor_ranks(launch: Launch) -> int:
    return max(1, int(launch.number("tensor_parallel_size") or launch.number("tp_size") or 1))


def all_ranks(launch: Launch) -> int:
    return tensor_ranks(launch) * max(1, int(launch.number("pipeline_parallel_size") or launch.number("pp_size") or 1))


def weights_gib(case: Case) -> float | None:
    """Weights on one device: as loaded, else as stored, else parameters times bytes (from the configuration or the name)."""
    if case.memory.weights is not None and case.log.sees(WEIGHTS):
        return case.memory.weights.value
    whole = whole_weights_gib(case)
    return None if whole is None else whole / all_ranks(case.launch)


def whole_weights_gib(case: Case) -> float | None:
    """Weights of all devices together, before loading."""
    if case.model.stored is not None and not loads_unquantised(case):
        return case.model.stored.value
    if loads_unquantised(case):
        return case.model.gib()
    method = case.launch.value("quantization").replace("None", "") or case.model.claimed or case.model.named
    bits = case.model.named_bits or (8 if "fp8" in method or "int8" in method else 4) if method else None
    return case.model.gib(bits + 0.5 if bits else None)


def loads_unquantised(case: Case) -> bool:
    """The engine says quantization=None although the files, or the name and no section of config.json, say otherwise."""
    stated = case.launch.config.get("quantization")
    if stated is None or stated.value != "None" or case.model.claimed:
        return False
    return bool(case.model.packed or case.model.named)


def utilization(case: Case) -> float:
    """The cap as given, else the default of this version."""
    if case.memory.utilization is not None:
        return case.memory.utilization.value
    return _OLD_CAP if is_old(case) else _DEFAULT_CAP


def is_old(case: Case) -> bool:
    """vLLM before 0.20."""
    parts = case.launch.version.split(".")
    return len(parts) > 1 and parts[0] == "0" and parts[1].isdigit() and int(parts[1]) < 20


def kv_gib(case: Case, tokens: float) -> float | None:
    """Keys and values of `tokens` on one rank, from a complete configuration."""
    shape = case.model.shape
    if shape is None:
        return None
    one_byte = case.launch.value("kv_cache_dtype").startswith(_FP8_CACHE)
    stages = max(1, all_ranks(case.launch) // tensor_ranks(case.launch))
    return tokens * shape.numbers_per_token(tensor_ranks(case.launch)) * (1 if one_byte else 2) / stages / 2**30


def split_that_fits(case: Case, weights: float, total: float) -> int | None:
    """The smallest number of equal cards over which the weights of one card now would fit with a gigabyte beside them; it divides the attention
    heads where their number is known."""
    heads = case.model.heads
    for ranks in range(2, 65):
        divides = heads % (ranks * all_ranks(case.launch)) == 0 if heads else ranks & (ranks - 1) == 0
        if divides and weights / ranks + _CONTEXT_GIB < 0.9 * total:
            return ranks
    return None


def size_text(size: float) -> str:
    """GiB as text; what is far below one in MiB."""
    return f"{size:.2f} GiB" if abs(size) >= 0.1 or size == 0 else f"{size * 1024:.2f} MiB"


def asked_text(size: float) -> str:
    """GiB in the unit that an allocator prints: whole MiB below one GiB."""
    return f"{size * 1024:.0f} MiB" if size < 1 else f"{size:.2f} GiB"


def round_up(value: float, digits: int = 2) -> float:
    return float(math.ceil(value * 10**digits - 1e-9)) / 10.0**digits


def round_down(value: float, digits: int = 2) -> float:
    return float(math.floor(value * 10**digits + 1e-9)) / 10.0**digits
