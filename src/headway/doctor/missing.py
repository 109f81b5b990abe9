"""What to ask for when no rule answers: the fact that is not there, and the probe that would bring it."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.facts.launch import VERSION
from headway.doctor.facts.own_probe import SLOW_ANSWER
from headway.doctor.facts.startup import STAGES
from headway.doctor.words import Words

_TEXT_CHARS: Final = 72
# the phase that begins with each line of the healthy chain
_PHASES: Final = {
    "platform": Words("reading the configuration of the model", "读取模型配置"),
    "architecture": Words("reading the configuration of the model", "读取模型配置"),
    "context length": Words("starting the process of the engine", "启动引擎进程"),
    "engine": Words("setting up the devices and the process group", "初始化设备与进程组"),
    "loading": Words("reading the weights", "读取权重"),
    "weights read": Words("preparing the weights on the device", "在设备上准备权重"),
    "weights loaded": Words("measuring memory and compiling", "测量显存与编译"),
    "cache measured": Words("creating the KV cache", "创建 KV 缓存"),
    "cache made": Words("warming up and capturing graphs", "预热与捕获计算图"),
    "graphs": Words("finishing the warm-up", "完成预热"),
    "engine ready": Words("starting the HTTP server", "启动 HTTP 服务"),
    "listening": Words("starting the HTTP application", "启动 HTTP 应用"),
}


def what_is_missing(case: Case) -> Words | None:
    """None when nothing hints at a fault."""
    return _nothing_given(case) or _no_answer(case) or _unexplained(case) or _umbrella(case) or _stopped(case) or _unfinished_start(case) or _unknown_log(case) or _unknown_gpus(case)


def _nothing_given(case: Case) -> Words | None:
    if case.log.lines or case.context.tree or not case.log.sources:
        return None
    return Words(
        "the log is empty; the output of the server's start (its standard error too) is missing: `docker logs NAME 2>&1` or `journalctl -u UNIT`",
        "日志为空；缺少服务启动时的输出（包括标准错误）：`docker logs NAME 2>&1` 或 `journalctl -u UNIT`",
    )


def _no_answer(case: Case) -> Words | None:
    """A server was asked and said nothing, or not all of it in time."""
    url = case.context.text("endpoint.url")
    if url and not case.context.has("endpoint.health"):
        return Words(
            f"{url}/health gave no answer in time, so nothing is known of the server; missing are its log and what its process does: `headway doctor log FILE`, `py-spy dump --pid PID`",
            f"{url}/health 未在时限内应答，因此无从了解该服务；缺少它的日志以及进程正在做什么：`headway doctor log FILE`、`py-spy dump --pid PID`",
        )
    slow = case.log.first(SLOW_ANSWER)
    if slow is None:
        return None
    return Words(
        f"the answer to a tiny request was not complete after {slow['seconds']} s ({slow['pieces']} pieces came); missing are samples over a longer time: `--seconds 60 --timeout 300`",
        f"一个很小的请求在 {slow['seconds']} 秒后仍未答完（收到 {slow['pieces']} 段）；缺少更长时间的采样：`--seconds 60 --timeout 300`",
    )


def _unexplained(case: Case) -> Words | None:
    hit = next(iter(case.exceptions.first), None)
    if hit is None:
        return None
    owner = hit.line.process
    return Words(
        f"line {hit.line.number} holds an error that no rule explains ({_said(hit)});"
        f" what {owner or 'the program'} printed before it, with `VLLM_LOGGING_LEVEL=DEBUG`, would show its cause",
        f"第 {hit.line.number} 行的错误没有规则能解释（{_said(hit)}）；需要 {owner or '该程序'} 在它之前以 `VLLM_LOGGING_LEVEL=DEBUG` 打印的日志",
    )


def _umbrella(case: Case) -> Words | None:
    hit = next(iter(case.exceptions.umbrellas), None)
    if hit is None:
        return None
    return Words(
        f"line {hit.line.number} only says that another process failed ({_said(hit)}); the lines of that process, which stand above it, are missing:"
        " the whole output from the start on, and `dmesg | tail` for a process that the kernel ended",
        f"第 {hit.line.number} 行只说明另一个进程失败（{_said(hit)}）；缺少该进程在更前面的日志：需要从启动开始的完整输出，以及 `dmesg | tail`（内核可能结束了该进程）",
    )


def _stopped(case: Case) -> Words | None:
    """A start that somebody ended."""
    hit = case.exceptions.stopped
    if hit is None or case.startup.ready or case.startup.hit is None:
        return None
    phase = _PHASES[latest_stage(case)[0]]
    return Words(
        f"line {hit.line.number} says that the server was asked to end ({hit['signal']}) while it was {phase.en}, and there is no error before it; missing is who sent the signal:"
        " a probe or limit of the orchestrator (`kubectl describe pod`, `docker events`), `systemctl status`, or a person",
        f"第 {hit.line.number} 行表明服务在{phase.zh}时被要求结束（{hit['signal']}），此前没有错误；缺少信号的来源：编排系统的探针或限制（`kubectl describe pod`、`docker events`）、`systemctl status`，或人为操作",
    )


def _unfinished_start(case: Case) -> Words | None:
    """The chain of a start that neither came to its end nor failed."""
    if case.startup.ready or case.startup.hit is None or case.load:
        return None
    stage, hit = latest_stage(case)
    if stage == "engine ready" and not case.log.sees(VERSION):
        return None  # a program with the engine inside, and no server to wait for
    phase = _PHASES[stage]
    pid = hit.line.process.rpartition("pid=")[2] if "pid=" in hit.line.process else ""
    probe = f"`py-spy dump --pid {pid}`" if pid.isdigit() else "`py-spy dump --pid PID`"
    return Words(
        f"the log ends while the server is {phase.en} (last step: line {hit.line.number}, {_said(hit)}) and holds no error; missing are the lines after it,"
        f" how old the last one is, and what the process does: {probe}, `top`, `nvidia-smi`",
        f"日志结束时服务正在{phase.zh}（最后一步：第 {hit.line.number} 行，{_said(hit)}），没有任何错误；缺少之后的日志、最后一行距今多久，以及进程正在做什么："
        f"{probe}、`top`、`nvidia-smi`",
    )


def latest_stage(case: Case) -> tuple[str, Hit]:
    """The step of the start that stands last in the log. Raises ValueError when there is none."""
    found = [(stage, hit) for stage, seen in STAGES.items() if (hit := case.log.last(seen)) is not None]
    order = {source: index for index, source in enumerate(case.log.sources)}
    return max(found, key=lambda pair: (order.get(pair[1].line.source, 0), pair[1].line.number))


def _unknown_log(case: Case) -> Words | None:
    if not case.log.lines or case.context.tree or any(case.log.sees(sight) for sight in case.log.kept):
        return None
    return Words(
        f"none of the {case.log.lines} lines is known: the log of the server itself (vLLM, Headway, llama.cpp, SGLang, TensorRT-LLM) from its start on is missing",
        f"{case.log.lines} 行日志中没有一行能识别：缺少服务自身（vLLM、Headway、llama.cpp、SGLang、TensorRT-LLM）从启动开始的日志",
    )


def _unknown_gpus(case: Case) -> Words | None:
    """A card is there, and nobody could say more of it."""
    why = case.context.text("host.gpus_unknown")
    if not why:
        return None
    return Words(
        f"this machine has an NVIDIA driver, but nothing is known of its GPUs ({why}); `pip install nvidia-ml-py`, or `nvidia-smi` where it works, would show their memory and use",
        f"本机装有 NVIDIA 驱动，但对其 GPU 一无所知（{why}）；`pip install nvidia-ml-py`，或能运行的 `nvidia-smi`，可显示显存与使用情况",
    )


def _said(hit: Hit) -> str:
    text = hit.line.quote().text
    return text if len(text) <= _TEXT_CHARS else text[:_TEXT_CHARS] + "…"
