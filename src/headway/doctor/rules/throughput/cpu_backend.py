"""A CPU that computes slower than its memory allows (T7): threads, instruction set, number format, swap."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.cpu_threads import CpuLimit, cpu_limit_of, threads_of, throttled_share
from headway.doctor.facts.fact import Fact
from headway.doctor.facts.load import LoadShape, shape_of
from headway.doctor.facts.processor_use import on_cpu
from headway.doctor.finding import Abstention, Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

THREAD_REFUSED: Final = sight("libgomp: Thread creation failed", "OpenBLAS blas_thread_init: pthread_create failed", "can't start new thread")
TORCHRUN_NOTICE: Final = sight("Setting OMP_NUM_THREADS environment variable for each process")
HALF_ON_CPU: Final = sight("no fast float16 arithmetic", "float16 is not supported on CPU", "bfloat16 is emulated")

_THROTTLED: Final = 0.10
_TOO_MANY: Final = 1.25
_ROOF_SHARE: Final = 0.25
_LEAST_WEIGHTS: Final = 0.05  # GiB: what is smaller stays in the caches, and reading it is not what a step does
_LEAST_BANDWIDTH: Final = 5.0  # GiB/s: no machine that people serve on reads memory slower
_AVX512: Final = ("avx512f", "avx512_bf16", "amx_bf16")


def cpu_crawls(case: Case) -> Found | Abstention | None:
    if case.launch.program in ("vllm-srun", "vllm-sr") or case.log.sees(TORCHRUN_NOTICE):
        return None
    refused = case.log.first(THREAD_REFUSED)
    threads, limit = threads_of(case.log, case.context, case.launch), cpu_limit_of(case.context)
    if refused is not None:
        return _threads_refused(case, refused.quote(), threads, limit)
    share = throttled_share(case.context)
    if not on_cpu(case.log, case.context, case.device) and not (share or 0) > 0.5:
        return None
    if limit is not None and threads is not None and threads.value > limit.cpus * _TOO_MANY and _harm_is_seen(case, limit, share):
        return _too_many_threads(case, threads, limit, share)
    if limit is not None and share is not None and share > _THROTTLED:
        return _throttled(case, limit, share)
    if limit is not None and threads is not None and threads.value * 2 < limit.cpus and limit.cpus >= 4 and shape_of(case.load):
        return _too_few_threads(case, threads, limit)
    return _arithmetic(case)


def _harm_is_seen(case: Case, limit: CpuLimit, share: float | None) -> bool:
    """Throttled periods, or far more threads than CPUs, or a crawl: a few threads more alone are no fault."""
    crawl = _bandwidth(case, shape_of(case.load))
    return bool((share or 0) > _THROTTLED or (crawl is not None and crawl[0] < _LEAST_BANDWIDTH) or (share is None and limit.by == "quota"))


def _too_many_threads(case: Case, threads: Fact[int], limit: CpuLimit, share: float | None) -> Found:
    few = limit.threads
    source, source_zh = _LIMIT_WORDS[limit.by]
    stopped = f" The kernel stopped the group in {share:.0%} of its periods" if share else ""
    stopped_zh = f"内核在 {share:.0%} 的周期里暂停了该组进程" if share else ""
    counts = _throttle_counts(case)
    machine = case.context.number("host.cpus")
    sized = f"; the pool was sized by the machine's {machine:g} CPUs" if machine and machine == threads.value and limit.by != "machine" else ""
    sized_zh = f"；线程池是按整机的 {machine:g} 个 CPU 设定的" if machine and machine == threads.value and limit.by != "machine" else ""
    speed, speed_zh = _speed(case)
    return Found(
        cause=Words(
            f"{threads.value} threads compute on {source} of {limit.cpus:g} CPUs{sized}.{stopped}{counts}{'.' if share else ''}"
            f" Every step waits for the slowest thread{speed}. The CPU itself is not too slow.",
            f"{threads.value} 个线程在{source_zh} {limit.cpus:g} 个 CPU 上计算{sized_zh}。{stopped_zh}{counts}{'。' if share else ''}每一步都要等最慢的线程{speed_zh}。并不是 CPU 太慢。",
        ),
        evidence=[threads.quote, limit.fact.quote, *_throttle_quotes(case), *_load_quote(case)],
        fixes=[
            Fix(Words(f"use as many threads as the limit allows: {few} (floor of {limit.cpus:g})", f"线程数设为限额所允许的 {few}（{limit.cpus:g} 向下取整）"), _threads_command(case, few)),
            Fix(Words("the same for tokenizers and BLAS libraries", "分词器和 BLAS 库同样设置"), f"RAYON_NUM_THREADS={few} MKL_NUM_THREADS={few} OPENBLAS_NUM_THREADS={few}"),
        ],
        verify=_VERIFY,
        confidence=0.92 if share is not None and share > 0.3 else 0.8,
        weight="degraded",
        explains=("T4", "T5", "T6"),
    )


def _throttled(case: Case, limit: CpuLimit, share: float) -> Found:
    return Found(
        cause=Words(
            f"The CPU quota is used up: {limit.cpus:g} CPUs, and the kernel stopped the group in {share:.0%} of its periods{_throttle_counts(case)}.{_speed(case)[0]}",
            f"CPU 配额已用尽：{limit.cpus:g} 个 CPU，内核在 {share:.0%} 的周期里暂停了该组进程{_throttle_counts(case)}。{_speed(case)[1]}",
        ),
        evidence=[limit.fact.quote, *_throttle_quotes(case), *_load_quote(case)],
        fixes=[
            Fix(Words(f"keep all threads of the container within {limit.threads}", f"让容器内全部线程不超过 {limit.threads}"), _threads_command(case, limit.threads)),
            Fix(Words("raise the container's CPU limit if the host has free cores", "如果主机有空闲核，提高容器的 CPU 限额"), f"docker update --cpus {limit.threads * 2} $(hostname)"),
        ],
        verify=_VERIFY,
        confidence=0.75 if share > 0.3 else 0.6,
        weight="degraded",
        explains=("T4", "T6"),
    )


def _too_few_threads(case: Case, threads: Fact[int], limit: CpuLimit) -> Found:
    return Found(
        cause=Words(
            f"{threads.value} thread(s) compute although {limit.cpus:g} CPUs may be used: {1 - threads.value / limit.cpus:.0%} of them idle.{_speed(case)[0]}",
            f"只有 {threads.value} 个线程在计算，而可用的 CPU 有 {limit.cpus:g} 个：其中 {1 - threads.value / limit.cpus:.0%} 闲置。{_speed(case)[1]}",
        ),
        evidence=[threads.quote, limit.fact.quote, *_load_quote(case)],
        fixes=[Fix(Words("use the CPUs that are allowed", "用满允许使用的 CPU"), _threads_command(case, limit.threads))],
        verify=_VERIFY,
        confidence=0.8 if threads.value * 4 <= limit.cpus else 0.6,
        weight="degraded",
        explains=("T4",),
    )


def _threads_refused(case: Case, quote: Quote, threads: Fact[int] | None, limit: CpuLimit | None) -> Found:
    few = limit.threads if limit else min(threads.value, 8) if threads else 4
    pids = case.context.number("host.cgroup.pids_max") or case.context.number("host.limits.nproc")
    wanted = f"each library wants {threads.value} threads" if threads else "each library sizes its thread pool by the machine's cores"
    wanted_zh = f"每个库需要 {threads.value} 个线程" if threads else "每个库都按整机核数设定线程池"
    machine = case.context.number("host.cpus") or 64.0
    roomy = max(1024, int(machine) * 16)
    allowed = f", {pids:g} processes are allowed" if pids else ""
    allowed_zh = f"，而只允许 {pids:g} 个进程" if pids else ""
    return Found(
        cause=Words(
            f"The kernel refuses new threads: {wanted}{allowed}, and the process limit of this container or user is reached. Memory and the model are not involved.",
            f"内核拒绝创建新线程：{wanted_zh}{allowed_zh}，已达到该容器或用户的进程数上限。与内存和模型无关。",
        ),
        evidence=[quote, *([threads.quote] if threads else []), *([limit.fact.quote] if limit else [])],
        fixes=[
            Fix(Words(f"use {few} threads in every library", f"所有库都使用 {few} 个线程"), f"OMP_NUM_THREADS={few} OPENBLAS_NUM_THREADS={few} MKL_NUM_THREADS={few} RAYON_NUM_THREADS={few}"),
            Fix(Words("raise the limit of processes of the container", "提高容器的进程数上限"), f"docker run --pids-limit {roomy}"),
        ],
        verify=Words("start again: the line is gone; cat /sys/fs/cgroup/pids.current stays below pids.max", "重新启动：该行消失；cat /sys/fs/cgroup/pids.current 低于 pids.max"),
        confidence=0.9,
        weight="fatal",
    )


def _arithmetic(case: Case) -> Found | Abstention | None:
    """Threads fit or are unknown: what else makes each step slow, once a crawl is measured."""
    reached = _bandwidth(case, shape_of(case.load))
    if reached is None:
        return None
    rate, steps = reached
    roof = case.context.number("host.memory_bandwidth_gb_s") or case.context.number("host.io.memory_gb_s")
    slow = rate < (roof * _ROOF_SHARE if roof else _LEAST_BANDWIDTH)
    if not slow or rate / steps < _LEAST_WEIGHTS:
        return None
    sum_en = f"{steps:.2f} steps/s x weights is {rate:.1f} GiB/s" + (f", {rate / roof:.0%} of the measured {roof:g} GB/s" if roof else "")
    sum_zh = f"{steps:.2f} 步/秒 x 权重 = {rate:.1f} GiB/s" + (f"，是实测 {roof:g} GB/s 的 {rate / roof:.0%}" if roof else "")
    if (case.context.number("host.swap_used_gib") or 0.0) >= 1.0:
        return None  # memory, not arithmetic
    dtype = case.launch.fact("dtype")
    if dtype and any(word in dtype.value for word in ("float16", "half")) and "bfloat16" not in dtype.value:
        return _factor(
            case, sum_en, sum_zh, (f"{dtype.value} is emulated on CPUs", f"{dtype.value} 在 CPU 上是模拟的"), dtype.quote,
            Fix(Words("compute in bfloat16", "使用 bfloat16 计算"), "--dtype bfloat16"),
        )  # fmt: skip
    flags = case.context.text("host.cpu_flags")
    if flags and not any(flag in flags for flag in _AVX512):
        return _factor(
            case, sum_en, sum_zh, ("this CPU has neither AVX-512 nor AMX, so bfloat16 is emulated", "该 CPU 没有 AVX-512 和 AMX，bfloat16 是模拟的"),
            case.context.quote("host.cpu_flags"), Fix(Words("compute in float32, which this CPU does natively", "改用该 CPU 原生支持的 float32"), "--dtype float32"),
        )  # fmt: skip
    if shared := _shared_cores(case, sum_en, sum_zh):
        return shared
    return Abstention(
        Words(
            f"why the CPU is slow ({sum_en}): `headway doctor collect` on that machine would tell its threads, CPU limit, throttling and load; `top -b -n1 -o %CPU | head -15` who else computes",
            f"CPU 为何慢（{sum_zh}）：在该机器上运行 `headway doctor collect` 可得线程数、CPU 限额、限流与负载；`top -b -n1 -o %CPU | head -15` 可见还有谁在计算",
        )
    )


def _shared_cores(case: Case, sum_en: str, sum_zh: str) -> Found | None:
    """Far more runs than there are CPUs for: each step waits for its turn. The server's own threads count as well."""
    limit, load = cpu_limit_of(case.context), case.context.number("host.load_average")
    if limit is None or load is None or load < 2 * limit.cpus + 1:
        return None
    found = _factor(
        case, sum_en, sum_zh,
        (f"the load average is {load:g} on {limit.cpus:g} CPUs, so other programs take the server's cores", f"平均负载为 {load:g}，而 CPU 只有 {limit.cpus:g} 个，其他程序占用了服务器的核"),
        case.context.quote("host.load_average", f"load_average {load:g}"),
        Fix(Words("stop or move what else computes here, or give the server cores of its own", "停止或迁走此处的其他计算任务，或给服务器分配专用核"), "top -b -n1 -o %CPU | head -15"),
    )  # fmt: skip
    sure = 0.55 if complains_of(case.context, "throughput") else 0.5  # the average counts what waits as well as what computes
    return replace(found, title=Words("Other programs take the server's cores", "其他程序占用服务器的核"), confidence=sure, explains=())


def _factor(case: Case, sum_en: str, sum_zh: str, why: tuple[str, str], quote: Quote, fix: Fix) -> Found:
    return Found(
        cause=Words(f"Decoding crawls: {sum_en}; {why[0]}.", f"解码极慢：{sum_zh}；{why[1]}。"),
        evidence=[quote, *_load_quote(case)],
        fixes=[fix],
        verify=Words("the same request afterwards: tokens/s times the weights comes near the memory bandwidth", "之后用相同请求：tokens/s 乘以权重接近内存带宽"),
        confidence=0.7,
        weight="degraded",
        explains=("T4",),
    )


def _bandwidth(case: Case, shape: LoadShape | None) -> tuple[float, float] | None:
    """(GiB/s, steps/s): each decode step reads all weights once, whatever the batch."""
    weights = case.memory.weights
    if shape is None or weights is None or not shape.per_request:
        return None
    return shape.per_request * weights.value, shape.per_request


def _speed(case: Case) -> tuple[str, str]:
    shape, reached = shape_of(case.load), _bandwidth(case, shape_of(case.load))
    if shape is None or shape.generation_rate is None:
        return "", ""
    text, text_zh = f" ({shape.generation_rate:.1f} tokens/s)", f"（{shape.generation_rate:.1f} tokens/s）"
    if reached and reached[0] < 50:
        return f" ({shape.generation_rate:.1f} tokens/s, {reached[0]:.1f} GiB/s of weights)", f"（{shape.generation_rate:.1f} tokens/s，权重读取 {reached[0]:.1f} GiB/s）"
    return text, text_zh


def _throttle_counts(case: Case) -> str:
    periods, throttled = case.context.number("host.cgroup.nr_periods"), case.context.number("host.cgroup.nr_throttled")
    return f" ({throttled:g}/{periods:g})" if periods and throttled is not None else ""


def _throttle_quotes(case: Case) -> list[Quote]:
    return [case.context.quote(path) for path in ("host.cgroup.nr_throttled", "host.cgroup.nr_periods") if case.context.has(path)]


def _load_quote(case: Case) -> list[Quote]:
    shape = shape_of(case.load)
    return [shape.middle.quote] if shape else []


def _threads_command(case: Case, count: int) -> str:
    if case.launch.program == "llama.cpp":
        return f"--threads {count} --threads-batch {count}"
    if case.launch.program == "vllm":
        return f"OMP_NUM_THREADS={count} VLLM_CPU_OMP_THREADS_BIND=0-{count - 1}" if case.context.text("host.affinity") in ("", f"0-{count - 1}") and case.context.has("env.VLLM_CPU_OMP_THREADS_BIND") else f"OMP_NUM_THREADS={count}"
    return f"OMP_NUM_THREADS={count}"


_LIMIT_WORDS: Final = {
    "quota": ("a cgroup quota (cpu.max)", " cgroup 配额（cpu.max）限制的"),
    "affinity": ("an affinity", " CPU 亲和性限制的"),
    "machine": ("a machine", "整机的"),
}
_VERIFY: Final = Words(
    "restart under the same load, then read cat /sys/fs/cgroup/cpu.stat twice: nr_throttled stands still and tokens/s rises severalfold",
    "用相同负载重启，然后两次读取 cat /sys/fs/cgroup/cpu.stat：nr_throttled 不再增长，tokens/s 成倍上升",
)

RULES: Final = (
    Rule(
        id="T7",
        proof="live",
        title=Words("The CPU crawls: threads do not fit the CPUs it may use", "CPU 极慢：线程数与可用 CPU 不符"),
        symptoms=Words("tokens/s far below memory bandwidth / weight bytes, `nr_throttled` grows", "tokens/s 远低于 内存带宽/权重字节数，`nr_throttled` 增长"),
        why=Words("thread pools are sized by the machine's cores, not by quota or affinity; number formats that the CPU emulates; other programs on the same cores", "线程池按整机核数而不是配额或亲和性设定；或数值格式由 CPU 模拟；或其他程序占用同样的核"),
        needs=Words("threads, cpu.max, affinity, cpu.stat, load average, instruction set, dtype, measured GB/s", "线程数、cpu.max、亲和性、cpu.stat、平均负载、指令集、dtype、实测 GB/s"),
        remedy=Words("threads = floor of quota or affinity, bfloat16 where the CPU has it, correct binding, cores of its own", "线程数 = 配额或亲和性向下取整，CPU 支持时用 bfloat16，正确绑核，专用核"),
        check=Words("throttled periods stand still, tokens/s near the roof", "限流周期不再增长，tokens/s 接近上限"),
        judge=cpu_crawls,
        sees=(THREAD_REFUSED, TORCHRUN_NOTICE, HALF_ON_CPU),
    ),
)
