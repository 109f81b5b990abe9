"""The KV cache has no room: for any block (O1), or for one sequence (O2)."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.memory import SIZE, gib
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

ONE_REQUEST: Final = sight(
    "To serve at least one request",
    pattern=rf"max seq len \((?P<length>[\d,]+)\), \(?(?P<needed>{SIZE})(?: of memory for the KV cache| KV cache) is needed"
    rf".*?(?:available KV cache memory \(|and it has )(?P<available>{SIZE})",
)
_BLOCK: Final = 16


def one_sequence_does_not_fit(case: Case) -> Found | None:
    """x GiB for N tokens gives bytes per token; what there is, divided by it and rounded down to a block, is the context
    that fits."""
    hit = case.log.first(ONE_REQUEST)
    if hit is None:
        return None
    length, needed, available = int(hit.number("length")), gib(hit["needed"]), gib(hit["available"])
    fits = int(length * available / needed) // _BLOCK * _BLOCK
    per_token = needed * 2**20 / length
    return Found(
        cause=Words(
            f"One sequence of {length} tokens needs {needed:.2f} GiB of KV cache ({per_token:.1f} KiB per token) and {available:.2f} GiB"
            f" are there: at most {fits} tokens fit. A larger card is not needed for shorter contexts.",
            f"一个 {length} token 的序列需要 {needed:.2f} GiB KV 缓存（每 token {per_token:.1f} KiB），而只有 {available:.2f} GiB："
            f"最多容纳 {fits} 个 token。若不需要这么长的上下文，无需更大的卡。",
        ),
        evidence=[hit.quote()],
        fixes=[Fix(Words("limit the context to what fits", "把上下文限制到能容纳的长度"), f"--max-model-len {fits}")],
        verify=Words(
            "start again: the log shows `Maximum concurrency` of at least 1.00x", "重新启动：日志中 `Maximum concurrency` 不低于 1.00x"
        ),
        confidence=STATED,
    )


RULES: Final = (
    Rule(
        id="O2",
        title=Words("One sequence does not fit the KV cache", "单个序列放不进 KV 缓存"),
        symptoms=Words("`To serve at least one request with the model's max seq len`", "`To serve at least one request with the model's max seq len`"),
        why=Words("the model's context default is longer than the cache", "模型默认上下文比缓存长"),
        needs=Words("the sizes in the message", "报错信息中的大小"),
        remedy=Words("a shorter context, an 8-bit KV cache, or more memory for the cache", "缩短上下文、8 位 KV 缓存，或给缓存更多内存"),
        check=Words("the start passes with a concurrency of at least 1.00x", "启动通过，并发不低于 1.00x"),
        judge=one_sequence_does_not_fit,
        sees=(ONE_REQUEST,),
    ),
)
