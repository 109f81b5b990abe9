"""Out of memory between the cache and the first request: sampler warm-up (O6), graph capture (O7), a cap at the rim (O11)."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.memory.blame import RIM, blame
from headway.doctor.rules.memory.flag_names import flag
from headway.doctor.rules.memory.moment import CAPTURE, SAMPLER
from headway.doctor.rules.memory.sizes import asked_text, utilization
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

_COPIES: Final = 3  # logits, their sorted copy, probabilities
_VOCABULARY: Final = 152064  # when the configuration is not known: of the Qwen family, a large one
_SAFE: Final = 0.95


def sampler_warm_up(case: Case) -> Found | None:
    """N sequences x vocabulary x 4 bytes x about three copies, outside the cap."""
    hit = case.log.first(SAMPLER)
    if hit is None:
        return None
    requests = int(hit.number("requests"))
    vocabulary = case.model.config.get("vocab_size")
    known = isinstance(vocabulary, int)
    size = requests * (vocabulary if isinstance(vocabulary, int) else _VOCABULARY) * 4 * _COPIES / 2**30
    fewer = 64 if requests > 64 else max(1, requests // 4)
    share = utilization(case)
    lower = f"{min(share - 0.05, _SAFE):.2f}"
    return Found(
        cause=Words(
            f"Warming up the sampler makes the logits of {requests} sequences at once: {requests} x {vocabulary if known else f'a vocabulary of about {_VOCABULARY}'} x 4 B x about {_COPIES} ="
            f" {size:.2f} GiB beside weights and cache at a share of {share:g}. The weights fit; a higher share leaves less room.",
            f"预热采样器时一次生成 {requests} 个序列的 logits：{requests} x {vocabulary if known else f'约 {_VOCABULARY} 的词表'} x 4 B x 约 {_COPIES} = {size:.2f} GiB，"
            f"这在份额 {share:g} 的权重和缓存之外。权重放得下；份额越高余量越小。",
        ),
        evidence=[hit.quote(), *(oom.hit.quote() for oom in case.out_of_memory[:1])],
        fixes=[
            Fix(
                Words(f"fewer sequences at once: {requests} -> {fewer}", f"减少同时处理的序列数：{requests} -> {fewer}"),
                flag(case, "sequences", fewer),
            ),
            Fix(Words("if that is not enough, leave more beside the cap", "若仍不够，在上限之外多留一些"), flag(case, "share", lower)),
        ],
        verify=Words("start again: the warm-up passes and `init engine` is logged", "重新启动：预热通过，日志出现 `init engine`"),
        confidence=STATED,
    )


def graph_capture(case: Case) -> Found | None:
    failure = blame(case)
    return _beside_the_cap(case) if failure is not None and failure.rule == "O7" else None


def cap_at_the_rim(case: Case) -> Found | None:
    failure = blame(case)
    return _beside_the_cap(case) if failure is not None and failure.rule == "O11" else None


def _beside_the_cap(case: Case) -> Found | None:
    """Graphs, the driver's context and spikes live outside share x total; what is left there is total x (1 - share)."""
    failure = blame(case)
    if failure is None:
        return None
    oom, share = failure.oom, utilization(case)
    beside = (1 - share) * oom.total if oom.total else None
    lower = f"{min(share - (0.04 if share >= RIM else 0.03), _SAFE):.2f}"
    what = {
        "capture": ("while CUDA graphs were captured", "在捕获 CUDA graph 时"),
        "cache": ("while the cache was set up", "在建立缓存时"),
    }.get(failure.moment, ("at the first load", "在首批请求时"))
    pools = f"; {asked_text(oom.pools)} sit in graph pools" if oom.pools else ""
    pools_zh = f"；graph 池占 {asked_text(oom.pools)}" if oom.pools else ""
    left = f": {share:g} x {oom.total:.2f} GiB leaves {beside:.2f} GiB" if oom.total and beside is not None else f" at a share of {share:g}"
    left_zh = f"：{share:g} x {oom.total:.2f} GiB 之外只剩 {beside:.2f} GiB" if oom.total and beside is not None else f"（份额 {share:g}）"
    capture = case.log.last(CAPTURE)
    return Found(
        cause=Words(
            f"Memory ran out {what[0]}, after weights and cache had found their place. Graphs, driver context and first steps (0.5 to 1 GiB) live beside the cap{left}{pools}."
            " The cap is what is too high; raising it makes it worse.",
            f"显存{what[1]}耗尽，此前权重和缓存已就位。CUDA graph、驱动上下文和首批计算（0.5 到 1 GiB）在上限之外{left_zh}{pools_zh}。问题是上限过高，再调高只会更糟。",
        ),
        evidence=[
            oom.hit.quote(),
            *([capture.quote()] if capture and failure.moment == "capture" else []),
            *([case.memory.utilization.quote] if case.memory.utilization else []),
        ],
        fixes=[
            Fix(Words(f"lower the cap from {share:g} to {lower}", f"把上限从 {share:g} 降到 {lower}"), flag(case, "share", lower)),
            Fix(
                Words("capture graphs for fewer batch sizes, also by admitting fewer sequences", "减少捕获的批大小，也可减少序列数"),
                "--cuda-graph-max-bs 16"
                if case.launch.program == "sglang"
                else "--max-num-seqs 64 --compilation-config '{\"cudagraph_capture_sizes\": [1, 2, 4, 8, 16, 32, 64]}'",
            ),
            Fix(
                Words("as the last resort run without graphs (slower at small batches)", "最后手段：不用 graph 运行（小批量更慢）"),
                flag(case, "eager"),
            ),
        ],
        verify=Words(
            "`Graph capturing finished ... took X GiB` appears, and a burst of requests passes"
            if failure.moment == "capture"
            else "the start passes, and so does a burst of requests",
            "出现 `Graph capturing finished ... took X GiB`，并能承受一波突发请求"
            if failure.moment == "capture"
            else "启动通过，并能承受一波突发请求",
        ),
        confidence=0.9 if failure.moment == "capture" or share >= RIM else 0.75,
    )


RULES: Final = (
    Rule(
        id="O6",
        title=Words("Sampler warm-up does not fit", "采样器预热放不下"),
        symptoms=Words(
            "`CUDA out of memory occurred when warming up sampler with N dummy requests`",
            "`CUDA out of memory occurred when warming up sampler with N dummy requests`",
        ),
        why=Words("the logits of all sequences are made at once", "一次生成所有序列的 logits"),
        needs=Words("N, the vocabulary, the share", "N、词表大小、份额"),
        remedy=Words("--max-num-seqs 64 first, then a share lower by 0.05", "先 --max-num-seqs 64，再把份额降 0.05"),
        check=Words("the warm-up passes", "预热通过"),
        judge=sampler_warm_up,
        sees=(SAMPLER,),
        explains=("O1", "O5", "O7", "O9", "O11"),
    ),
    Rule(
        id="O7",
        title=Words("Graph capture does not fit", "CUDA graph 捕获放不下"),
        symptoms=Words(
            "out of memory after `Capturing CUDA graphs`; `allocated in private pools (e.g., CUDA Graphs)`",
            "`Capturing CUDA graphs` 之后显存不足；`allocated in private pools (e.g., CUDA Graphs)`",
        ),
        why=Words("graphs live outside the cap", "CUDA graph 在上限之外"),
        needs=Words("total, share, pools", "总量、份额、池大小"),
        remedy=Words(
            "a share lower by 0.02 to 0.05, fewer capture sizes, --enforce-eager as last resort",
            "份额降 0.02 到 0.05、减少捕获尺寸，最后手段 --enforce-eager",
        ),
        check=Words("`Graph capturing finished ... took X GiB`", "`Graph capturing finished ... took X GiB`"),
        judge=graph_capture,
    ),
    Rule(
        id="O11",
        title=Words("The cap leaves no room for CUDA graphs and the driver", "上限过高，没给 CUDA graph 和驱动留余量"),
        symptoms=Words("a share of 0.97 or more, and out of memory at capture or at the first load", "份额 0.97 或以上，捕获或首批请求时显存不足"),
        why=Words("context, driver and graphs need 0.5 to 1 GiB beside the cap", "上下文、驱动和 graph 需要上限之外 0.5 到 1 GiB"),
        needs=Words("total, share", "总量、份额"),
        remedy=Words("at most 0.95", "最多 0.95"),
        check=Words("capture and a burst pass", "捕获与突发均通过"),
        judge=cap_at_the_rim,
    ),
)
