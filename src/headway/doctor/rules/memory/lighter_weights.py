"""Remedies for weights that are too large: fewer bits, more cards, a smaller model. Never a smaller cap or context."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.finding import Fix
from headway.doctor.rules.memory.flag_names import flag
from headway.doctor.rules.memory.sizes import all_ranks, split_that_fits
from headway.doctor.words import Words

_FOUR_BITS: Final = 4.5  # with scales and zeros of groups of 128, and the tables kept at 16 bit
_FP8_FROM: Final = 80  # weight-only; its own arithmetic from 89


def lighter_weights(case: Case, weights: float, total: float | None) -> list[Fix]:
    """`weights`: GiB as they would be held on one device; `total`: GiB of that device."""
    fixes: list[Fix] = []
    if not is_quantised(case):
        four = weights * _FOUR_BITS / (8 * case.model.dtype_bytes)
        fixes.append(
            Fix(
                Words(
                    f"take 4-bit weights of this model (AWQ, GPTQ or int4): about {four:.1f} GiB instead of {weights:.1f}",
                    f"改用该模型的 4 位权重（AWQ、GPTQ 或 int4）：约 {four:.1f} GiB，而不是 {weights:.1f} GiB",
                )
            )
        )
        eight = weights * 8 / (8 * case.model.dtype_bytes)
        gpu = case.device.gpu(0)
        if (
            total is not None
            and eight + 1 < 0.9 * total
            and gpu is not None
            and (gpu.capability or 0) >= _FP8_FROM
            and case.launch.program in ("vllm", "sglang", "")
        ):
            fixes.append(
                Fix(
                    Words(f"quantise to 8 bits while loading: about {eight:.1f} GiB", f"加载时量化为 8 位：约 {eight:.1f} GiB"),
                    "--quantization fp8",
                )
            )
    ranks = split_that_fits(case, weights, total) if total is not None else None
    if ranks is not None:
        new = ranks * all_ranks(case.launch)
        have = len(case.device.gpus)
        fixes.append(
            Fix(
                Words(
                    f"split them over {new} cards of this size: {weights / ranks:.1f} GiB each"
                    + (f" (this host shows {have})" if 0 < have < new else ""),
                    f"用 {new} 张同样的卡切分：每张 {weights / ranks:.1f} GiB" + (f"（本机只看到 {have} 张）" if 0 < have < new else ""),
                ),
                flag(case, "split", new),
            )
        )
    return [*fixes, _smaller_model(case, total)]


def weights_of_unknown_size(case: Case, total: float | None) -> list[Fix]:
    """They filled a device of `total` GiB and went on, so only a lower bound is known."""
    fixes = []
    if not is_quantised(case):
        bits = 8 * case.model.dtype_bytes
        fixes.append(
            Fix(
                Words(
                    f"take 4-bit weights of this model (AWQ, GPTQ or int4) instead of {bits}-bit ones: about {100 * _FOUR_BITS / bits:.0f} % of the size",
                    f"改用该模型的 4 位权重（AWQ、GPTQ 或 int4）代替 {bits} 位权重：约为原来的 {100 * _FOUR_BITS / bits:.0f}%",
                )
            )
        )
    ranks = 2 * all_ranks(case.launch)
    fixes.append(
        Fix(
            Words(f"split them over at least {ranks} cards of this size", f"至少用 {ranks} 张同样的卡切分"),
            flag(case, "split", ranks),
        )
    )
    return [*fixes, _smaller_model(case, total)]


def _smaller_model(case: Case, total: float | None) -> Fix:
    fits = None if total is None or is_quantised(case) else 0.8 * total / case.model.dtype_bytes * 2**30 / 1e9
    return Fix(
        Words(
            "serve a smaller model" + (f": up to about {fits:.0f} billion parameters fit in {case.model.dtype_bytes} bytes each" if fits else ""),
            "换用更小的模型" + (f"：每参数 {case.model.dtype_bytes} 字节时约可容纳 {fits:.0f}B 参数" if fits else ""),
        )
    )


def is_quantised(case: Case) -> bool:
    method = case.launch.value("quantization")
    return method not in ("", "None") or bool(case.model.claimed)
