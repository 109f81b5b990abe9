"""Memory that is easily forgotten: LoRA slots (O17), a draft model (O18), and weights in RAM taken for a cache there (O19)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.launch import ENGINE_CONFIG
from headway.doctor.facts.memory import WEIGHTS, gib
from headway.doctor.facts.model import Model
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.memory.blame import blame
from headway.doctor.rules.memory.cache_room import room_of
from headway.doctor.rules.memory.flag_names import flag
from headway.doctor.rules.memory.one_sequence import shortage_of
from headway.doctor.rules.memory.sizes import all_ranks, round_down, utilization, weights_gib, whole_weights_gib
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

DRAFT: Final = sight(
    "Loading drafter model", "speculative_config", "speculative_model", "draft model", "Loading draft", "in load_draft_model", "spec_decode/"
)
DRAFT_LOADED: Final = sight("Loading drafter model", "Loading draft model")
_DRAFT_NAME: Final = re.compile(r"['\"]?model['\"]?\s*[:=]\s*['\"](?P<name>[^'\"]+)['\"]")
_DRAFT_OBJECT: Final = re.compile(r"SpeculativeConfig\([^)]*?\bmodel='(?P<name>[^']+)'")
_ABOUT_CACHE: Final = re.compile(r"(?i)kv|cache|concurren|context|缓存|并发|上下文")
_LORA_NUMBERS_8B: Final = 2.62e6  # in + out of all adapted matrices of a Llama 8B
_CONSEQUENCES: Final = ("O1", "O2", "O5", "O7", "O9", "O10", "O11")
_NGRAM: Final = '--speculative-config \'{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}\''


def lora_slots(case: Case) -> Found | None:
    """max_loras x rank x (in + out) x layers x 2 bytes, reserved at start."""
    launch = case.launch
    if not launch.is_on("enable_lora") or (missing := _missing(case)) is None:
        return None
    slots, rank = int(launch.number("max_loras") or 1), int(launch.number("max_lora_rank") or 16)
    numbers, about = _adapted(case)
    if numbers is None:
        return None
    each = rank * numbers * 2 / 2**30
    size = slots * each
    total = case.memory.total.value if case.memory.total else None
    short, evidence = missing
    if size < max(1.0, 0.06 * (total or 0)) and size < (short or float("inf")):
        return None
    fewer = max(1, min(slots - 1, _slots_that_fit(case, each, size, short if shortage_of(case) or room_of(case) else None, slots)))
    fixes = []
    if fewer < slots:
        fixes.append(
            Fix(
                Words(
                    f"fewer adapters at once: {slots} -> {fewer}, which frees {(slots - fewer) * each:.2f} GiB",
                    f"减少同时加载的适配器：{slots} -> {fewer}，释放 {(slots - fewer) * each:.2f} GiB",
                ),
                f"--max-loras {fewer}",
            )
        )
    if rank > 16:
        fixes.append(
            Fix(
                Words(
                    f"a maximum rank of what the adapters really have (`r` in adapter_config.json), such as 16: frees {size * (1 - 16 / rank):.2f} GiB",
                    f"最大 rank 设为适配器的真实值（adapter_config.json 的 `r`），例如 16：释放 {size * (1 - 16 / rank):.2f} GiB",
                ),
                "--max-lora-rank 16",
            )
        )
    if not fixes:
        return None
    flags = [fact.quote for name in ("max_loras", "max_lora_rank", "enable_lora") if (fact := launch.fact(name)) is not None]
    return Found(
        cause=Words(
            f"{slots} LoRA slots of rank {rank} are reserved at start, used or not: {slots} x {rank} x {'about ' if about else ''}{numbers / 1e6:.2f}M (in + out over all layers) x 2 B = {size:.2f} GiB"
            f"{f'; {short:.2f} GiB are missing' if short else ''}. The model alone fits.",
            f"启动时即保留 {slots} 个 rank {rank} 的 LoRA 槽，无论是否使用：{slots} x {rank} x {'约 ' if about else ''}{numbers / 1e6:.2f}M（所有层 in + out）x 2 B = {size:.2f} GiB{f'；缺口 {short:.2f} GiB' if short else ''}。模型本身放得下。",
        ),
        evidence=[*evidence, *flags[:2]],
        fixes=fixes,
        verify=Words("start again: `Available KV cache memory` grows by what was freed", "重新启动：`Available KV cache memory` 增加相应的量"),
        confidence=0.85,
        explains=_CONSEQUENCES,
    )


def _slots_that_fit(case: Case, each: float, size: float, short: float | None, slots: int) -> int:
    """So many that what lacks becomes free; else what weights and two gigabytes leave of nine tenths of the device."""
    if short is not None:
        room = room_of(case)
        return int((size - short - (room.sequence if room is not None else 0.0)) / each)
    total, weights = case.memory.total, case.model.gib()
    return int((0.9 * total.value - weights - 2) / each) if total is not None and weights is not None else slots // 4


def _adapted(case: Case) -> tuple[float | None, bool]:
    """Sum of in + out over the adapted matrices of all layers, and whether it is only scaled from a known model."""
    shape = case.model.shape
    if shape is not None and shape.intermediate:
        query, kept = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        layer = 2 * (shape.hidden + query) + 2 * (shape.hidden + kept) + 3 * (shape.hidden + shape.intermediate)
        return float(layer * shape.layers), False
    if case.model.parameters is None:
        return None, True
    return _LORA_NUMBERS_8B * (case.model.parameters / 8.03e9) ** (2 / 3), True


def _missing(case: Case) -> tuple[float | None, list[Quote]] | None:
    """GiB that lack and the lines that say so; None when nothing lacks."""
    if (short := shortage_of(case)) is not None:
        lacks = short.needed - short.available if short.needed is not None and short.available is not None else None
        return lacks, [short.hit.quote()]
    if (room := room_of(case)) is not None:
        return (-room.available if room.available else None), [room.hit.quote()]
    failure = blame(case)
    if failure is not None and failure.rule in _CONSEQUENCES:
        return failure.oom.asked, [failure.oom.hit.quote()]
    return None


def draft_model(case: Case) -> Found | None:
    """Draft weights and the draft's own cache beside those of the target."""
    name, quote = _draft(case)
    if not name or (missing := _missing(case)) is None:
        return None
    draft = case.context.number("model.draft_weights_gib") or _draft_as_loaded(case) or Model(name, {}, (), None, case.model.dtype).gib()
    total, weights = (case.memory.total.value if case.memory.total else None), _target_gib(case)
    if total is not None and weights is not None and weights + 1 > total:
        return None  # the target alone does not fit
    short, evidence = missing
    if draft is not None and draft < 0.25 and draft < (short or 0):
        return None
    size = f" takes about {draft:.1f} GiB of weights and a KV cache of its own" if draft is not None else " takes weights and a KV cache of its own"
    size_zh = f"约占 {draft:.1f} GiB 权重，外加自己的 KV 缓存" if draft is not None else "占用自己的权重和 KV 缓存"
    beside = f" beside {weights:.1f} GiB of the target" if weights is not None else ""
    fixes = [Fix(Words("draft with n-grams of the prompt, which needs no second model", "改用提示的 n-gram 起草，不需要第二个模型"), _NGRAM)]
    if case.out_of_memory and total and draft is not None:
        lower = round_down(min(utilization(case), 0.95) - max(0.02, draft / total))
        fixes.append(Fix(Words(f"or leave {draft:.1f} GiB of room for it", f"或为它留出 {draft:.1f} GiB"), flag(case, "share", f"{lower:g}")))
    elif (cut := shortage_of(case)) is not None and cut.fits > 0:
        fixes.append(
            Fix(Words("or limit the context to what fits beside it", "或把上下文限制到与它并存时能容纳的长度"), flag(case, "length", cut.fits))
        )
    return Found(
        cause=Words(
            f"The draft model {name}{size}{beside}, and the budget has no room for both{f': {short:.2f} GiB are missing' if short else ''}. Without it the target fits.",
            f"草稿模型 {name} {size_zh}{f'，而目标模型占 {weights:.1f} GiB' if weights is not None else ''}，预算放不下两者{f'：缺 {short:.2f} GiB' if short else ''}。没有它目标模型放得下。",
        ),
        evidence=[*evidence, *([quote] if quote else [])],
        fixes=fixes,
        verify=Words(
            "start again: `Available KV cache memory` is positive and one sequence fits", "重新启动：`Available KV cache memory` 为正且放得下一个序列"
        ),
        confidence=0.85 if case.log.sees(DRAFT) else 0.75,
        explains=_CONSEQUENCES,
    )


def _draft_as_loaded(case: Case) -> float | None:
    """A second line of the same process is the draft's."""
    hits = case.log.hits(WEIGHTS)
    return gib(hits[1]["size"].replace("GB", "GiB")) if len(hits) == 2 and hits[0].line.process == hits[1].line.process else None


def _target_gib(case: Case) -> float | None:
    """A line of its own when the target was loaded before its draft; one line behind the draft's loading counts both."""
    hit, drafting = case.log.first(WEIGHTS), case.log.first(DRAFT_LOADED)
    if hit is None:
        return weights_gib(case)
    if drafting is not None and drafting.line.number < hit.line.number:
        return whole / all_ranks(case.launch) if (whole := whole_weights_gib(case)) is not None else None
    return gib(hit["size"].replace("GB", "GiB"))


def _draft(case: Case) -> tuple[str, Quote | None]:
    """The draft model's name; "" when drafting needs no model."""
    for name in ("speculative_config", "spec_model"):
        fact = case.launch.flags.get(name)
        if fact is not None and (found := _DRAFT_NAME.search(fact.value)):
            return found["name"], fact.quote
    for hit in case.log.hits(ENGINE_CONFIG):
        if found := _DRAFT_OBJECT.search(hit["config"]):
            return found["name"], hit.line.quote(hit.match.start("config") + found.start())
    for name in ("speculative_model", "speculative_draft_model_path", "model_draft", "md"):
        fact = case.launch.fact(name)
        if fact is not None and fact.value not in ("None", "[ngram]", ""):
            return fact.value, fact.quote
    return "", None


def offload_taken_for_cache(case: Case) -> Found | None:
    """--cpu-offload-gb moves weights, so the cache grows only by the weights that left; RAM never holds blocks by it."""
    offloaded = case.launch.number("cpu_offload_gb") or 0.0
    fact = case.launch.fact("cpu_offload_gb")
    short, room = shortage_of(case), room_of(case)
    if offloaded <= 0 or fact is None:
        return None
    expected = bool(_ABOUT_CACHE.search(case.context.text("said")))
    if short is None and room is None and not expected:
        return None
    hit = short.hit if short is not None else room.hit if room is not None else None
    available = case.memory.kv_available.value if case.memory.kv_available else None
    lacks = (
        f"One sequence of {short.length} tokens still lacks {short.needed - short.available:.2f} GiB of KV cache on the card"
        if short and short.needed and short.available
        else f"The KV cache on the card has {available:.2f} GiB"
        if available is not None
        else "The KV cache on the card still has too little room"
    )
    lacks_zh = (
        f"一个 {short.length} token 的序列在显卡上仍缺 {short.needed - short.available:.2f} GiB KV 缓存"
        if short and short.needed and short.available
        else f"显卡上的 KV 缓存有 {available:.2f} GiB"
        if available is not None
        else "显卡上的 KV 缓存仍然不够"
    )
    fixes = (
        [
            Fix(
                Words(f"limit the context to what fits: {short.fits} tokens", f"把上下文限制到 {short.fits} 个 token"),
                flag(case, "length", short.fits),
            )
        ]
        if short and short.fits > 0
        else []
    )
    fixes.append(
        Fix(
            Words(
                f"for blocks in RAM use the cache's own option ({offloaded:g} GiB); a running sequence must fit the card nevertheless",
                f"要把缓存块放到内存请用缓存自己的选项（{offloaded:g} GiB）；正在运行的序列仍须放得进显卡",
            ),
            f"--kv-offloading-size {offloaded:g}",
        )
    )
    fixes.append(
        Fix(
            Words(
                "and leave --cpu-offload-gb out if the weights fit the card: it reads them over PCIe in every step",
                "若权重放得进显卡就去掉 --cpu-offload-gb：它每一步都要经 PCIe 读取权重",
            )
        )
    )
    return Found(
        cause=Words(
            f"--cpu-offload-gb {offloaded:g} moves up to {offloaded:g} GiB of weights to RAM, not KV cache. {lacks}; more offload is no cache in RAM.",
            f"--cpu-offload-gb {offloaded:g} 把最多 {offloaded:g} GiB 的权重移到内存，而不是 KV 缓存。{lacks_zh}；再增大它也不会让缓存进入内存。",
        ),
        evidence=[*([hit.quote()] if hit else []), fact.quote, *([case.memory.kv_available.quote] if case.memory.kv_available else [])],
        fixes=fixes,
        verify=Words(
            "start again: `Available KV cache memory` after the change is larger than one sequence",
            "重新启动：修改后的 `Available KV cache memory` 大于一个序列",
        ),
        confidence=0.85 if hit is not None else 0.7,
        weight="fatal" if hit is not None else "degraded",
        explains=("O1", "O2", "O10"),
    )


RULES: Final = (
    Rule(
        id="O17",
        title=Words("LoRA slots take the room", "LoRA 槽占用了空间"),
        symptoms=Words(
            "no room for cache or weights with --enable-lora and large --max-loras or --max-lora-rank",
            "启用 --enable-lora 且 --max-loras 或 --max-lora-rank 较大时空间不足",
        ),
        why=Words("max_loras x rank x (in + out) x layers x bytes are reserved at start", "启动时保留 max_loras x rank x (in + out) x 层数 x 字节"),
        needs=Words("the flags, the shapes of the model", "参数、模型形状"),
        remedy=Words("smaller --max-loras, --max-lora-rank", "减小 --max-loras、--max-lora-rank"),
        check=Words("`Available KV cache memory` after the change", "修改后的 `Available KV cache memory`"),
        judge=lora_slots,
    ),
    Rule(
        id="O18",
        title=Words("The draft model is not in the budget", "预算没有计入草稿模型"),
        symptoms=Words("out of memory, or no room for the cache, with a draft model", "使用草稿模型时显存不足或缓存放不下"),
        why=Words("draft weights and the draft's own cache", "草稿模型的权重和它自己的缓存"),
        needs=Words("the draft's size", "草稿模型大小"),
        remedy=Words("leave room, or n-gram drafting", "留出空间，或用 n-gram 起草"),
        check=Words("`Available KV cache memory` after the change", "修改后的 `Available KV cache memory`"),
        judge=draft_model,
        sees=(DRAFT, DRAFT_LOADED),
    ),
    Rule(
        id="O19",
        title=Words("--cpu-offload-gb offloads weights, not the cache", "--cpu-offload-gb 卸载的是权重，不是缓存"),
        symptoms=Words("the cache is too small although --cpu-offload-gb is large", "--cpu-offload-gb 很大，缓存仍然太小"),
        why=Words("the option is about weights; the cache has its own", "该选项针对权重；缓存有自己的选项"),
        needs=Words("the flag, the cache's need", "参数、缓存需求"),
        remedy=Words("a context that fits, or --kv-offloading-size", "合适的上下文，或 --kv-offloading-size"),
        check=Words("`Available KV cache memory` after the change", "修改后的 `Available KV cache memory`"),
        judge=offload_taken_for_cache,
    ),
)
