"""What Headway's own engine says when its KV cache has no room: the sum of its share of RAM, or a cache below one block."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.memory import SIZE, gib
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.words import Words

SHARE_SUM: Final = sight(
    "no memory is left for the KV cache",
    pattern=rf"no memory is left for the KV cache: (?P<limit>{SIZE}) limit x (?P<share>[\d.]+) - (?P<to_load>{SIZE}) weights to load - (?P<own>{SIZE}) of this process",
)
BELOW_A_BLOCK: Final = sight(
    "and one block of",
    pattern=rf"the KV cache has (?P<has>{SIZE}) .*one block of (?P<tokens>\d+) tokens takes (?P<block>{SIZE}).*?--kv-cache-memory-bytes (?P<least>\d+)",
)
SIGHTS: Final = (SHARE_SUM, BELOW_A_BLOCK)
_USEFUL_TOKENS: Final = 4096


def cache_below_a_block(case: Case) -> Found | None:
    """The null block and one more are the least; a cache for one sequence is what is useful."""
    hit = case.log.first(BELOW_A_BLOCK)
    if hit is None:
        return None
    tokens, block = int(hit.number("tokens")), gib(hit["block"])
    length = int(case.launch.number("max_model_len") or _USEFUL_TOKENS)
    wanted = max(int(hit["least"]), int((-(-length // tokens) + 1) * block * 2**30))
    if "--kv-cache-memory-bytes)" not in hit.line.text:
        return _machine_is_full(hit, tokens)
    return Found(
        cause=Words(
            f"The KV cache has {hit['has']}, and one block of {tokens} tokens takes {hit['block']}: not even two blocks fit. The model is not too large; the cache was made too small.",
            f"KV 缓存只有 {hit['has']}，而一个 {tokens} token 的块要 {hit['block']}：连两个块都放不下。模型并不过大，是缓存设得太小。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(
                Words(
                    f"give the cache room for a sequence of {length} tokens (at least {hit['least']} bytes)",
                    f"给缓存留出一个 {length} token 序列的空间（至少 {hit['least']} 字节）",
                ),
                f"--kv-cache-memory-bytes {wanted}",
            )
        ],
        verify=Words(
            "start again: `CPU KV cache size: ... tokens` with a concurrency of at least 1.00x",
            "重新启动：出现 `CPU KV cache size: ... tokens`，并发不低于 1.00x",
        ),
        confidence=STATED,
    )


def _machine_is_full(hit: Hit, tokens: int) -> Found:
    """Nobody set the cache's size: what is left of the machine's memory beside the weights is not enough for it."""
    return Found(
        cause=Words(
            f"The machine's memory is used up before the KV cache: {hit['has']} are left for it, and one block of {tokens} tokens takes {hit['block']}."
            " Asking for a larger cache cannot help, since the memory is not there.",
            f"在分配 KV 缓存之前内存已耗尽：只剩 {hit['has']} 可用，而一个 {tokens} token 的块要 {hit['block']}。要求更大的缓存没有用，因为内存不存在。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(Words("end what else uses the memory, or raise the container's limit", "结束其他占用内存的进程，或提高容器上限"), "free -g; ps aux --sort=-rss | head"),
            Fix(Words("see which format of the weights, or which smaller model, fits this machine", "查看哪种权重格式或更小的模型适合这台机器"), "headway plan"),
        ],
        verify=Words("`headway plan` for this model says that it fits", "`headway plan` 显示该模型可以容纳"),
        confidence=STATED,
    )
