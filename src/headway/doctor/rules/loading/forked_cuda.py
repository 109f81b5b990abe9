"""L20: worker processes were forked after CUDA was used, or spawned from an unguarded main module."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.loading.outcome import overcome
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

FORKED: Final = sight("Cannot re-initialize CUDA in forked subprocess", "Cannot re-initialize HIP in forked subprocess")
NO_GUARD: Final = sight(
    "before the current process has finished its bootstrapping phase", "start a new process before the"
)


def forked_after_cuda(case: Case) -> Found | None:
    hit = case.log.first(FORKED)
    unguarded = case.log.first(NO_GUARD)
    first = hit or unguarded
    if first is None or overcome(case, first):
        return None
    if hit is None:
        cause = Words(
            "Worker processes are spawned while the main module is still being imported: the script starts the engine at top level, so each child would start one again.",
            "主模块还在导入时就派生了工作进程：脚本在顶层启动引擎，每个子进程都会再启动一次。",
        )
        fixes = [_GUARD]
    else:
        cause = Words(
            "The parent process had used CUDA before the workers were forked, and a forked child cannot use it again. Fewer workers or another driver do not help; they must be spawned.",
            "父进程在 fork 工作进程之前已经使用了 CUDA，fork 出的子进程无法再次初始化。减少进程数或更换驱动没有用，必须改用 spawn 方式启动。",
        )
        fixes = [
            Fix(
                Words("spawn the workers instead of forking them", "用 spawn 代替 fork 启动工作进程"),
                "export VLLM_WORKER_MULTIPROC_METHOD=spawn",
            ),
            _GUARD,
            Fix(
                Words(
                    "and touch CUDA (device_count, .cuda(), seeds) only after the engine was made",
                    "并且只在引擎创建之后再使用 CUDA（device_count、.cuda()、随机种子）",
                )
            ),
        ]
    return Found(
        cause=cause,
        evidence=quoted(hit, unguarded),
        fixes=fixes,
        verify=Words(
            "the start passes `Starting to load model` in every worker",
            "每个工作进程的启动都走过 `Starting to load model`",
        ),
        confidence=STATED,
    )


_GUARD: Final = Fix(
    Words(
        'put the start of the program under `if __name__ == "__main__":`, which spawning needs',
        '把程序入口放在 `if __name__ == "__main__":` 之下，spawn 需要它',
    ),
    'if __name__ == "__main__":',
)


RULES: Final = (
    Rule(
        id="L20",
        title=Words("Fork after CUDA was used", "使用 CUDA 之后 fork"),
        symptoms=Words(
            "`Cannot re-initialize CUDA in forked subprocess`", "`Cannot re-initialize CUDA in forked subprocess`"
        ),
        why=Words("the parent touched CUDA before the workers were forked", "父进程在 fork 之前使用了 CUDA"),
        needs=Words("the start method and what ran before", "启动方式与之前运行的代码"),
        remedy=Words(
            "VLLM_WORKER_MULTIPROC_METHOD=spawn, a guarded main module, CUDA later",
            "VLLM_WORKER_MULTIPROC_METHOD=spawn、主模块加保护、推迟使用 CUDA",
        ),
        check=Words("the start passes", "启动通过"),
        judge=forked_after_cuda,
        sees=(FORKED, NO_GUARD),
    ),
)
