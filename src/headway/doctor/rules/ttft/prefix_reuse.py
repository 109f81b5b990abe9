"""The prefix cache never hits although prompts repeat (F4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.fact import Fact
from headway.doctor.facts.load import LoadShape, shape_of
from headway.doctor.facts.prompt_overlap import Kind, Overlap, overlap_of, text_of
from headway.doctor.finding import Abstention, Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

SWITCHED_OFF: Final = sight(
    "isabling prefix caching",
    "refix caching is not supported",
    "refix caching is disabled",
    "does not support prefix caching",
    "detected without support for prefix caching",
)
BIG_BLOCK: Final = sight("Setting attention block size to", pattern=r"Setting attention block size to (?P<size>\d+) tokens")

_NEVER: Final = 0.05
_ALIKE: Final = 0.5
_ASKS: Final = re.compile(r"(?i)prefix|cache|缓存|命中")

_WHAT: Final[dict[Kind, tuple[str, str]]] = {
    "time": ("a date or time", "日期或时间"),
    "id": ("an id", "一个 ID"),
    "number": ("a number", "一个数字"),
    "text": ("text of the single request", "该请求特有的文本"),
    "cache_salt": ("the cache_salt", "cache_salt"),
    "adapter": ("the LoRA adapter", "LoRA 适配器"),
    "tools": ("the order of the tools", "工具的顺序"),
    "prompt_logprobs": ("prompt_logprobs", "prompt_logprobs"),
    "nothing": ("nothing", "没有"),
}


def prefix_never_hits(case: Case) -> Found | Abstention | None:
    shape = shape_of(case.load)
    hits = shape.hit_rate if shape else None
    if hits is not None and hits > _NEVER:
        return None
    if off := _off_by_flag(case):
        return _switched_off(case, off, shape)
    said = case.log.first(SWITCHED_OFF)
    if said is not None and (complains_of(case.context, "first token") or _ASKS.search(case.context.text("said"))):
        return _not_for_this_model(case, said.quote(), shape)
    pair = _two_requests(case)
    if pair is None:
        if hits is not None and _ASKS.search(case.context.text("said")):
            return Abstention(
                Words(
                    f"why the prefix cache hits {hits:.1%}: two sample requests as sent (context `requests`, with prompt or messages, cache_salt, lora) would show what differs first",
                    f"前缀缓存命中率为何是 {hits:.1%}：需要两个原样的请求样本（context 的 `requests`，含 prompt 或 messages、cache_salt、lora），以找出最先不同之处",
                )
            )
        return None
    index, other, overlap = pair
    block = _block_size(case)
    if overlap.alike >= _ALIKE and overlap.tokens < block and (short := _short_prompts(case, overlap, block, index, hits)):
        return short
    if overlap.kind == "nothing" or overlap.prefix_tokens >= max(4 * block, overlap.tokens // 2) or overlap.alike < _ALIKE:
        short = _short_prompts(case, overlap, block, index, hits) if overlap.kind == "nothing" else None
        return short or _thrash(case, overlap, shape)
    return _differs(case, shape, index, other, overlap, block)


def _differs(case: Case, shape: LoadShape | None, index: int, other: int, overlap: Overlap, block: int) -> Found:
    what, what_zh = _WHAT[overlap.kind]
    values = f" ({overlap.shown})" if overlap.shown else ""
    blocks = overlap.prefix_tokens // block
    tokens = overlap.tokens
    hits = shape.hit_rate if shape else None
    rate = f"The prefix cache hits {hits:.1%}" if hits is not None else "The prefix cache cannot hit"
    rate_zh = f"前缀缓存命中率 {hits:.1%}" if hits is not None else "前缀缓存无法命中"
    inside = overlap.kind in ("time", "id", "number", "text")
    where = f"at character {overlap.prefix} of about {overlap.shorter}, so {blocks} block(s) of {block} tokens are shared" if inside else "which keeps their blocks apart from the first on"
    where_zh = f"位于约 {overlap.shorter} 个字符中的第 {overlap.prefix} 个，因此只有 {blocks} 个 {block} token 的块可共享" if inside else "从第一个块起就互不共享"
    quotes = [case.context.quote(f"requests.{other}", f"differs from request {index} in {what}{values} at character {overlap.prefix}")]
    return Found(
        cause=Words(
            f"{rate} although {overlap.alike:.0%} of the words of two requests repeat: they first differ in {what}{values}, {where}. About {tokens:,} tokens are computed again each time."
            " The cache itself is on.",
            f"{rate_zh}，而两个请求有 {overlap.alike:.0%} 的词是重复的：最先不同的是{what_zh}{values}，{where_zh}。每次约重新计算 {tokens:,} 个 token。缓存本身是开启的。",
        ),
        evidence=[*quotes, *([shape.last.quote] if shape else [])],
        fixes=_remedies(overlap),
        verify=Words(
            "send the same system prompt twice with different questions: vllm:prefix_cache_hits_total grows and the hit rate is above 0 on the second request",
            "用同一系统提示词发送两个不同问题：第二个请求时 vllm:prefix_cache_hits_total 增长，命中率大于 0",
        ),
        confidence=0.92 if hits is not None else 0.75,
        weight="degraded",
        explains=("T11", "F3", "T10"),
    )


def _remedies(overlap: Overlap) -> list[Fix]:
    if overlap.kind == "cache_salt":
        return [Fix(Words("use one stable cache_salt per tenant instead of one per request", "每个租户使用一个固定的 cache_salt，而不是每个请求一个"), '"cache_salt": "tenant-a"')]
    if overlap.kind == "adapter":
        return [Fix(Words("send requests that share a prefix to the same adapter (or merge the adapters): each adapter has blocks of its own", "把共享前缀的请求发往同一适配器（或合并适配器）：每个适配器有各自的块"))]
    if overlap.kind == "tools":
        return [Fix(Words("send the tools in one fixed order (sorted by name) and serialised the same way, so that the prefix stays stable", "按固定顺序（如按名称排序）并以相同方式序列化工具，使前缀保持不变"))]
    if overlap.kind == "prompt_logprobs":
        return [Fix(Words("leave prompt_logprobs out of ordinary requests: with them the whole prompt is computed anew", "普通请求不要带 prompt_logprobs：带上它整个提示词都要重新计算"), '"prompt_logprobs": null')]
    what, what_zh = _WHAT[overlap.kind]
    fixes = [Fix(Words(f"move {what} behind the stable part of the prompt, best to the end of the last user message, so that the common prefix comes first", f"把{what_zh}移到提示词固定部分之后（最好放在最后一条用户消息末尾），让公共前缀排在最前"))]
    if overlap.kind == "time":
        fixes.append(Fix(Words("or round it: a date without the time of day changes the prefix once a day", "或对时间取整：只写日期不写时刻，前缀每天只变一次")))
    return fixes


def _two_requests(case: Case) -> tuple[int, int, Overlap] | None:
    """The pair of neighbours that agrees least at its start while its words repeat; None without two texts."""
    texts: list[tuple[int, Mapping[str, Any]]] = [
        (index, request) for index, request in enumerate(case.context.items("requests")) if isinstance(request, Mapping) and text_of(request)
    ][:8]
    pairs = [(a, b, overlap) for (a, one), (b, two) in pairwise(texts) if (overlap := overlap_of(one, two)) is not None]
    alike = [pair for pair in pairs if pair[2].alike >= _ALIKE]
    return min(alike or pairs, key=lambda pair: pair[2].prefix, default=None)


def _off_by_flag(case: Case) -> Fact[str] | None:
    given = case.launch.flags.get("no_enable_prefix_caching") or case.launch.flags.get("disable_radix_cache")
    if given:
        return given
    config = case.launch.config.get("enable_prefix_caching") or case.launch.flags.get("enable_prefix_caching")
    return config if config and config.value.lower() == "false" else None


def _switched_off(case: Case, off: Fact[str], shape: LoadShape | None) -> Found | None:
    pair = _two_requests(case)
    repeats = pair is not None and pair[2].alike >= _ALIKE
    asks = complains_of(case.context, "first token") or bool(_ASKS.search(case.context.text("said")))
    if not repeats and not asks:
        return None
    share = f" although {pair[2].alike:.0%} of the words of two requests repeat" if pair and repeats else ""
    share_zh = f"，而两个请求有 {pair[2].alike:.0%} 的词是重复的" if pair and repeats else ""
    return Found(
        cause=Words(
            f"Prefix caching was switched off at the start{share}: every prompt is computed in full. It is on by default.", f"启动时关闭了前缀缓存{share_zh}：每个提示词都要完整计算。默认是开启的。"
        ),
        evidence=[off.quote, *([shape.last.quote] if shape else [])],
        fixes=[Fix(Words("drop the flag that switches it off (--no-enable-prefix-caching) and restart; put what all prompts share first", "去掉关闭它的参数（--no-enable-prefix-caching）并重启；把各提示词的公共部分放在最前"))],
        verify=Words("send the same long prompt twice: vllm:prefix_cache_hits_total grows on the second request", "同一长提示词发送两次：第二次 vllm:prefix_cache_hits_total 增长"),
        confidence=0.85 if repeats else 0.65,
        weight="degraded",
        explains=("T11", "F3"),
    )


def _not_for_this_model(case: Case, quote: Quote, shape: LoadShape | None) -> Found:
    return Found(
        cause=Words(
            f"The engine switched prefix caching off for {case.launch.model or 'this model'}, because its layers (recurrent state or mixed attention) cannot reuse blocks here: every prompt is computed in full.",
            f"引擎对 {case.launch.model or '该模型'} 关闭了前缀缓存，因为其层（循环状态或混合注意力）在此无法复用块：每个提示词都要完整计算。",
        ),
        evidence=[quote, *([shape.last.quote] if shape else [])],
        fixes=[
            Fix(Words("use a version that caches prefixes of such models, with its mode for them", "使用支持此类模型前缀缓存的版本，并开启对应模式"), "--mamba-cache-mode align"),
            Fix(Words("or shorten the part that repeats; a model with attention only reuses it", "或缩短重复部分；纯注意力模型可以复用前缀")),
        ],
        verify=Words("the line is gone at the start, and vllm:prefix_cache_hits_total grows on the second equal request", "启动时该行消失，第二个相同请求时 vllm:prefix_cache_hits_total 增长"),
        confidence=0.75,
        weight="degraded",
        explains=("T11", "F3"),
    )


def _short_prompts(case: Case, overlap: Overlap, block: int, index: int, hits: float | None) -> Found | None:
    """Equal prompts that never hit: shorter than one block, of which only whole ones are kept."""
    tokens = overlap.tokens
    if hits is None or tokens >= 2 * block:
        return None
    return Found(
        cause=Words(
            f"The prompts repeat, but they have about {tokens} tokens and a block has {block}: only whole blocks are kept, so nothing can hit. This costs little time.",
            f"提示词是重复的，但只有约 {tokens} 个 token，而一个块是 {block} 个：只缓存完整的块，因此无法命中。这耗时很少。",
        ),
        evidence=[case.context.quote(f"requests.{index}", f"about {tokens} tokens, block size {block}")],
        fixes=[Fix(Words(f"to get hits put a common prefix of more than {2 * block} tokens (two blocks) first in every prompt; shorter prompts need nothing", f"若要命中，在每个提示词最前放超过 {2 * block} 个 token（两个块）的公共前缀；更短的提示词无需处理"))],
        verify=Words(f"a prompt of more than {2 * block} tokens sent twice: vllm:prefix_cache_hits_total grows", f"发送两次超过 {2 * block} 个 token 的提示词：vllm:prefix_cache_hits_total 增长"),
        confidence=0.75 if block > 64 else 0.65 if _ASKS.search(case.context.text("said")) else 0.5,
        weight="degraded",
    )


def _thrash(case: Case, overlap: Overlap, shape: LoadShape | None) -> Found | None:
    """A common prefix that is long enough, a full cache, and no hits: blocks are gone before the next request."""
    if shape is None or shape.usage is None or shape.usage < 0.9 or shape.hit_rate is None or overlap.prefix_tokens < 64:
        return None
    return Found(
        cause=Words(
            f"Requests share about {overlap.prefix_tokens} tokens at their start, yet the prefix cache hits {shape.hit_rate:.1%}: the KV cache is {shape.usage:.0%} full, so blocks are dropped before the next request needs them.",
            f"请求开头约有 {overlap.prefix_tokens} 个 token 相同，前缀缓存命中率却只有 {shape.hit_rate:.1%}：KV 缓存已用 {shape.usage:.0%}，块在下一个请求用到之前就被淘汰。",
        ),
        evidence=[shape.last.quote],
        fixes=[
            Fix(Words("give the cache room: an 8-bit KV cache holds twice as many tokens", "给缓存留出空间：8 位 KV 缓存可容纳两倍 token"), "--kv-cache-dtype fp8"),
            Fix(Words(f"or run fewer sequences: {shape.running:g} -> {max(1, int(shape.running * 0.75))}", f"或减少并发序列：{shape.running:g} -> {max(1, int(shape.running * 0.75))}"), f"--max-num-seqs {max(1, int(shape.running * 0.75))}"),
        ],
        verify=Words("the same load: KV cache usage below 90 % and a hit rate above 0", "相同负载：KV 缓存使用率低于 90%，命中率大于 0"),
        confidence=0.65,
        weight="degraded",
    )


def _block_size(case: Case) -> int:
    if hit := case.log.last(BIG_BLOCK):
        return int(hit.number("size"))
    return int(case.launch.number("block_size") or 16)


RULES: Final = (
    Rule(
        id="F4",
        proof="live",
        title=Words("The prefix cache never hits", "前缀缓存从不命中"),
        symptoms=Words("hit rate 0 although prompts repeat", "提示词重复，命中率却为 0"),
        why=Words(
            "something at the start of the prompt changes: clock, id, template date, cache_salt, adapter, order of tools; or prompts are shorter than a block, or the model cannot reuse blocks",
            "提示词开头有内容在变化：时间、ID、模板日期、cache_salt、适配器、工具顺序；或提示词不足一个块，或模型无法复用块",
        ),
        needs=Words("two sample requests", "两个请求样本"),
        remedy=Words("move the changing part to the end, a stable salt per tenant", "把变化的部分移到末尾，每个租户使用固定的 salt"),
        check=Words("hit rate above 0 on the second request", "第二个请求时命中率大于 0"),
        judge=prefix_never_hits,
        sees=(SWITCHED_OFF, BIG_BLOCK),
    ),
)
