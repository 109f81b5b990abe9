"""Memory of the host ran out, and the kernel, or an allocator, ended a process without a traceback (O15)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.memory import gib
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.memory.sizes import all_ranks, whole_weights_gib
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

STATED_KILL: Final = sight(
    "OOMKilled", "oom-killer", "oom-kill", "Memory cgroup out of memory", "Out of memory: Killed process", "oom_reaper", "OOM killer", "killed due to memory pressure",
    "running low on memory",
    pattern=r"OOMKilled(?!\"?[:=] ?\"?false)|oom-killer|oom-kill|Memory cgroup out of memory|Out of memory: Killed process|oom_reaper|OOM killer|killed due to memory pressure"
    r"|node running low on memory",
)  # fmt: skip
SIGKILL: Final = sight(
    " 137", "=137", "(137", ":137", "code -9", "code: -9", "exitcode=-9", "SIGKILL", "signal 9", "worker died", "status=9/KILL", "Killed",
    pattern=r"[Ee]xit(?:ed)?[ _]?(?:[Cc]ode|[Ss]tatus|with code|with status)?[:= ]+(?:with code )?\(?(?:137|-9)\b|\bcode:? -9\b|exitcode=-9|SIGKILL|signal:? 9\b|worker died(?! with exit ?code:? (?!-?9\b|137\b)-?\d)|status=9/KILL|^Killed(?:$| +[a-z])|: \d+ Killed",
)  # fmt: skip
REFUSED: Final = sight(
    "DefaultCPUAllocator", "std::bad_alloc", "MemoryError", "Cannot allocate memory", "failed to allocate CPU buffer", "unable to allocate CPU buffer", "insufficient memory (attempted",
    pattern=r"DefaultCPUAllocator: (?:can't allocate|not enough) memory(?:.*?tried to allocate (?P<bytes>\d+) bytes)?|std::bad_alloc|^(?:numpy\.\S+\.)?_?\w*MemoryError|\[Errno 12\] Cannot allocate memory"
    r"|failed to allocate CPU buffer(?: of size (?P<size>\d+))?|unable to allocate CPU buffer|insufficient memory \(attempted to allocate",
)  # fmt: skip
LIMIT: Final = sight(
    "memory:",
    "limit ",
    "Memory limit",
    '"Memory": ',
    pattern=r"\"Memory\": (?P<inspected>\d{6,})|^\s*memory:\s+(?P<count>\d+(?:\.\d+)?)(?P<unit>[KMGT]i?)?\s*$|memory: usage (?P<usage>\d+)kB, limit (?P<kb>\d+)kB",
)
RESIDENT: Final = sight("anon-rss", pattern=r"Killed process (?P<pid>\d+) \((?P<name>[^)]*)\).*?anon-rss:(?P<kb>\d+)kB")
BOUND: Final = sight("CONSTRAINT_MEMORY_POLICY", "CONSTRAINT_CPUSET")
PROBE: Final = sight("iveness probe failed", "failed liveness probe", "tartup probe failed")
STOPPED: Final = sight(
    "SIGTERM",
    "signal 15",
    "Shutting down",
    "Stopping container",
    "Gracefully stopping",
    "docker stop",
    "Received sigquit from a child",
    pattern=r"SIGTERM|signal 15\b|Shutting down|Stopping container|Gracefully stopping|docker stop|Received sigquit from a child",
)
FILE_SIZE: Final = sight("file size   =", "model size       =", pattern=r"(?:file|model) size +=? +(?P<size>[\d.]+ [KMGT]i?B)")
NODE: Final = sight("where the task was running was", pattern=r"task was running was (?P<used>[\d.]+)GB ?/ ?(?P<all>[\d.]+)GB")  # Ray
SHARDS: Final = sight("checkpoint shards:", pattern=r"checkpoint shards: +(?P<percent>\d+)%")
SIGHTS: Final = (STATED_KILL, SIGKILL, REFUSED, LIMIT, RESIDENT, BOUND, PROBE, STOPPED, SHARDS, FILE_SIZE, NODE)

_UNITS: Final = {
    "Ki": 2**-20,
    "Mi": 2**-10,
    "Gi": 1.0,
    "Ti": 1024.0,
    "K": 1e3 / 2**30,
    "M": 1e6 / 2**30,
    "G": 1e9 / 2**30,
    "T": 1e12 / 2**30,
    "": 2**-30,
}
_PROGRAM_GIB: Final = 4.0  # Python, CUDA libraries, pinned buffers
_SLACK: Final = 1.15
_CRASHES: Final = (-4, -6, -7, -11)
Way = Literal["kubernetes", "docker", "host"]


@dataclass(frozen=True, slots=True)
class Death:
    """`sure`: the kernel, or an allocator, says that it was memory; else only the signal is known."""

    sure: bool
    evidence: tuple[Quote, ...]
    first: Hit | None


def death_of(case: Case) -> Death | None:
    kills = case.context.number("host.cgroup.oom_kill")
    hits = case.log.hits(STATED_KILL, REFUSED)
    signals = case.log.hits(SIGKILL)
    killed = any(code in (-9, 137) for code in case.exceptions.codes.values())
    coded = [hit for hit in case.exceptions.umbrellas if "-9" in hit.line.text or "137" in hit.line.text][:1] if killed and not signals else []
    evidence = tuple(hit.quote() for hit in (*hits[:3], *signals[:3], *coded))
    if kills and kills > 0 and not (case.startup.ready and not hits and not signals and not case.exceptions.umbrellas):
        return Death(True, (*evidence, case.context.quote("host.cgroup.oom_kill", f"oom_kill: {kills:.0f}")), next(iter(signals or hits), None))
    if hits:
        return Death(True, evidence, hits[0])
    if not signals and not killed:
        return None
    crashed = any(code in _CRASHES for code in case.exceptions.codes.values())
    if case.log.sees(PROBE) or kills == 0 or _stopped_before(case, signals) or (crashed and not killed):
        return None  # something else sent the signal, or it is another signal
    return Death(False, evidence, signals[0] if signals else None)


def _stopped_before(case: Case, signals: Sequence[Hit]) -> bool:
    """Somebody asked it to stop first: the kill only ended a stop that took too long."""
    return bool(signals) and any(
        hit.line.source == signals[0].line.source and hit.line.number < signals[0].line.number for hit in case.log.hits(STOPPED)
    )


def killed_for_memory(case: Case) -> Found | None:
    """Weights x copies + cache against the limit."""
    death = death_of(case)
    if death is None:
        return None
    limit, whose, quotes = _limit(case)
    weights = case.model.stored.value if case.model.stored else whole_weights_gib(case)
    if (file := case.log.last(FILE_SIZE)) is not None:
        weights = gib(file["size"])
    ranks, extra, extra_words = all_ranks(case.launch), *_extra(case)
    needed = None if weights is None else weights * _SLACK + extra + _PROGRAM_GIB
    by_copies = needed is not None and limit is not None and needed <= limit and weights is not None and ranks > 1
    if by_copies and weights is not None:
        needed = weights * ranks + extra + _PROGRAM_GIB
    sum_, sum_zh = _sum(weights, ranks, extra_words, limit, whose)
    resident = case.log.last(RESIDENT)
    peak = f" Process {resident['pid']} ({resident['name']}) had {resident.number('kb') / 2**20:.1f} GiB resident." if resident else ""
    peak_zh = f"进程 {resident['pid']}（{resident['name']}）常驻 {resident.number('kb') / 2**20:.1f} GiB。" if resident else ""
    node = " The process was bound to a part of the memory (NUMA node or cpuset), so only that part counted." if case.log.sees(BOUND) else ""
    refused = case.log.sees(REFUSED) and not case.log.sees(STATED_KILL)
    en = "An allocation in host RAM was refused" if refused else "A process was killed (signal 9, exit code 137)" + (" because host RAM, or the container's memory limit, was exceeded" if death.sure else
         ": most likely for host RAM, since nothing else was printed")  # fmt: skip
    zh = (
        "主机内存分配被拒"
        if refused
        else "进程被杀（信号 9，退出码 137）" + ("，因为超出了主机内存或容器内存上限" if death.sure else "：没有其他输出，最可能是主机内存不足")
    )
    return Found(
        cause=Words(
            f"{en}{_when(case).en}.{sum_}{peak}{node} GPU settings are unrelated, and the warnings of other processes afterwards are consequences.",
            f"{zh}{_when(case).zh}。{sum_zh}{peak_zh}GPU 参数与此无关，其后其他进程的告警都是后果。",
        ),
        evidence=(*death.evidence[:6], *quotes),
        fixes=_remedies(case, needed, limit, ranks, extra, weights if by_copies else None),
        verify=Words(
            "`cat /sys/fs/cgroup/memory.events` (oom_kill) and `journalctl -k | grep -i oom`: nothing new during the next start",
            "`cat /sys/fs/cgroup/memory.events`（oom_kill）与 `journalctl -k | grep -i oom`：下次启动期间没有新增",
        ),
        confidence=STATED if death.sure else 0.8,
        at=death.first.line.number if death.first else None,
    )


def _limit(case: Case) -> tuple[float | None, str, list[Quote]]:
    """The smaller of what the container and the host allow, whose it is, and where it stands."""
    if (given := case.context.number("host.cgroup.memory_max_gib")) is not None:
        return given, "container", [case.context.quote("host.cgroup.memory_max_gib", f"memory_max_gib: {given:g}")]
    if (node := case.log.first(NODE)) is not None:
        return node.number("all"), "host", [node.quote()]
    for hit in case.log.hits(LIMIT):
        size = hit.number("inspected") / 2**30 if hit["inspected"] else hit.number("kb") / 2**20 if hit["kb"] else hit.number("count") * _UNITS.get(hit["unit"], 1.0)
        if size >= 0.05:
            return size, "container", [hit.quote()]
    if (ram := case.context.number("host.ram_gib")) is not None:
        return ram, "host", [case.context.quote("host.ram_gib", f"ram_gib: {ram:g}")]
    return None, "", []


def _extra(case: Case) -> tuple[float, str]:
    """GiB of RAM for caches: of the CPU backend, of swapped blocks, of weights that stay in RAM."""
    ranks = all_ranks(case.launch)
    cache = case.context.number("env.VLLM_CPU_KVCACHE_SPACE") or 0.0 if case.device.is_cpu else 0.0
    if case.device.is_cpu and not cache and case.launch.program == "vllm":
        cache = 4.0
    swap = (case.launch.number("swap_space") or 0.0) * ranks
    offload = (case.launch.number("cpu_offload_gb") or 0.0) * ranks
    words = "".join(f" + {size:g} {name}" for size, name in ((cache, "KV cache"), (swap, "swap space"), (offload, "offloaded weights")) if size)
    return cache + swap + offload, words


def _sum(weights: float | None, ranks: int, extra: str, limit: float | None, whose: str) -> tuple[str, str]:
    size = "" if limit is None else f"{round(limit, 1):g}"
    bound = f" against the {whose} limit of {size} GiB" if size else ""
    bound_zh = f"，而{'容器' if whose == 'container' else '主机'}上限为 {size} GiB" if size else ""
    if weights is None:
        return (f" The limit is {limit:g} GiB of {whose} memory." if limit is not None else ""), (
            f"上限为 {limit:g} GiB。" if limit is not None else ""
        )
    copies = f" (up to {weights * ranks:.0f} GiB when each of {ranks} ranks reads its own copy)" if ranks > 1 else ""
    copies_zh = f"（{ranks} 个 rank 各读一份时最多 {weights * ranks:.0f} GiB）" if ranks > 1 else ""
    return (
        f" Sum: weights {weights:.1f} GiB{copies}{extra} + about {_PROGRAM_GIB:g} for the program{bound}.",
        f"合计：权重 {weights:.1f} GiB{copies_zh}{extra} + 程序约 {_PROGRAM_GIB:g} GiB{bound_zh}。",
    )


def _when(case: Case) -> Words:
    shards = case.log.last(SHARDS)
    if case.startup.ready:
        return Words(" while it served", "（发生在提供服务期间）")
    if shards and shards["percent"] != "100":
        return Words(f" while the weights were loaded (at {shards['percent']} %)", f"（发生在加载权重时，进度 {shards['percent']} %）")
    return Words(" during the start", "（发生在启动期间）")


def _remedies(case: Case, needed: float | None, limit: float | None, ranks: int, extra: float, weights_once: float | None) -> list[Fix]:
    """`weights_once`: GiB of one copy, where only several copies are too much."""
    fixes: list[Fix] = []
    if case.device.is_cpu and extra >= 2:
        rest = (limit or 0.0) - (needed or 0.0) + extra
        cache = max(1, int(rest)) if needed is not None and limit is not None and rest < extra else max(1, int(extra) // 2)
        fixes.append(
            Fix(
                Words(f"a smaller KV cache in RAM: {extra:g} -> {cache} GiB", f"减小内存中的 KV 缓存：{extra:g} -> {cache} GiB"),
                f"VLLM_CPU_KVCACHE_SPACE={cache}",
            )
        )
    ram = case.context.number("host.ram_gib")
    target = math.ceil(max(needed or 0.0, (limit or 0.0) * 1.25 if needed is None or limit is None or needed <= limit else 0.0))
    way = _way(case)
    if target and way != "host" and (ram is None or target <= ram):
        command = f"resources: {{limits: {{memory: {target}Gi}}}}" if way == "kubernetes" else f"--memory {target}g"
        fixes.append(
            Fix(Words(f"raise the container's memory limit to at least {target} GiB of host RAM", f"把容器内存上限提高到至少 {target} GiB"), command)
        )
    elif target and ram is not None and target > ram and weights_once is not None and weights_once < ram:
        fixes.append(
            Fix(
                Words(
                    f"let the ranks share one copy of {weights_once:.0f} GiB in the page cache (mapped files) instead of {ranks} copies",
                    f"让各 rank 共享页缓存中的一份 {weights_once:.0f} GiB（映射文件），而不是 {ranks} 份副本",
                )
            )
        )
    elif target and (ram is None or target > ram):
        fixes.append(
            Fix(
                Words(
                    f"give the host at least {target} GiB of RAM, or take weights with fewer bits",
                    f"主机至少需要 {target} GiB 内存，或使用位数更少的权重",
                )
            )
        )
    elif not target:
        fixes.append(Fix(Words("raise the memory limit of the container, or free host RAM", "提高容器内存上限，或释放主机内存")))
    if case.launch.program == "llama.cpp":
        fixes.append(
            Fix(
                Words("map the file instead of copying it (leave out --no-mmap and --mlock)", "用内存映射而不是复制（去掉 --no-mmap 与 --mlock）"),
                "--mmap",
            )
        )
    else:
        fixes.append(
            Fix(
                Words("map the weights lazily instead of reading whole files into RAM", "按需映射权重，而不是整文件读入内存"),
                "--safetensors-load-strategy lazy",
            )
        )
    if ranks > 1:
        fixes.append(
            Fix(
                Words(
                    f"fewer ranks than {ranks} on this host: each loads through RAM at the same time",
                    f"本机 rank 少于 {ranks} 个：它们会同时经内存加载",
                )
            )
        )
    if (case.launch.number("swap_space") or 0) > 0:
        fixes.append(Fix(Words("no pinned swap space", "不要固定的交换空间"), "--swap-space 0"))
    return fixes


def _way(case: Case) -> Way:
    text = f"{case.launch.command} {' '.join(hit.line.text for hit in case.log.hits(STATED_KILL, SIGKILL)[:8])}"
    if '"OOMKilled":' in text:
        return "docker"  # docker inspect
    if "OOMKilled" in text or "Exit Code" in text or "kubectl" in text or case.context.has("env.KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    limited = case.context.has("host.cgroup.memory_max_gib") or case.context.get("host.in_container") is True or case.log.sees(LIMIT)
    return "docker" if limited or "docker" in text else "host"


RULES: Final = (
    Rule(
        id="O15",
        title=Words("Host memory exhausted, killed by the kernel", "主机内存耗尽，进程被内核杀死"),
        symptoms=Words(
            "no traceback; -9, exit 137, `OOMKilled`, `oom-killer`, `Memory cgroup out of memory`, `ChildProcessError: worker died`; warnings about leaked semaphores follow",
            "没有 traceback；-9、退出码 137、`OOMKilled`、`oom-killer`、`Memory cgroup out of memory`、`ChildProcessError: worker died`；随后是 leaked semaphore 告警",
        ),
        why=Words(
            "RAM or the container's limit exceeded: copies per rank, pinned swap, CPU cache, tmpfs, binding to one NUMA node",
            "超出内存或容器上限：每 rank 一份副本、固定交换区、CPU 缓存、tmpfs、绑定到单个 NUMA 节点",
        ),
        needs=Words("limit, memory.events oom_kill, peak", "上限、memory.events 的 oom_kill、峰值"),
        remedy=Words("raise the limit, fewer ranks, lazy loading, smaller CPU cache", "提高上限、减少 rank、惰性加载、减小 CPU 缓存"),
        check=Words("oom_kill does not grow", "oom_kill 不再增长"),
        judge=killed_for_memory,
        sees=SIGHTS,
        explains=("L18", "D17", "R32"),
    ),
)
