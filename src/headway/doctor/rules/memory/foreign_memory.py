"""Memory of the device that somebody else holds (O3), and its twin on the CPU: a share of RAM that is not free (O4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.allocator import PIECES, OutOfMemory
from headway.doctor.facts.device import Gpu
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.memory.blame import blame, foreign_processes
from headway.doctor.rules.memory.cache_room import room_of
from headway.doctor.rules.memory.flag_names import flag
from headway.doctor.rules.memory.one_sequence import shortage_of
from headway.doctor.rules.memory.sizes import (
    all_ranks,
    asked_text,
    round_down,
    round_up,
    size_text,
    utilization,
    weights_gib,
)
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

FREE_ON_CARD: Final = sight(
    "on startup is less than desired GPU memory",
    pattern=r"Free memory on device(?: (?:\w+:)?(?P<device>\d+))? \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less than desired GPU memory utilization"
    r" \((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
)
WHILE_PROFILING: Final = sight(
    "Error in memory profiling",
    pattern=r"Error in memory profiling\. ?Initial free memory (?P<before>[\d.]+)(?P<unit> GiB)?,? current free memory (?P<after>[\d.]+)",
)
FREE_IN_RAM: Final = sight(
    "on startup is less than desired CPU memory",
    "on kv cache allocation is less than requested memory",
    pattern=r"Available memory on node (?P<node>\d+) \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on (?:startup is less than desired CPU memory utilization"
    r" \((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)|kv cache allocation is less than requested memory for kv \((?P<asked>[\d.]+) GiB\))",
)
_DESKTOP: Final = re.compile(r"xorg|xwayland|gnome|kwin|plasma|sddm|gdm|firefox|chrom|mutter|explorer\.exe|dwm", re.IGNORECASE)
_SPARE: Final = 0.5
_USEFUL_CACHE: Final = 1.0
_CACHE_OF_FREE: Final = 0.75
_UNKNOWN_MODEL: Final = 4.0  # GiB that are worth a try for a model of unknown size
_LEAST_FOREIGN: Final = 1.0


@dataclass(frozen=True, slots=True)
class Taken:
    """GiB. `holders`: (pid, name, GiB); `free` None = not said."""

    gpu: int
    total: float | None
    free: float | None
    foreign: float
    wanted: Words
    holders: tuple[tuple[int, str, float], ...]
    evidence: tuple[Quote, ...]


def taken_of(case: Case) -> Taken | None:
    """From the engine's refusal to start, from an allocator's message, or from a budget that others used up."""
    if hit := case.log.first(FREE_ON_CARD):
        gpu, total, free = int(hit["device"] or 0), hit.number("total"), hit.number("free")
        wanted = f"{hit['share']} x {total:.2f} = {hit.number('wanted'):.2f} GiB"
        holders, quotes = _holders(case, gpu)
        return Taken(gpu, total, free, total - free, Words(wanted, wanted), holders, (hit.quote(), *quotes))
    failure = blame(case)
    if failure is not None and failure.rule == "O3":
        oom = failure.oom
        listed, quotes = _holders(case, oom.gpu)
        names = {pid: name for pid, name, _ in listed}
        holders = tuple((pid, names.get(pid, ""), size) for pid, size in foreign_processes(case, oom)) or listed
        foreign = sum(size for _, _, size in holders) or oom.foreign_gib
        wanted = asked_text(oom.asked or 0.0)
        return Taken(oom.gpu, oom.total, oom.free, foreign, Words(wanted, wanted), holders, (oom.hit.quote(), *_named(case, oom), *quotes))
    room = room_of(case)
    if room is not None and room.fault == "foreign":
        holders, quotes = _holders(case, 0)
        return Taken(0, room.total, None, room.foreign, room.sum(), holders, (*room.quotes(case), *quotes))
    return _beside_a_short_cache(case)


def _beside_a_short_cache(case: Case) -> Taken | None:
    """Others hold what one sequence lacks, and the sum shows it inside the cap: cap - weights - cache is at least theirs."""
    short, memory, weights = shortage_of(case), case.memory, weights_gib(case)
    holders, quotes = _holders(case, 0)
    foreign = sum(size for _, _, size in holders)
    if short is None or short.needed is None or short.available is None or memory.total is None or weights is None:
        return None
    unexplained = utilization(case) * memory.total.value - weights - short.available
    if all_ranks(case.launch) > 1 or foreign < _LEAST_FOREIGN or unexplained < foreign - _SPARE or short.available + foreign < short.needed:
        return None
    wanted = Words(
        f"inside the cap of {utilization(case):g} x {memory.total.value:.2f} GiB they leave {short.available:.2f} GiB of KV cache beside {weights:.2f} of weights, and one sequence of {short.length} tokens needs {short.needed:.2f}",
        f"在上限 {utilization(case):g} x {memory.total.value:.2f} GiB 内，除权重 {weights:.2f} GiB 外只给 KV 缓存留下 {short.available:.2f} GiB，而一个 {short.length} token 的序列需要 {short.needed:.2f} GiB",
    )
    return Taken(0, memory.total.value, None, foreign, wanted, holders, (short.hit.quote(), *quotes))


def somebody_else(case: Case) -> Found | None:
    """total - free is what others hold; a share that fits beside them is (free - 0.5) / total."""
    taken = taken_of(case)
    if taken is None:
        return changed_while_measured(case)
    who = ", ".join(f"process {pid}{f' ({name})' if name else ''} with {size:.2f} GiB" for pid, name, size in taken.holders)
    who_zh = "、".join(f"进程 {pid}{f'（{name}）' if name else ''}占 {size:.2f} GiB" for pid, name, size in taken.holders)
    age, age_zh = _age(case, taken)
    free = (
        f"; {size_text(taken.free)} of {taken.total:.2f} GiB are free, {taken.wanted.en} were wanted"
        if taken.free is not None and taken.total
        else f"; {taken.wanted.en}"
    )
    free_zh = (
        f"；{taken.total:.2f} GiB 中空闲 {size_text(taken.free)}，需要 {taken.wanted.zh}" if taken.free is not None and taken.total else f"；{taken.wanted.zh}"
    )
    en = f"GPU {taken.gpu}: {taken.foreign:.2f} GiB are held by somebody else{': ' + who if who else ''}{age}{free}. The model itself is not the problem; a shorter context does not free that memory."
    zh = f"GPU {taken.gpu} 上有 {taken.foreign:.2f} GiB 被别人占用{'：' + who_zh if who_zh else ''}{age_zh}{free_zh}。问题不在模型本身；缩短上下文也释放不了这部分显存。"
    return Found(
        cause=Words(en, zh),
        evidence=taken.evidence,
        fixes=_remedies(case, taken),
        verify=Words(
            f"`nvidia-smi --id={taken.gpu} --query-gpu=memory.free --format=csv`: at least "
            + (f"{utilization(case) * taken.total:.2f} GiB are free" if taken.total else "what the start asks for is free"),
            f"`nvidia-smi --id={taken.gpu} --query-gpu=memory.free --format=csv`：空闲不少于 "
            + (f"{utilization(case) * taken.total:.2f} GiB" if taken.total else "启动所需"),
        ),
        confidence=STATED if taken.holders or case.log.sees(FREE_ON_CARD) else 0.85,
        explains=("O2",),
    )


def changed_while_measured(case: Case) -> Found | None:
    """More is free after the profile run than before it: somebody else gave memory back meanwhile, so nothing was measured."""
    hit = case.log.first(WHILE_PROFILING)
    if hit is None:
        return None
    scale = 1.0 if hit["unit"] else 2.0**-30
    before, after = hit.number("before") * scale, hit.number("after") * scale
    return Found(
        cause=Words(
            f"While the engine measured its own memory, free memory rose from {before:.2f} to {after:.2f} GiB: another process on the same device gave back {after - before:.2f} GiB, so the measurement is void. The model is not too large.",
            f"引擎测量自身显存时，空闲显存从 {before:.2f} 增加到 {after:.2f} GiB：同卡的其他进程释放了 {after - before:.2f} GiB，测量因此作废。并不是模型太大。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(
                Words(
                    "wait until the other process has ended (or stop it), then start again; start engines on one card one after the other",
                    "等其他进程完全退出（或结束它）后再启动；同一张卡上的引擎要逐个启动",
                ),
                "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv",
            ),
            Fix(Words("or give this engine a GPU of its own", "或让该引擎独占一张 GPU")),
        ],
        verify=Words(
            "`nvidia-smi --query-gpu=memory.free --format=csv` twice, 10 s apart: the same value; then the start passes",
            "间隔 10 秒运行两次 `nvidia-smi --query-gpu=memory.free --format=csv`：数值不变；随后启动通过",
        ),
        confidence=STATED,
    )


def _remedies(case: Case, taken: Taken) -> list[Fix]:
    fixes = []
    engines = [pid for pid, name, _ in taken.holders if not _DESKTOP.search(name)]
    if engines:
        pids = " ".join(map(str, engines))
        words = Words(f"stop process {pids} if it is a leftover, or move it to another GPU", f"若进程 {pids} 是残留进程就结束它，或把它移到别的 GPU")
        fixes.append(Fix(words, f"kill {pids}"))
    elif taken.holders:
        pids = " ".join(str(pid) for pid, _, _ in taken.holders)
        fixes.append(Fix(Words(f"close the desktop (process {pids}) to free its memory", f"关闭桌面（进程 {pids}）以释放其显存")))
    else:
        fixes.append(
            Fix(
                Words(f"find out who holds GPU {taken.gpu} and stop that other process", f"查出是谁占用了 GPU {taken.gpu}，结束那个进程"),
                f"nvidia-smi --id={taken.gpu} --query-compute-apps=pid,name,used_memory --format=csv",
            )
        )
    if (other := _free_card(case, taken)) is not None:
        fixes.append(
            Fix(
                Words(
                    f"or use another GPU: {other.index} has {other.free:.1f} GiB free", f"或换用另一张 GPU：{other.index} 号空闲 {other.free:.1f} GiB"
                ),
                f"CUDA_VISIBLE_DEVICES={other.index}",
            )
        )
    if taken.total is None:
        return fixes
    room = room_of(case)
    if room is not None and room.fault == "foreign" and room.least is not None:
        share = room.least + room.foreign / taken.total
        if share <= 0.95:
            beside = Fix(
                Words("or raise the cap so that both fit: what others hold counts inside it", "或提高上限让两者都放得下：他人占用的显存也计入上限"),
                flag(case, "share", f"{round_up(share):g}"),
            )
            fixes.append(beside)
        return fixes
    if shortage_of(case) is not None:
        return fixes  # what others hold counts inside the cap: a smaller one only makes it worse
    free = taken.free if case.log.sees(FREE_ON_CARD) and taken.free is not None else taken.total - taken.foreign
    share, weights = round_down((free - _SPARE) / taken.total), weights_gib(case)
    if share * taken.total >= (weights + 1 + _USEFUL_CACHE if weights is not None else _UNKNOWN_MODEL):
        within = f"{share * taken.total:.1f} GiB"
        smaller = Fix(
            Words(
                f"or share the card, if model and cache fit into {within}: the shares of all engines on it stay below 1",
                f"若模型与缓存放得进 {within}，也可共用这张卡：同卡所有引擎的份额之和小于 1",
            ),
            flag(case, "share", f"{share:g}"),
        )
        fixes.insert(0 if not engines and taken.foreign < 0.15 * taken.total else len(fixes), smaller)
    return fixes


def _free_card(case: Case, taken: Taken) -> Gpu | None:
    needed = utilization(case) * (taken.total or 0)
    return next((gpu for gpu in case.device.gpus if gpu.index != taken.gpu and gpu.free is not None and gpu.free >= needed), None)


def _holders(case: Case, index: int) -> tuple[tuple[tuple[int, str, float], ...], list[Quote]]:
    gpu = case.device.gpu(index)
    if gpu is None or not gpu.processes:
        return (), []
    return gpu.processes, [case.context.quote(f"{gpu.path}.processes")]


def _age(case: Case, taken: Taken) -> tuple[str, str]:
    """Age and parent of a holder that the process list knows; parent 1 = left over from a run that ended."""
    pids = {pid for pid, _, _ in taken.holders}
    for row in case.context.items("host.processes"):
        if isinstance(row, dict) and isinstance(row.get("pid"), int) and row["pid"] in pids:
            orphan = row.get("ppid") == 1
            since = str(row.get("age") or row.get("started") or "")
            words = [f"running for {since}" if since else "", "left over from an earlier run (its parent is gone)" if orphan else ""]
            words_zh = [f"已运行 {since}" if since else "", "是先前运行的残留（父进程已不在）" if orphan else ""]
            joined, joined_zh = ", ".join(filter(None, words)), "，".join(filter(None, words_zh))
            return (f", {joined}", f"，{joined_zh}") if joined else ("", "")
    return "", ""


def _named(case: Case, oom: OutOfMemory) -> list[Quote]:
    """The piece of the allocator's message that names the other process."""
    for piece in case.log.hits(PIECES):
        at = piece.line.text.find("rocess ")
        if (
            piece.line.source == oom.hit.line.source
            and 0 <= piece.line.number - oom.hit.line.number <= 8
            and at > 0
            and "memory in use" in piece.line.text
        ):
            return [piece.line.quote(at - 1)]
    return []


def _cache_beyond_ram(hit: Hit, free: float, total: float) -> Found:
    """The weights are loaded by then: what is free is for the cache and the rest of the machine."""
    cache = max(1, int(free * _CACHE_OF_FREE))
    return Found(
        cause=Words(
            f"A KV cache of {hit.number('asked'):g} GiB was asked for, and {free:.2f} of {total:.2f} GiB RAM are free on node {hit['node']} after the weights were loaded.",
            f"要求 {hit.number('asked'):g} GiB 的 KV 缓存，而权重加载后节点 {hit['node']} 的 {total:.2f} GiB 内存中只有 {free:.2f} GiB 空闲。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(
                Words(f"give the cache at most {cache} of the {free:.1f} GiB that are free (also where --kv-cache-memory-bytes is set)", f"缓存最多 {cache} GiB（空闲 {free:.1f} GiB；若设置了 --kv-cache-memory-bytes 也同样调整）"),
                f"VLLM_CPU_KVCACHE_SPACE={cache}",
            ),
            Fix(Words("or free memory that other programs hold", "或释放其他程序占用的内存"), "ps aux --sort=-rss | head"),
        ],
        verify=Words("the start passes, and `vmstat 1` shows si and so at 0", "启动通过，且 `vmstat 1` 的 si、so 为 0"),
        confidence=STATED,
        title=Words("The KV cache asked for is larger than the free RAM", "要求的 KV 缓存大于空闲内存"),
    )


def greedy_share_of_ram(case: Case) -> Found | None:
    """A share below what is free, less the weights that pass through the page cache; or a fixed cache."""
    hit = case.log.first(FREE_IN_RAM)
    if hit is None:
        return None
    free, total = hit.number("free"), hit.number("total")
    if hit["asked"]:
        return _cache_beyond_ram(hit, free, total)
    weights = weights_gib(case) or 1.0
    share = round_down((free - _SPARE - weights) / total)
    cache = max(1, int((free - weights - 2) / 2))
    fixes = [
        Fix(
            Words(f"give the cache a fixed {cache} GiB of the {free:.1f} that are free", f"给缓存固定的 {cache} GiB（空闲 {free:.1f} GiB）"),
            f"VLLM_CPU_KVCACHE_SPACE={cache}",
        )
    ]
    if share >= 0.05:
        fixes.append(
            Fix(
                Words(
                    f"or a share below {free:.1f}/{total:.1f}, less {weights:.1f} GiB of weights in the page cache",
                    f"或把份额降到 {free:.1f}/{total:.1f} 以下，再减去页缓存中的权重 {weights:.1f} GiB",
                ),
                f"--gpu-memory-utilization {share:g}",
            )
        )
    return Found(
        cause=Words(
            f"The share {hit['share']} of {total:.2f} GiB RAM asks for {hit.number('wanted'):.2f} GiB on node {hit['node']}, and {free:.2f} GiB are free. RAM is shared with the"
            " system and the page cache, so the default of a GPU is too greedy here; no other machine is needed.",
            f"份额 {hit['share']} x {total:.2f} GiB 内存在节点 {hit['node']} 上要求 {hit.number('wanted'):.2f} GiB，而空闲 {free:.2f} GiB。内存要与系统和页缓存共用，GPU 的默认值在这里太贪；不需要换机器。",
        ),
        evidence=[hit.quote()],
        fixes=fixes,
        verify=Words("the start passes, and `vmstat 1` shows si and so at 0", "启动通过，且 `vmstat 1` 的 si、so 为 0"),
        confidence=STATED,
    )


RULES: Final = (
    Rule(
        id="O3",
        title=Words("Somebody else holds the device's memory", "显存被其他进程占用"),
        symptoms=Words(
            "`Free memory on device cuda:0 (a/b GiB) on startup is less than desired`, or out of memory with `Process N has X GiB memory in use` of a foreign pid",
            "`Free memory on device cuda:0 (a/b GiB) on startup is less than desired`，或显存不足信息中出现他人进程 `Process N has X GiB memory in use`",
        ),
        why=Words(
            "a leftover engine, a desktop, a second engine: shares are per engine and must add up to less than 1",
            "残留引擎、桌面或第二个引擎：份额按引擎计，之和须小于 1",
        ),
        needs=Words("processes per GPU with age and parent", "每张 GPU 的进程、其运行时间与父进程"),
        remedy=Words(
            "stop that process, take another GPU, or a share of (free - 0.5) / total", "结束该进程、换 GPU，或把份额设为（空闲 - 0.5）/ 总量"
        ),
        check=Words("`nvidia-smi`: free memory at least share x total", "`nvidia-smi`：空闲显存不少于份额 x 总量"),
        judge=somebody_else,
        sees=(WHILE_PROFILING, FREE_ON_CARD,),
        explains=("O1",),
    ),
    Rule(
        id="O4",
        title=Words("The share of RAM is too greedy", "内存份额过大"),
        symptoms=Words(
            "`Available memory on node N (a/b GiB) on startup is less than desired CPU memory utilization`",
            "`Available memory on node N (a/b GiB) on startup is less than desired CPU memory utilization`",
        ),
        why=Words("the default share (0.92) of a host's RAM is rarely free", "主机内存很少能空出默认的 0.92"),
        needs=Words("free and total RAM, weights", "空闲与总内存、权重"),
        remedy=Words("a smaller share, or a fixed VLLM_CPU_KVCACHE_SPACE", "更小的份额，或固定的 VLLM_CPU_KVCACHE_SPACE"),
        check=Words("the start passes and nothing swaps", "启动通过且不换页"),
        judge=greedy_share_of_ram,
        sees=(FREE_IN_RAM,),
    ),
)
