"""One rank has less memory than the others and rules them all (O13)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.device import Gpu
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.memory.blame import blame, foreign_processes
from headway.doctor.rules.memory.cache_room import NO_BLOCKS
from headway.doctor.rules.memory.one_sequence import shortage_of
from headway.doctor.rules.memory.sizes import all_ranks, tensor_ranks
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

UNBALANCED: Final = sight("memory capacity is unbalanced")  # SGLang
_RATIO: Final = 1.2  # equal cards of equal ranks differ by less
_NO_LAYERS_DIFFER_SO: Final = 6.0
_STAGES_RATIO: Final = 2.0  # stages hold unequal layers, the last one the head
_GIB: Final = 1.0


@dataclass(frozen=True, slots=True)
class Sick:
    """The rank with the least, and the best one: process name, GiB left for the cache."""

    rank: int
    name: str
    least: float | None
    most: float | None
    evidence: tuple[Quote, ...]


def smallest_rank_rules(case: Case) -> Found | None:
    sick = _by_cache(case) or _by_allocator(case) or _by_message(case)
    if sick is None:
        return None
    gpu = case.device.gpu(sick.rank)
    holders = gpu.processes if gpu else ()
    failure = blame(case)
    if not holders and failure is not None:
        holders = tuple((pid, "", size) for pid, size in foreign_processes(case, failure.oom))
    who = ", ".join(f"process {pid}{f' ({name})' if name else ''} with {size:.2f} GiB" for pid, name, size in holders)
    who_zh = "、".join(f"进程 {pid}{f'（{name}）' if name else ''}占 {size:.2f} GiB" for pid, name, size in holders)
    used, used_zh = _used(case, gpu)
    compared = (
        f"{sick.least:.2f} GiB for its cache where another has {sick.most:.2f}"
        if sick.least is not None and sick.most is not None
        else "less memory than the others"
    )
    compared_zh = (
        f"留给缓存的只有 {sick.least:.2f} GiB，而别的 rank 有 {sick.most:.2f} GiB"
        if sick.least is not None and sick.most is not None
        else "可用显存比其他 rank 少"
    )
    fatal = shortage_of(case) is not None or case.log.sees(NO_BLOCKS) or bool(case.out_of_memory) or case.log.sees(UNBALANCED)
    return Found(
        cause=Words(
            f"Rank {sick.rank} (GPU {sick.rank}, cuda:{sick.rank}) has {compared}; the smallest rank rules all.{used}{f' On that GPU: {who}.' if who else ''}"
            " The context need not be cut to what the sick rank leaves, and the weights are not too large.",
            f"rank {sick.rank}（GPU {sick.rank}，cuda:{sick.rank}）{compared_zh}；最小的 rank 决定全体。{used_zh}{f'该 GPU 上有：{who_zh}。' if who else ''}不必把上下文砍到这个 rank 剩下的大小，权重也不算过大。",
        ),
        evidence=[*sick.evidence, *([case.context.quote(f"{gpu.path}.processes")] if gpu and gpu.processes else [])],
        fixes=_remedies(case, sick, holders),
        verify=Words(
            "start again: the `Available KV cache memory` lines of all ranks are equal within a few percent",
            "重新启动：各 rank 的 `Available KV cache memory` 相差在百分之几以内",
        ),
        confidence=STATED if sick.least is not None or holders else 0.8,
        weight="fatal" if fatal else "degraded",
    )


def _remedies(case: Case, sick: Sick, holders: tuple[tuple[int, str, float], ...]) -> list[Fix]:
    fixes = []
    if holders:
        pids = " ".join(str(pid) for pid, _, _ in holders)
        fixes.append(
            Fix(
                Words(f"free GPU {sick.rank}: stop process {pids} or move it elsewhere", f"释放 GPU {sick.rank}：结束进程 {pids} 或移到别处"),
                f"kill {pids}",
            )
        )
    else:
        fixes.append(
            Fix(
                Words(f"see who uses GPU {sick.rank} and free it", f"查看谁在用 GPU {sick.rank} 并释放"),
                f"nvidia-smi --id={sick.rank} --query-compute-apps=pid,name,used_memory --format=csv",
            )
        )
    ranks = all_ranks(case.launch)
    free = sorted((gpu for gpu in case.device.gpus if gpu.free is not None and gpu.index != sick.rank), key=lambda gpu: (-(gpu.free or 0), gpu.index))
    if len(free) >= ranks > 1:
        chosen = ",".join(str(index) for index in sorted(gpu.index for gpu in free[:ranks]))
        fixes.append(Fix(Words("or choose equal GPUs that are free", "或选用同样空闲的 GPU"), f"CUDA_VISIBLE_DEVICES={chosen}"))
    else:
        fixes.append(Fix(Words("or choose GPUs of equal size that nobody else uses", "或选用大小相同且无人使用的 GPU")))
    return fixes


def _used(case: Case, gpu: Gpu | None) -> tuple[str, str]:
    others = [other.used for other in case.device.gpus if gpu is not None and other.index != gpu.index and other.used is not None]
    if gpu is None or gpu.used is None or not others:
        return "", ""
    if gpu.memory and all(other.memory and other.memory > gpu.memory + _GIB for other in case.device.gpus if other.index != gpu.index):
        return f" It is a smaller card ({gpu.memory:.1f} GiB).", f"它是较小的卡（{gpu.memory:.1f} GiB）。"
    return f" {gpu.used:.1f} GiB of it were in use, {min(others):.1f} on others.", f"该卡已用 {gpu.used:.1f} GiB，其他卡 {min(others):.1f} GiB。"


def _by_cache(case: Case) -> Sick | None:
    """From the cache lines of the last start, one per worker."""
    last = {name: fact for name, fact in case.memory.per_worker if name}
    if len(last) < 2:
        return None
    ordered = sorted(last.items(), key=lambda item: item[1].value)
    (name, least), (_, most) = ordered[0], ordered[-1]
    ratio = _RATIO
    if all_ranks(case.launch) > tensor_ranks(case.launch) or any("PP" in worker for worker in last):
        # Stages hold unequal layers, and the smallest decides; only what layers do not explain has somebody to blame.
        ratio = _STAGES_RATIO if _occupied(case) else _NO_LAYERS_DIFFER_SO
    if most.value - least.value < _GIB or most.value < ratio * max(least.value, 0.01):
        return None
    return Sick(rank_of(name, list(last)), name, least.value, most.value, (least.quote, most.quote))


def _occupied(case: Case) -> bool:
    """Somebody uses a card, or the cards are unequal."""
    used = [gpu.used for gpu in case.device.gpus if gpu.used is not None]
    sizes = [gpu.memory for gpu in case.device.gpus if gpu.memory is not None]
    return any(max(values) - min(values) >= _GIB for values in (used, sizes) if values)


def _by_allocator(case: Case) -> Sick | None:
    failure = blame(case)
    if failure is None or failure.rule != "O13":
        return None
    oom = failure.oom
    return Sick(oom.gpu if oom.gpu else rank_of(oom.hit.line.process, []), oom.hit.line.process, None, None, (oom.hit.quote(),))


def _by_message(case: Case) -> Sick | None:
    hit = case.log.first(UNBALANCED)
    if hit is None:
        return None
    fullest = max((gpu for gpu in case.device.gpus if gpu.used is not None), key=lambda gpu: gpu.used or 0, default=None)
    return Sick(fullest.index if fullest else rank_of(hit.line.process, []), hit.line.process, None, None, (hit.quote(),))


def rank_of(name: str, names: list[str]) -> int:
    """`Worker_TP1`, `Worker_PP1_TP0`, `VllmWorker rank=1`, `rank1`, `VllmWorker-1` -> the rank; else the place in the log."""
    stage = re.search(r"PP(\d+)_TP(\d+)", name)
    if stage:
        ranks = 1 + max((int(other[2]) for one in names if (other := re.search(r"PP(\d+)_TP(\d+)", one))), default=0)
        return int(stage[1]) * ranks + int(stage[2])
    found = re.search(r"(?:TP|PP|rank[ =]?|Worker[-_]|DP)(\d+)", name)
    if found:
        return int(found[1])
    return names.index(name) if name in names else 0


RULES: Final = (
    Rule(
        id="O13",
        title=Words("Unequal memory among ranks", "各 rank 的显存不等"),
        symptoms=Words(
            "`Available KV cache memory` differs per worker, or one rank only runs out",
            "各 worker 的 `Available KV cache memory` 不同，或只有一个 rank 显存不足",
        ),
        why=Words("the smallest rank rules all", "最小的 rank 决定全体"),
        needs=Words("processes on that GPU", "该 GPU 上的进程"),
        remedy=Words("free it, or choose equal GPUs", "释放它，或选用相同的 GPU"),
        check=Words("equal lines", "各行相等"),
        judge=smallest_rank_rules,
        sees=(UNBALANCED,),
        explains=("O1", "O2", "O3", "O10", "D20"),
    ),
)
