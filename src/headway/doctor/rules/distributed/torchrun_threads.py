"""torchrun gives every process one thread (D18)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.cpu_threads import cpu_limit_of
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.distributed.ranks import split_of
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NOTICE: Final = sight("Setting OMP_NUM_THREADS environment variable for each process to be 1")
COMMAND: Final = sight("torchrun ", "torch.distributed.run ", "torch.distributed.launch ", pattern=r"(?:torchrun|-m torch\.distributed\.(?:run|launch)) .*")
PROCESSES: Final = sight("nproc", pattern=r"--nproc[-_]per[-_]node[ =](?P<count>\d+)")
WORLD: Final = sight("in world size ", pattern=r"rank \d+ in world size (?P<count>\d+)")
ON_CPU: Final = sight(
    "detected platform", "device cpu", "backend gloo", "--device cpu", pattern=r"detected platform (?P<platform>\w+)|device[ =]cpu|backend[ =]gloo"
)
ON_GPU: Final = sight("detected platform cuda", "detected platform rocm", "is using nccl")


def one_thread_each(case: Case) -> Found | None:
    """Harmless where GPUs compute."""
    notice = case.log.first(NOTICE)
    if notice is None or case.log.sees(ON_GPU):
        return None
    place = case.log.first(ON_CPU)
    gpus = case.context.get("host.gpus")
    if place is None and gpus != []:
        return None
    limit = cpu_limit_of(case.context)
    cores, quote = (limit.threads, limit.fact.quote) if limit else (None, None)
    ranks = _ranks(case)
    command = case.log.first(COMMAND)
    run = command.line.text[command.match.start() :].strip() if command else ""
    if cores is None:
        threads, sum_, setting = 0, Words("", ""), f"OMP_NUM_THREADS=$(( $(nproc) / {ranks} ))"
    else:
        threads = max(1, cores // ranks)
        if threads == 1:
            return None
        sum_ = Words(
            f" This host gives {cores} cores to {ranks} processes: {cores} / {ranks} = {threads} each.",
            f"本机有 {cores} 个核心、{ranks} 个进程：{cores} / {ranks} = 每个 {threads} 个。",
        )
        setting = f"OMP_NUM_THREADS={threads}"
    full = f"{setting} {run}" if run.startswith(("torchrun", "python")) else setting
    used = ranks if cores is None else cores
    idle = Words(f"; {used - ranks} of {used} cores stay idle" if cores else "", f"，{used} 个核心中有 {used - ranks} 个闲置" if cores else "")
    return Found(
        cause=Words(
            f"torchrun set OMP_NUM_THREADS=1 (its notice says so), so each of the {ranks} processes computes with 1 thread on the CPU{idle.en}.{sum_.en}",
            f"torchrun 设置了 OMP_NUM_THREADS=1（见其提示），因此 {ranks} 个进程各自只用 1 个线程在 CPU 上计算{idle.zh}。{sum_.zh}",
        ),
        evidence=[notice.quote(), *([quote] if quote else [])],
        fixes=[
            Fix(
                Words(
                    f"give each process its share of the cores{f' ({threads})' if threads else ''}",
                    f"为每个进程分配应有的核心{f'（{threads} 个）' if threads else ''}",
                ),
                full,
            )
        ],
        verify=Words(
            f"the notice is gone and `ps -o nlwp,pcpu -C python` shows each process near {100 * threads if threads else 100 * 2} % CPU; tokens/s rises",
            f"不再出现该提示，`ps -o nlwp,pcpu -C python` 显示每个进程接近 {100 * threads if threads else 100 * 2} % CPU，tokens/s 提高",
        ),
        confidence=STATED if cores is not None and place is not None else 0.8,
        weight="degraded",
        explains=("T7",),
    )


def _ranks(case: Case) -> int:
    for hit in (case.log.first(PROCESSES), case.log.first(WORLD)):
        if hit is not None:
            return max(1, int(hit["count"]))
    found = re.search(r"--nproc[-_]per[-_]node[ =](\d+)", case.launch.command)
    return int(found[1]) if found else max(1, split_of(case).world)


RULES: Final = (
    Rule(
        id="D18",
        title=Words("torchrun set OMP_NUM_THREADS to 1", "torchrun 把 OMP_NUM_THREADS 设为 1"),
        symptoms=Words("its notice, and a slow CPU run", "它的提示，以及缓慢的 CPU 运行"),
        why=Words("torchrun guards against too many threads", "torchrun 为避免线程过多而如此设置"),
        needs=Words("cores and processes of this host", "本机核心数与进程数"),
        remedy=Words("OMP_NUM_THREADS = cores / processes", "OMP_NUM_THREADS = 核心数 / 进程数"),
        check=Words("each process uses its cores", "每个进程用满其核心"),
        judge=one_thread_each,
        sees=(NOTICE, COMMAND, PROCESSES, WORLD, ON_CPU, ON_GPU),
    ),
)
