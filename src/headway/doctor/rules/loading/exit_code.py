"""L18: a process ended without a word; only its exit code is known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.exceptions import EXCEPTION, FAILED_PROCESSES, UMBRELLA
from headway.doctor.finding import Abstention, Fix, Found
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

SIGNAL: Final = sight(
    "Illegal instruction",
    "Segmentation fault",
    "died with <Signals.",
    "died with signal",
    "exitcode",
    "exit code",
    "Exit Code",
    "exited with code",
    "Bus error",
    "core dumped",
    pattern=r"(?P<ill>Illegal instruction|SIGILL)|(?P<segv>Segmentation fault|SIGSEGV)|(?P<abrt>SIGABRT|Aborted \(core dumped\))"
    r"|(?:exitcode ?[:=]?|[Ee]xit [Cc]ode:?|exited with code) *(?P<code>-?\d+)|(?P<bus>Bus error|SIGBUS)",
)


@dataclass(frozen=True, slots=True)
class _Signal:
    """`confidence` is low where another rule has the better evidence."""

    name: str
    means: Words
    confidence: float


_SIGNALS: Final[dict[int, _Signal]] = {
    4: _Signal(
        "SIGILL, illegal instruction",
        Words("the CPU lacks the instruction set that this build uses", "CPU 缺少该构建所用的指令集"),
        0.92,
    ),
    6: _Signal(
        "SIGABRT, abort",
        Words("native code gave up (a failed check or a C++ exception)", "原生代码主动中止（检查失败或 C++ 异常）"),
        0.65,
    ),
    7: _Signal(
        "SIGBUS, bus error",
        Words(
            "shared memory in /dev/shm is exhausted, most often the 64 MB default of containers",
            "/dev/shm 共享内存耗尽，最常见的是容器默认的 64 MB",
        ),
        0.6,
    ),
    9: _Signal(
        "SIGKILL",
        Words(
            "somebody killed the process, most often the kernel because the host or container ran out of memory",
            "进程被杀死，最常见的是宿主机或容器内存耗尽时被内核杀死",
        ),
        0.6,
    ),
    11: _Signal(
        "SIGSEGV, segmentation fault",
        Words("native code (a library, an extension, the driver) crashed", "原生代码（库、扩展或驱动）崩溃"),
        0.85,
    ),
}
# the watchdog of the collectives ends a rank by abort: that is the collective's case
WATCHDOG: Final = sight("Watchdog caught collective operation timeout")
_WANTED: Final = ("avx512f", "avx512_bf16", "amx_tile", "avx2", "fma")


def only_an_exit_code(case: Case) -> Found | Abstention | None:
    """The signal behind the code; for an illegal instruction the CPU's flags close the sum. With an exception above it is
    that exception's case, and without code and exception nothing can be said."""
    number, hit = _signal(case)
    if hit is None or _has_a_cause(case, hit) or (number == 6 and case.log.sees(WATCHDOG)):
        return None
    signal = _SIGNALS.get(number)
    if signal is None:
        if not case.log.sees(FAILED_PROCESSES) or case.exceptions.codes:
            return None
        return Abstention(
            Words(
                f"line {hit.line.number} says only that the engine process failed, without a code; the lines of that process above it are missing (run it in the foreground with VLLM_ENABLE_V1_MULTIPROCESSING=0)",
                f"第 {hit.line.number} 行只说明引擎进程失败，没有退出码；缺少它之前该进程的日志（用 VLLM_ENABLE_V1_MULTIPROCESSING=0 在前台运行）",
            ),
            quoted(hit),
        )
    process = next(iter(case.exceptions.codes), "")
    who = Words(f"Process {process}" if process else "The process", f"进程 {process} " if process else "进程")
    code = f"-{number}" if process or not hit.match.groupdict().get("code") else hit.match["code"]
    cause = Words(
        f"{who.en} ended with code {code} ({signal.name}) and printed no exception: {signal.means.en}.",
        f"{who.zh}以 {code} 退出（{signal.name}），没有打印异常：{signal.means.zh}。",
    )
    evidence = quoted(hit)
    flags = set(case.context.text("host.cpu_flags").split()) or {
        str(flag) for flag in case.context.items("host.cpu_flags")
    }
    if number == 4:
        if flags:
            lacking = [flag for flag in _WANTED if flag not in flags]
            name = case.context.text("host.cpu_model")
            cause = Words(
                f"{cause.en} {name or 'This CPU'} has no {', '.join(lacking)}.",
                f"{cause.zh}{name or '该 CPU'} 没有 {'、'.join(lacking)}。",
            )
            evidence += [case.context.quote("host.cpu_flags")] + (
                [case.context.quote("host.cpu_model")] if name else []
            )
        fixes = [
            Fix(
                Words(
                    "use a build for this CPU's instruction set: build from source on this machine",
                    "使用面向该 CPU 指令集的构建：在本机从源码构建",
                ),
                "VLLM_TARGET_DEVICE=cpu VLLM_CPU_DISABLE_AVX512=true pip install --no-build-isolation --no-binary vllm vllm",
            ),
            Fix(
                Words(
                    "or an engine that chooses its kernels by the CPU flags at run time",
                    "或使用运行时按 CPU 标志选择内核的引擎",
                ),
                f"headway serve {case.launch.model}" if case.launch.model else "llama-server --list-devices",
            ),
            Fix(
                Words("or run it on a machine whose CPU has AVX2 or AVX-512", "或在支持 AVX2 或 AVX-512 的 CPU 上运行")
            ),
        ]
        verify = Words(
            "`grep -o -m1 -E 'avx512f|avx2' /proc/cpuinfo` prints the instruction set that the build needs, and the worker starts in the foreground",
            "`grep -o -m1 -E 'avx512f|avx2' /proc/cpuinfo` 输出构建所需的指令集，且工作进程可在前台启动",
        )
    elif number == 7:
        fixes = [
            Fix(Words("give the container more shared memory", "给容器更多共享内存"), "--shm-size 8g"),
            Fix(Words("in Kubernetes: a memory-backed volume at /dev/shm", "Kubernetes：在 /dev/shm 挂载内存卷")),
        ]
        verify = Words("`df -h /dev/shm` shows 8 GB", "`df -h /dev/shm` 显示 8 GB")
    elif number == 9:
        fixes = [
            Fix(
                Words(
                    "confirm the kill and its limit, then raise the memory limit or use less",
                    "确认是否被内核杀死及其限制，再提高内存限制或减少用量",
                ),
                "dmesg -T | grep -iE 'oom|killed process' | tail; cat /sys/fs/cgroup/memory.events",
            )
        ]
        verify = Words(
            "`oom_kill` in memory.events does not grow at the next start",
            "下次启动时 memory.events 中的 `oom_kill` 不再增长",
        )
    else:
        fixes = [
            Fix(
                Words(
                    "get the native stack: run the worker in the foreground with the fault handler",
                    "获取原生调用栈：打开 faulthandler 在前台运行工作进程",
                ),
                f"PYTHONFAULTHANDLER=1 VLLM_ENABLE_V1_MULTIPROCESSING=0 {case.launch.command or 'vllm serve ' + (case.launch.model or '.')}",
            ),
            Fix(
                Words("keep a core dump and read where it crashed", "保留 core 文件并查看崩溃位置"),
                "ulimit -c unlimited; coredumpctl gdb -1",
            ),
            Fix(
                Words(
                    "compare the versions of torch, driver and extensions; reinstall the one that the stack names",
                    "核对 torch、驱动与扩展的版本；重装调用栈中出现的那个",
                ),
                "python -m torch.utils.collect_env",
            ),
        ]
        verify = Words(
            "the worker, run in the foreground, passes the place where it crashed", "前台运行的工作进程能走过崩溃点"
        )
    return Found(
        cause=cause,
        evidence=evidence,
        fixes=fixes,
        verify=verify,
        confidence=signal.confidence,
        title=Words(
            f"A process ended with signal {number} ({signal.name.split(',')[0]})",
            f"进程因信号 {number}（{signal.name.split(',')[0]}）退出",
        ),
    )


def _signal(case: Case) -> tuple[int, Hit | None]:
    """The signal's number (0 when the log gives none) and the line."""
    failed = case.log.first(FAILED_PROCESSES)
    for code in case.exceptions.codes.values():
        if code < 0 and failed is not None:
            return -code, failed
    for hit in case.log.hits(SIGNAL):
        named = next((number for group, number in (("ill", 4), ("segv", 11), ("abrt", 6), ("bus", 7)) if hit[group]), 0)
        code = int(hit["code"]) if hit["code"] else 0
        number = named or (-code if code < 0 else code - 128 if code > 128 else 0)
        if number in _SIGNALS:
            return number, hit
    return 0, failed


def _has_a_cause(case: Case, at: Hit) -> bool:
    """An exception that is no umbrella stands before the line."""
    pointing = {(hit.line.source, hit.line.number) for hit in case.log.hits(UMBRELLA)}
    return any(
        (hit.line.source, hit.line.number) not in pointing
        and hit.line.source == at.line.source
        and hit.line.number < at.line.number
        and not re.match(
            r"(?:.*\.)?(?:ChildProcessError|CancelledError|SystemExit|KeyboardInterrupt|BrokenPipeError|EOFError)$",
            hit["type"],
        )
        for hit in case.log.hits(EXCEPTION)
    )


RULES: Final = (
    Rule(
        id="L18",
        title=Words("A process ended without an exception", "进程无异常信息退出"),
        symptoms=Words(
            "`Engine core initialization failed` with a process code and no traceback",
            "`Engine core initialization failed` 带进程退出码、没有回溯",
        ),
        why=Words(
            "a negative code is a signal: -4 instruction set, -6 abort, -7 shared memory, -9 memory, -11 native crash",
            "负的退出码是信号：-4 指令集、-6 中止、-7 共享内存、-9 内存、-11 原生崩溃",
        ),
        needs=Words("the code, the CPU flags, the lines before", "退出码、CPU 标志、之前的日志"),
        remedy=Words(
            "by code; with `{}` and nothing above, the lines before are needed",
            "按退出码处理；若为 `{}` 且上方没有内容，则需要之前的日志",
        ),
        check=Words("run the worker in the foreground", "在前台运行工作进程"),
        judge=only_an_exit_code,
        sees=(SIGNAL, WATCHDOG),
    ),
)
