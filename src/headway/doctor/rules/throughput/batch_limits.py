"""What keeps the running batch small: a cap on sequences (T1), a full KV cache (T2), sequences put back (T3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.load import LoadShape, preempted, shape_of
from headway.doctor.facts.metrics import span_of
from headway.doctor.facts.processor_use import on_cpu
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

PREEMPTED: Final = sight(
    "is preempted by PreemptionMode",
    pattern=r"is preempted by PreemptionMode\.(?P<mode>\w+) mode.*?(?:cumulative_preemption(?:_cnt|_count|s)?[=:] ?(?P<total>\d+))?$",
)
OURS: Final = sight("since the KV cache is full", pattern=r"preempted (?P<count>\d+) sequence\(s\), since the KV cache is full: at most (?P<tokens>\d+) tokens")
RETRACTED: Final = sight("KV cache pool is full. Retract", pattern=r"#retracted_reqs: (?P<count>\d+)")
NO_SLOT: Final = sight("failed to find free space in the KV cache", "failed to find a memory slot for batch", "failed to find KV slot")

_TWICE: Final = Words("give the cache twice the memory, if the host has it", "如果主机内存足够，把缓存内存加倍")
_ROOM: Final = 0.70  # below this share of the cache more sequences would fit
_FULL: Final = 0.95
_CROWDED: Final = 0.80
_NEARLY: Final = 0.85  # of a cache of few blocks that was full at times
_AIM: Final = 0.90
_SMALL_STEP: Final = 512

# program -> the flag that caps the sequences of one step
_CAP_FLAGS: Final = {
    "": ("max_num_seqs", "--max-num-seqs"),
    "sglang": ("max_running_requests", "--max-running-requests"),
    "llama.cpp": ("parallel", "--parallel"),
    "tensorrt-llm": ("max_batch_size", "--max_batch_size"),
}
_SHORT_CAPS: Final = ("np", "n_parallel")


@dataclass(frozen=True, slots=True)
class Cap:
    """`value` sequences per engine by `flag`; `stated` when a flag or config says so, else read from a plateau."""

    value: int
    flag: str
    stated: Quote | None


def cap_of(case: Case) -> Cap | None:
    """The cap on running sequences: as given, else where the batch stands still while requests wait."""
    names, flag = _CAP_FLAGS.get(case.launch.program) or _CAP_FLAGS[""]
    for name in (names, *_SHORT_CAPS):
        fact = case.launch.fact(name)
        if fact and fact.value.isdigit():
            return Cap(int(fact.value), flag, fact.quote)
    queued = [sample for sample in case.load if sample.waiting and sample.running]
    level = {sample.running for sample in queued}
    if len(level) == 1 and (len(queued) >= 3 or (len(queued) == 2 and small_steps(case) is not None)):
        return Cap(int((queued[0].running or 0) / queued[0].engines), flag, None)
    return None


def small_steps(case: Case) -> float | None:
    """Tokens that 95 % of the steps stay below, where scrapes tell and that is far below what any server lets a step compute:
    then the tokens of a step hold nobody back."""
    span = span_of(case.context)
    tokens = span.quantile("iteration_tokens_total", 0.95) if span and not span.since_start else None
    return tokens if tokens is not None and tokens <= _SMALL_STEP else None


def at_cap(case: Case, cap: Cap, shape: LoadShape) -> bool:
    """Whether the batch is as large as the cap allows in most busy samples in which somebody waits."""
    queued = [sample for sample in case.load if sample.waiting and sample.running]
    full = [sample for sample in queued if (sample.running or 0) >= cap.value * sample.engines]
    return len(full) * 2 > len(queued) and shape.waiting_share >= 0.5


def sequence_cap(case: Case) -> Found | None:
    shape, cap = shape_of(case.load), cap_of(case)
    if shape is None or cap is None or not at_cap(case, cap, shape):
        return None
    if shape.usage is not None and shape.usage >= _ROOM:
        return None
    better = larger_cap(cap.value, shape.usage)
    if better <= cap.value:
        return None
    used, used_zh = _usage(shape)
    engines, engines_zh = (f" in each of {shape.engines} engines", f"每个引擎（共 {shape.engines} 个）") if shape.engines > 1 else ("", "")
    evidence = [*([cap.stated] if cap.stated else []), shape.middle.quote, shape.last.quote]
    rate = f"{shape.generation_rate:.0f} tokens/s" if shape.generation_rate else ""
    return Found(
        cause=Words(
            f"The batch stands at its cap: {shape.running:g} sequences run, {cap.flag} allows {cap.value}{engines}, and {shape.waiting:g} requests wait{used}."
            f" The cap, not memory, limits the tokens per second{f' ({rate})' if rate else ''}.",
            f"批次顶到了上限：{shape.running:g} 个序列在运行，{cap.flag} 只允许{engines_zh} {cap.value} 个，另有 {shape.waiting:g} 个请求在等待{used_zh}。"
            f"限制每秒 token 数{f'（{rate}）' if rate else ''}的是这个上限，而不是显存。",
        ),
        evidence=evidence,
        fixes=[
            Fix(
                Words(
                    f"let more sequences run: {cap.value} -> {better}{_why_so_many(cap.value, shape.usage, better)[0]}",
                    f"允许更多序列同时运行：{cap.value} -> {better}{_why_so_many(cap.value, shape.usage, better)[1]}",
                ),
                f"{cap.flag} {better}",
            )
        ],
        verify=Words(
            f"restart with the same load: `Waiting` falls below {shape.waiting:g}, `Running` passes {cap.value} and tokens/s rises{f' above {rate}' if rate else ''}",
            f"用相同负载重启：`Waiting` 低于 {shape.waiting:g}，`Running` 超过 {cap.value}，tokens/s {f'高于 {rate}' if rate else '上升'}",
        ),
        confidence=_confidence(case, cap, shape),
        weight="degraded",
        explains=() if rows_of_users(case) else ("F1",),
    )


def rows_of_users(case: Case) -> bool:
    """Whether somebody wrote down how long requests waited, which says more than counters do; a few probes do not."""
    return bool(case.requests) and not case.context.has("endpoint")


def larger_cap(cap: int, usage: float | None) -> int:
    """The next power of two, at most what keeps the cache below 90 %: running x 0.9 / usage."""
    doubled = int(2 ** (math.floor(math.log2(cap)) + 1)) if cap >= 1 else 1
    if not usage:
        return doubled
    room = int(cap * _AIM / usage)
    return doubled if doubled <= room else room // 8 * 8 if room >= 16 else room


def cache_bound(case: Case) -> Found | None:
    shape = shape_of(case.load)
    no_slot = case.log.first(NO_SLOT)
    if no_slot is not None and case.launch.program == "llama.cpp":
        return _llama_full(case, no_slot.quote())
    if shape is None or shape.usage is None or not shape.waiting:
        return None
    full, full_zh = ("is full", "已满") if _is_full(case, shape) else ("has no room for one more sequence", "放不下再多一个序列") if _is_crowded(case, shape) else ("", "")
    if not full:
        return None
    return Found(
        cause=Words(
            f"The KV cache {full}: {shape.usage:.1%} in use with {shape.running:g} sequences running and {shape.waiting:g} waiting."
            f"{_mean_context(case, shape)[0]} Admitting more sequences would make it worse; each has to hold its whole context in the cache.",
            f"KV 缓存{full_zh}：使用率 {shape.usage:.1%}，{shape.running:g} 个序列在运行，{shape.waiting:g} 个在等待。"
            f"{_mean_context(case, shape)[1]}放进更多序列只会更糟：每个序列都要把全部上下文留在缓存里。",
        ),
        evidence=[shape.middle.quote, shape.last.quote, *_capacity(case)],
        fixes=_more_cache(case, shape),
        verify=Words(
            "the same load afterwards: KV cache usage stays below 95 % and `Waiting` falls", "之后用相同负载：KV 缓存使用率低于 95%，`Waiting` 下降"
        ),
        confidence=0.9 if shape.samples > 2 else 0.75,
        weight="degraded",
        explains=("F1",),
    )


def _is_full(case: Case, shape: LoadShape) -> bool:
    peak = max((sample.usage or 0.0 for sample in case.load if sample.waiting), default=0.0)
    return (shape.usage or 0.0) >= _FULL or ((shape.usage or 0.0) >= _NEARLY and peak >= _FULL)


def _is_crowded(case: Case, shape: LoadShape) -> bool:
    """Engines keep some blocks free, so a cache of few blocks never shows 100 %: what is left holds no sequence of the mean
    size, and the cap on sequences is not reached."""
    cap, usage = cap_of(case), shape.usage or 0.0
    if usage < _CROWDED or shape.waiting_share < 0.5 or (cap is not None and cap.stated is not None and at_cap(case, cap, shape)):
        return False
    return shape.running * (1 - usage) / usage < 1


def preemption(case: Case) -> Found | None:
    shape = shape_of(case.load)
    counted = _count_preempted(case)
    if not counted.times:
        return None
    usage = shape.usage if shape else None
    full = usage is None or usage >= 0.85
    context = _tokens_per_sequence(case, shape) if shape else None
    wasted = counted.tokens if counted.tokens else counted.times * context if context else None
    again = f", so about {wasted:,.0f} tokens were computed again" if wasted else ""
    again_zh = f"，约 {wasted:,.0f} 个 token 要重新计算" if wasted else ""
    sum_en = f" ({counted.times:g} x {context:,.0f} tokens of mean context)" if wasted and context and not counted.tokens else ""
    sum_zh = f"（{counted.times:g} x 平均上下文 {context:,.0f} token）" if wasted and context and not counted.tokens else ""
    used = f" at {usage:.1%} KV cache usage" if usage is not None else ""
    used_zh = f"，KV 缓存使用率 {usage:.1%}" if usage is not None else ""
    load = f" with {shape.running:g} running and {shape.waiting:g} waiting" if shape else ""
    load_zh = f"，{shape.running:g} 个在运行、{shape.waiting:g} 个在等待" if shape else ""
    rare = counted.times < 5 and not (shape and shape.waiting_share >= 0.5)
    return Found(
        cause=Words(
            f"The KV cache is full and sequences are preempted: {counted.times:g} preemptions{used}{load}. Each preempted sequence loses its cache"
            f"{again}{sum_en}. Admitting more sequences would preempt more.",
            f"KV 缓存已满，序列被抢占：共 {counted.times:g} 次抢占（preemption）{used_zh}{load_zh}。被抢占的序列会丢失缓存{again_zh}{sum_zh}。放进更多序列只会抢占更多。",
        ),
        evidence=[*counted.quotes, *([shape.last.quote] if shape else []), *_capacity(case)],
        fixes=_more_cache(case, shape),
        verify=Words(
            "the same load afterwards: `vllm:num_preemptions_total` (or the preemption lines of the log) stands still and KV cache usage stays below 95 %",
            "之后用相同负载：`vllm:num_preemptions_total`（或日志中的抢占行）不再增长，KV 缓存使用率低于 95%",
        ),
        confidence=0.45 if rare or not full else 0.95,
        weight="degraded",
        explains=("T2", "F1"),
    )


@dataclass(frozen=True, slots=True)
class _Preempted:
    """`times` of preemptions, and the tokens lost where the program says so."""

    times: float
    tokens: float
    quotes: Sequence[Quote]


def _count_preempted(case: Case) -> _Preempted:
    old = case.log.hits(PREEMPTED)
    if old:
        totals = [hit.number("total") for hit in old if hit["total"]]
        return _Preempted(max(totals, default=float(case.log.count(PREEMPTED))), 0.0, [old[0].quote(), old[-1].quote()][: len(old)])
    ours = case.log.hits(OURS)
    if ours:
        return _Preempted(sum(hit.number("count") for hit in ours), sum(hit.number("tokens") for hit in ours), [ours[-1].quote()])
    retracted = case.log.hits(RETRACTED)
    if retracted:
        return _Preempted(sum(hit.number("count") for hit in retracted), 0.0, [retracted[-1].quote()])
    samples = [sample for sample in case.load if sample.preemptions is not None]
    if samples and not isinstance(samples[0].source, Quote):  # lines of a log: the sum so far starts at zero
        told = [sample for sample in samples if sample.preemptions]
        return _Preempted(samples[-1].preemptions or 0.0, 0.0, [told[0].quote] if told else [])
    return _Preempted(preempted(samples), 0.0, [samples[0].quote] if samples else [])


def _more_cache(case: Case, shape: LoadShape | None) -> list[Fix]:
    """Best first; the cap on sequences is what the cache held in this case."""
    fixes: list[Fix] = []
    flag = (_CAP_FLAGS.get(case.launch.program) or _CAP_FLAGS[""])[1]
    if shape and shape.running >= 2:
        held = max(1, int(shape.running / shape.engines * _AIM))
        held = held // 8 * 8 if held >= 16 else held
        fixes.append(
            Fix(
                Words(f"run only as many sequences as the cache holds (about {held} here)", f"只运行缓存容得下的序列数（此处约 {held} 个）"),
                f"{flag} {held}",
            )
        )
    if case.launch.program == "headway" or case.log.sees(OURS):
        if case.memory.kv_available:
            size = case.memory.kv_available.value * 2
            fixes.insert(0, Fix(_TWICE, f"--kv-cache-memory-bytes {size:.1f}GiB"))
    elif on_cpu(case.log, case.context, case.device):
        space = case.context.number("env.VLLM_CPU_KVCACHE_SPACE") or (case.memory.kv_available.value if case.memory.kv_available else None)
        if space and space < 1e5:
            fixes.insert(0, Fix(_TWICE, f"VLLM_CPU_KVCACHE_SPACE={math.ceil(space * 2)}"))
    elif case.launch.value("kv_cache_dtype") in ("", "auto", "bfloat16", "float16") and case.launch.program in ("vllm", ""):
        tokens = case.memory.kv_tokens
        twice = f": {tokens.value:,} -> about {2 * tokens.value:,} tokens" if tokens else ""
        twice_zh = f"：{tokens.value:,} -> 约 {2 * tokens.value:,} token" if tokens else ""
        fixes.insert(0, Fix(Words(f"an 8-bit KV cache holds twice as many tokens{twice}", f"8 位 KV 缓存可容纳两倍的 token{twice_zh}"), "--kv-cache-dtype fp8"))
    if override := case.launch.value("num_gpu_blocks_override"):
        fixes.insert(0, Fix(Words(f"drop --num-gpu-blocks-override {override}: it makes the cache smaller than its memory allows", f"去掉 --num-gpu-blocks-override {override}：它使缓存小于内存所允许的大小")))
    fixes.append(
        Fix(
            Words(
                "shorten what each request may occupy: a smaller max_tokens in the requests; or more memory for the cache (smaller weights, a larger or a second device)",
                "缩短每个请求占用的长度：在请求中设置更小的 max_tokens；或者给缓存更多内存（更小的权重、更大或第二块设备）",
            )
        )
    )
    return fixes


def _llama_full(case: Case, quote: Quote) -> Found:
    size = case.launch.number("ctx_size") or case.launch.number("n_ctx")
    twice = f"-c {int(size * 2)}" if size else None
    shown = f" of {size:g} cells" if size else ""
    return Found(
        cause=Words(
            f"llama.cpp finds no free cells in its KV cache{shown}: the slots share it, and the running sequences fill it. More slots would make it worse.",
            f"llama.cpp 的 KV 缓存{'（' + format(size, 'g') + ' 个单元）' if size else ''}已没有空位：各个 slot 共用它，运行中的序列已把它占满。增加 slot 只会更糟。",
        ),
        evidence=[quote],
        fixes=[
            Fix(Words("enlarge the cache that all slots share", "增大各 slot 共用的缓存"), twice),
            Fix(Words("an 8-bit KV cache holds about twice as much", "8 位 KV 缓存约可容纳两倍"), "--cache-type-k q8_0 --cache-type-v q8_0 --flash-attn on"),
        ],
        verify=Words("the same load afterwards: the line does not appear again", "之后用相同负载：不再出现该行"),
        confidence=0.9,
        weight="degraded",
    )


def _tokens_per_sequence(case: Case, shape: LoadShape) -> float | None:
    """Tokens that one running sequence holds: cache size x usage / running."""
    tokens = case.memory.kv_tokens
    if tokens is None or shape.usage is None or not shape.running:
        return None
    return tokens.value * shape.usage * shape.engines / shape.running


def _mean_context(case: Case, shape: LoadShape) -> tuple[str, str]:
    each, tokens = _tokens_per_sequence(case, shape), case.memory.kv_tokens
    if each is None or tokens is None:
        return "", ""
    return (
        f" {tokens.value:,} tokens hold about {shape.running:g} sequences of {each:,.0f} tokens.",
        f"{tokens.value:,} 个 token 的容量约可放下 {shape.running:g} 个长 {each:,.0f} token 的序列。",
    )


def _capacity(case: Case) -> list[Quote]:
    return [case.memory.kv_tokens.quote] if case.memory.kv_tokens else []


def _usage(shape: LoadShape) -> tuple[str, str]:
    if shape.usage is None:
        return "", ""
    return f" while the KV cache is only {shape.usage:.1%} full", f"，而 KV 缓存只用了 {shape.usage:.1%}"


def _why_so_many(cap: int, usage: float | None, better: int) -> tuple[str, str]:
    if not usage:
        return "", ""
    return f" (the cache would be about {usage * better / cap:.0%} full)", f"（缓存使用率约为 {usage * better / cap:.0%}）"


def _confidence(case: Case, cap: Cap, shape: LoadShape) -> float:
    if shape.usage is None:
        return 0.7 if cap.stated else 0.55
    if cap.stated:
        return 0.9 if shape.samples > 2 else 0.75
    if small_steps(case) is not None:
        return 0.75
    return 0.65 if cap.value & (cap.value - 1) == 0 and cap.value >= 8 else 0.5  # caps are powers of two more often than not


RULES: Final = (
    Rule(
        id="T1",
        proof="live",
        title=Words("The cap on sequences limits the batch", "序列数上限限制了批次"),
        symptoms=Words("running requests equal `--max-num-seqs`, requests wait, KV cache usage below 70 %", "运行中的请求数等于 `--max-num-seqs`，有请求在等待，而 KV 缓存使用率低于 70%"),
        why=Words("memory would hold more sequences than the cap lets run", "内存容得下的序列比上限允许的更多"),
        needs=Words("running, waiting and KV cache usage over time; the cap", "一段时间内的运行数、等待数和 KV 缓存使用率；上限值"),
        remedy=Words("raise `--max-num-seqs` to the next power of two, at most running x 0.9 / usage", "把 `--max-num-seqs` 提到下一个 2 的幂，最多为 运行数 x 0.9 / 使用率"),
        check=Words("waiting falls, tokens/s rises", "等待数下降，tokens/s 上升"),
        judge=sequence_cap,
        explains=("T4",),
    ),
    Rule(
        id="T2",
        title=Words("The KV cache limits the batch", "KV 缓存限制了批次"),
        symptoms=Words("KV cache usage near 100 % while requests wait", "KV 缓存使用率接近 100%，同时有请求在等待"),
        why=Words("every running sequence keeps its whole context in the cache", "每个运行中的序列都要把全部上下文留在缓存里"),
        needs=Words("KV cache usage, running and waiting over time", "一段时间内的 KV 缓存使用率、运行数和等待数"),
        remedy=Words(
            "more cache (8-bit KV cache, smaller weights, more memory), shorter max_tokens, fewer sequences", "更多缓存（8 位 KV 缓存、更小的权重、更多内存）、更短的 max_tokens、更少的序列"
        ),
        check=Words("KV cache usage below 95 %", "KV 缓存使用率低于 95%"),
        judge=cache_bound,
        sees=(NO_SLOT,),
    ),
    Rule(
        id="T3",
        proof="live",
        title=Words("Sequences are preempted because the KV cache is full", "KV 缓存已满，序列被抢占"),
        symptoms=Words("`num_preemptions_total` rises; old versions print `is preempted by PreemptionMode.RECOMPUTE mode`", "`num_preemptions_total` 增长；旧版本会打印 `is preempted by PreemptionMode.RECOMPUTE mode`"),
        why=Words("a preempted sequence loses its cache and is computed again from the start", "被抢占的序列会丢失缓存，需要从头重新计算"),
        needs=Words("the counter at two times, or the lines of the log", "两个时刻的计数器，或日志中的相应行"),
        remedy=Words("as for a full cache, and a lower `--max-num-seqs`", "同缓存已满的处理，并降低 `--max-num-seqs`"),
        check=Words("the counter stands still", "计数器不再增长"),
        judge=preemption,
        sees=(PREEMPTED, OURS, RETRACTED),
    ),
)
