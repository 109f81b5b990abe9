"""One sequence of the full context length does not fit the cache (O2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.memory import SIZE, gib
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.memory.flag_names import flag
from headway.doctor.rules.memory.llama_buffers import cache_that_fits
from headway.doctor.rules.memory.sizes import BLOCK, all_ranks, kv_gib, tensor_ranks, utilization
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NEW: Final = sight(
    "To serve at least one request",
    pattern=rf"max seq len \((?P<length>[\d,]+)\), \(?(?P<needed>{SIZE})(?: of memory for the KV cache| KV cache) is needed"
    rf".*?(?:available KV cache memory \(|and it has )(?P<available>{SIZE})"
    r"(?:.*?(?:maximum model length is|longest sequence that fits has) (?P<fits>\d+))?",
)
OLD: Final = sight(
    "that can be stored in",
    pattern=r"max(?:imum)? (?:seq|model) len(?:gth)? \((?P<length>[\d,]+)\) is larger than the maximum number of tokens that can be stored in (?:the )?KV cache"
    r" \((?P<fits>[\d,]+)\)",
)
PAGED: Final = sight(
    "to process at least 1 sequence to completion", pattern=r"maxTokensInPagedKvCache(?: \((?P<tokens>\d+)\))? must be large enough"
)  # TensorRT-LLM
PAGED_TOKENS: Final = sight("tokens in paged KV cache (", pattern=r"tokens in paged KV cache \((?P<tokens>\d+)\)")
_CPU_CACHE_GIB: Final = 4.0  # vLLM's default on CPU
_RAM_FREE_GIB: Final = 2.0


@dataclass(frozen=True, slots=True)
class Shortage:
    """Tokens and GiB; `needed` and `available` are None where the message has tokens only."""

    hit: Hit
    length: int
    fits: int
    needed: float | None
    available: float | None


def shortage_of(case: Case) -> Shortage | None:
    """From the engine's message. What fits is rounded down to a block."""
    if hit := case.log.first(NEW):
        length, needed, available = int(hit.number("length")), gib(hit["needed"]), gib(hit["available"])
        # both sizes are rounded to two decimals
        fits = int(hit.number("fits")) if hit["fits"] else int(length * max(0.0, available - 0.005) / (needed + 0.005))
        return Shortage(hit, length, fits // BLOCK * BLOCK, needed, available)
    if hit := case.log.first(OLD):
        length, fits = int(hit.number("length")), int(hit.number("fits"))
        held = case.memory.kv_available.value if case.memory.kv_available else None
        return Shortage(hit, length, fits // BLOCK * BLOCK, kv_gib(case, length), held if held and held > 0 else None)
    return None


def one_sequence_does_not_fit(case: Case) -> Found | None:
    """x GiB for N tokens gives bytes per token; what there is, divided by it and rounded down to a block, is what fits."""
    short = shortage_of(case)
    if short is None:
        return cache_that_fits(case) or paged_cache_too_small(case)
    fixes = [
        Fix(
            Words(f"limit the context to what fits, {short.fits} tokens", f"把上下文限制到能容纳的 {short.fits} 个 token"),
            flag(case, "length", short.fits),
        )
    ]
    fixes = fixes if short.fits > 0 else []
    fixes += _more_cache_on_cpu(case, short) if case.device.is_cpu else _more_cache_on_card(case, short)
    return Found(
        cause=_cause(case, short),
        evidence=[short.hit.quote(), *([case.memory.kv_available.quote] if case.memory.kv_available else [])],
        fixes=fixes,
        verify=Words(
            f"start again: no error, and the log shows `Maximum concurrency for {max(short.fits, BLOCK):,} tokens per request` of at least 1.00x",
            f"重新启动：不再报错，日志中 `Maximum concurrency for {max(short.fits, BLOCK):,} tokens per request` 不低于 1.00x",
        ),
        confidence=STATED,
    )


def paged_cache_too_small(case: Case) -> Found | None:
    """TensorRT-LLM names no sizes; the tokens that were allocated may stand in a line before."""
    hit, allocated = case.log.first(PAGED), case.log.last(PAGED_TOKENS)
    if hit is None:
        return None
    tokens = int(hit.number("tokens")) if hit["tokens"] else int(allocated.number("tokens")) if allocated else None
    fits = tokens // 64 * 64 if tokens else None
    held = f" It has {tokens} tokens." if tokens else ""
    fixes = [Fix(Words(f"limit the sequence to {fits} tokens", f"把序列限制到 {fits} 个 token"), flag(case, "length", fits))] if fits else []
    fixes.append(Fix(Words("let the cache take more of the free memory", "让缓存占用更多空闲显存"), flag(case, "share", 0.9)))
    return Found(
        cause=Words(
            f"One sequence of the engine's full length does not fit the paged KV cache.{held} The limit on tokens, or the fraction of free memory for the cache, is too small for the length the engine was built for.",
            f"一个满长度的序列放不进分页 KV 缓存。{f'它只有 {tokens} 个 token。' if tokens else ''}相对引擎构建时的长度，token 上限或缓存可用的空闲显存比例太小。",
        ),
        evidence=[hit.quote(), *([allocated.quote()] if allocated else [])],
        fixes=fixes,
        verify=Words(
            "start again: `max tokens in paged KV cache` is at least the sequence length", "重新启动：`max tokens in paged KV cache` 不小于序列长度"
        ),
        confidence=0.9,
    )


def _cause(case: Case, short: Shortage) -> Words:
    if short.needed is not None and short.available is not None:
        per_token = short.needed * 2**20 / short.length
        needed, available = _as_printed(short, "needed", short.needed), _as_printed(short, "available", short.available)
        en = (
            f"One sequence of {short.length} tokens, the context limit, needs {needed} of KV cache ({per_token:.1f} KiB per token), and the cache has"
            f" {available}: at most {short.fits} tokens fit."
        )
        zh = f"一个 {short.length} token（上下文上限）的序列需要 {needed} KV 缓存（每 token {per_token:.1f} KiB），而缓存只有 {available}：最多容纳 {short.fits} 个 token。"
    else:
        en = f"The context limit of {short.length} tokens is larger than the whole KV cache, which holds {short.fits} tokens."
        zh = f"上下文上限 {short.length} token 大于整个 KV 缓存的容量 {short.fits} token。"
    if case.device.is_cpu:
        en += " This runs on the CPU: the memory-share flags of the GPU that the message names do nothing here."
        zh += "这里在 CPU 上运行：报错中提到的 GPU 显存份额参数不起作用。"
    elif all_ranks(case.launch) > tensor_ranks(case.launch):
        en += " With pipeline stages the smallest stage decides."
        zh += "使用流水线并行时由最小的一级决定。"
    else:
        en += " It is no reason for a bigger card unless such long sequences are really needed."
        zh += "除非确实需要这么长的序列，否则这不是换更大显卡的理由。"
    return Words(en, zh)


def _as_printed(short: Shortage, group: str, size: float) -> str:
    """A size in the unit of the message, which is the readable one."""
    printed = short.hit.match.groupdict().get(group)
    return printed if printed and size < 1 else f"{size:.2f} GiB"


def _more_cache_on_cpu(case: Case, short: Shortage) -> list[Fix]:
    if short.needed is None:
        return []
    wanted = math.ceil(short.needed + 0.01)
    ram = case.context.number("host.cgroup.memory_max_gib") or case.context.number("host.ram_gib")
    weights = case.memory.weights.value if case.memory.weights else 0.0
    if ram is not None and wanted + weights + _RAM_FREE_GIB > ram:
        return []
    if case.launch.program == "headway":
        return [Fix(Words(f"or give the cache {wanted} GiB", f"或给缓存 {wanted} GiB"), f"--kv-cache-memory-bytes {wanted << 30}")]
    now = _as_printed(short, "available", short.available) if short.available is not None else f"{_CPU_CACHE_GIB:g} GiB"
    return [
        Fix(
            Words(
                f"or give the cache {wanted} GiB of RAM instead of {now}",
                f"或把缓存所用内存从 {now} 提高到 {wanted} GiB",
            ),
            f"VLLM_CPU_KVCACHE_SPACE={wanted}",
        )
    ]


def _more_cache_on_card(case: Case, short: Shortage) -> list[Fix]:
    fixes = []
    is_eight_bit = case.launch.value("kv_cache_dtype").startswith(("fp8", "int8"))
    gpu = case.device.gpu(0)
    if not is_eight_bit and not (gpu and gpu.capability and gpu.capability < 80) and short.fits > 0:
        enough = 2 * short.fits >= short.length
        fixes.append(
            Fix(
                Words(
                    f"or keep keys and values in 8 bits: the cache then holds about {2 * short.fits} tokens"
                    + ("" if enough else f", so limit the context to {2 * short.fits}"),
                    f"或用 8 位保存 KV：缓存约可容纳 {2 * short.fits} 个 token" + ("" if enough else f"，并把上下文限制到 {2 * short.fits}"),
                ),
                "--kv-cache-dtype fp8" + ("" if enough else " " + flag(case, "length", 2 * short.fits)),
            )
        )
    total = case.memory.total.value if case.memory.total else None
    if total is not None and short.needed is not None and short.available is not None:
        share = utilization(case) + (short.needed - short.available) / total + 0.005
        if share <= 0.95 and share > utilization(case):
            fixes.append(
                Fix(Words("or let the engine use more of the card", "或让引擎使用更多显存"), flag(case, "share", f"{math.ceil(share * 100) / 100:g}"))
            )
    return fixes


RULES: Final = (
    Rule(
        id="O2",
        proof="live",
        title=Words("One sequence does not fit the KV cache", "单个序列放不进 KV 缓存"),
        symptoms=Words(
            "`To serve at least one request with the model's max seq len`, `larger than the maximum number of tokens that can be stored in KV cache`, llama.cpp `failed to allocate buffer for kv cache`",
            "`To serve at least one request with the model's max seq len`、`larger than the maximum number of tokens that can be stored in KV cache`、llama.cpp `failed to allocate buffer for kv cache`",
        ),
        why=Words("the model's context default (32k to 160k) is longer than the cache", "模型默认上下文（32k 到 160k）比缓存长"),
        needs=Words("the sizes in the message; on CPU the RAM", "报错中的大小；CPU 上还需内存大小"),
        remedy=Words("a shorter context, an 8-bit KV cache, or more memory for the cache", "缩短上下文、8 位 KV 缓存，或给缓存更多内存"),
        check=Words("the start passes with a concurrency of at least 1.00x", "启动通过，并发不低于 1.00x"),
        judge=one_sequence_does_not_fit,
        sees=(NEW, OLD, PAGED, PAGED_TOKENS),
    ),
)
