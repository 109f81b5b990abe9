"""One core of the host is the limit (T6), or debugging that multiplies its work was left on (T14)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.complaint import complains_of
from headway.doctor.facts.fact import Fact
from headway.doctor.facts.load import clock_seconds, shape_of
from headway.doctor.facts.processor_use import Busy, busy_processes, gpu_use, on_cpu
from headway.doctor.facts.requests import RequestRow
from headway.doctor.finding import STATED, Abstention, Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

TRACE: Final = sight("VLLM_TRACE_FUNCTION is enabled")
DEBUG_LINE: Final = sight("DEBUG 0", "DEBUG 1", "DEBUG:", " DEBUG ", "[DEBUG]", "DEBUG|", pattern=r".", series=True)
REQUEST_LOGGED: Final = sight("Received request ", series=True)

_WHOLE_CORE: Final = 0.90
_GPU_WAITS: Final = 0.70
_FLOOD: Final = 20
_SHARE: Final = re.compile(r"(?i)(?:cpu|core|gpu)\w*_(?:pct|percent|util|use)$|^(?:gpu|cpu)_?(?:pct|util|%)|_cpu$")
_FRONT: Final = re.compile(r"(?i)\bapi\b|api.?server|uvicorn|http|front|launcher|openai|metrics \(")
_ENGINE: Final = re.compile(r"(?i)engine.?core|engine|worker|scheduler")
_OTHERS: Final = re.compile(r"(?i)bench|client|locust|guidellm|aiperf|load ?gen|k6|wrk|host|total|system|node|machine")


def host_core(case: Case) -> Found | Abstention | None:
    if on_cpu(case.log, case.context, case.device):
        return None
    told = _in_table(case.requests)
    gpu = told[1] if told else gpu_use(case.context)
    if gpu is not None and gpu.value >= _GPU_WAITS:
        return None
    # several threads may use more than a core; what is pinned to one stands at 100 %
    full = [busy for busy in ([told[0]] if told else busy_processes(case.context)) if _WHOLE_CORE <= busy.cores <= 1.6 and not _OTHERS.search(busy.name)]
    known = next((busy for busy in full if _FRONT.search(busy.name) or _ENGINE.search(busy.name)), None)
    pinned = known or next(iter(full), None)
    if pinned is None:
        return None
    shape = shape_of(case.load)
    if known is None and (gpu is None or shape is None):
        return None
    if gpu is None and (shape is None or shape.running < 2):
        return Abstention(
            Words(
                f"{pinned.name} uses a whole core, but the GPU's use is unknown (nvidia-smi dmon -s u under this load would tell whether it waits)",
                f"{pinned.name} 占满了一个核，但不知道 GPU 利用率（在此负载下运行 nvidia-smi dmon -s u 可判断它是否在等待）",
            ),
            [pinned.fact.quote],
        )
    front = bool(_FRONT.search(pinned.name)) and not re.search(r"(?i)engine.?core", pinned.name)
    who, who_zh = ("the API process (text, JSON, streaming)", "API 进程（文本、JSON、流式输出）") if front else ("the engine process (scheduling, sampling)", "引擎进程（调度、采样）")
    gpu_text = f"the GPU is busy only {gpu.value:.0%} of the time" if gpu else "the GPU's use is unknown"
    gpu_zh = f" GPU 只有 {gpu.value:.0%} 的时间在计算" if gpu else " GPU 利用率未知"
    load = f" at {shape.running:g} running requests and {shape.generation_rate:.0f} tokens/s" if shape and shape.generation_rate else ""
    load_zh = f"（{shape.running:g} 个请求在运行，{shape.generation_rate:.0f} tokens/s）" if shape and shape.generation_rate else ""
    return Found(
        cause=Words(
            f"One host core is the limit: {who} uses {pinned.cores:.0%} of one core while {gpu_text}{load}."
            " Python runs one thread at a time, so more cores or a larger GPU change nothing for that process.",
            f"瓶颈是主机的一个 CPU 核：{who_zh}占用了一个核的 {pinned.cores:.0%}，而{gpu_zh}{load_zh}。Python 同一时刻只运行一个线程，因此更多的核或更大的 GPU 对该进程没有作用。",
        ),
        evidence=[pinned.fact.quote, *([gpu.quote] if gpu else []), *([shape.middle.quote] if shape else [])],
        fixes=_less_host_work(case, front, max(2, math.ceil(pinned.cores / 0.6))),
        verify=Words(
            f"py-spy top --pid $(pgrep -f {'api_server' if front else 'EngineCore'} | head -1) under the same load: below 90 % of a core, and tokens/s rises",
            f"在相同负载下运行 py-spy top --pid $(pgrep -f {'api_server' if front else 'EngineCore'} | head -1)：占用低于一个核的 90%，tokens/s 上升",
        ),
        confidence=0.65 if gpu is None or known is None else 0.85,
        weight="degraded",
        explains=("T4",),
    )


def _in_table(rows: Sequence[RequestRow]) -> tuple[Busy, Fact[float]] | None:
    """The row in which a process uses most of a core and the GPU least: columns such as `api_cpu_pct` and `gpu_pct`."""
    found: list[tuple[Busy, Fact[float]]] = []
    for row in rows:
        columns = {name: value for name in row.cells if (value := row.number(name)) is not None and _SHARE.search(name)}
        gpu = next((value for name, value in columns.items() if "gpu" in name.lower()), None)
        busiest = max(((value, name) for name, value in columns.items() if "gpu" not in name.lower()), default=None)
        if gpu is not None and busiest is not None and busiest[0] >= 100 * _WHOLE_CORE:
            found.append((Busy(busiest[1].replace("_", " "), busiest[0] / 100, Fact(busiest[0] / 100, row.quote)), Fact(gpu / 100, row.quote)))
    return min(found, key=lambda pair: pair[1].value, default=None)


def _less_host_work(case: Case, front: bool, processes: int) -> list[Fix]:
    fixes: list[Fix] = []
    logged = case.log.count(REQUEST_LOGGED) > 20 or case.launch.is_on("enable_log_requests")
    if logged:
        fixes.append(Fix(Words("stop logging every request", "不再逐条记录请求"), "--no-enable-log-requests"))
    if front:
        fixes.append(Fix(Words(f"run {processes} API processes in front of the engine", f"在引擎前运行 {processes} 个 API 进程"), f"--api-server-count {processes}"))
        fixes.append(Fix(Words("send several tokens per stream event", "每个流式事件发送多个 token"), "--stream-interval 8"))
        fixes.append(Fix(Words("switch the access log off", "关闭访问日志"), "--disable-uvicorn-access-log"))
        fixes.append(
            Fix(
                Words(
                    "take text work off each token: fewer stop strings, no logprobs, no streaming where nobody reads along; a host with faster cores",
                    "减少每个 token 的文本工作：更少的 stop 字符串、不要 logprobs、无人实时阅读时不用流式输出；或换单核更快的主机",
                )
            )
        )
    else:
        fixes.append(Fix(Words("overlap scheduling with the GPU's work", "让调度与 GPU 计算重叠"), "--async-scheduling"))
        fixes.append(
            Fix(
                Words(
                    "take work off each step: no logprobs, no penalties or per-request logits processors, simpler grammars; a host with faster cores",
                    "减少每一步的主机工作：不要 logprobs、惩罚项和逐请求的 logits 处理器，使用更简单的语法；或换单核更快的主机",
                )
            )
        )
    return fixes


def debugging_left_on(case: Case) -> Found | None:
    trace = case.log.first(TRACE)
    variable = case.context.text("env.VLLM_TRACE_FUNCTION")
    if trace is not None or variable not in ("", "0", "false", "False", "None"):
        quotes = [trace.quote()] if trace else [case.context.quote("env.VLLM_TRACE_FUNCTION", f"VLLM_TRACE_FUNCTION={variable}")]
        return _debugging(case, quotes, STATED, "VLLM_TRACE_FUNCTION")
    lines, all_lines = case.log.count(DEBUG_LINE), case.log.lines
    bothers = complains_of(case.context, "throughput") or _crawls(case)
    if not lines or lines * (4 if bothers and lines >= _FLOOD else 2) < all_lines:
        return None
    level = case.context.text("env.VLLM_LOGGING_LEVEL")
    quotes = [case.log.hits(DEBUG_LINE)[0].quote()]
    if level.upper() == "DEBUG":
        quotes.append(case.context.quote("env.VLLM_LOGGING_LEVEL", f"VLLM_LOGGING_LEVEL={level}"))
    per_second = _per_second(case, lines)
    flood = per_second is not None and per_second >= 20
    return _debugging(case, quotes, 0.7 if flood or (bothers and lines >= _FLOOD) else 0.45, "VLLM_LOGGING_LEVEL", per_second)


def _crawls(case: Case) -> bool:
    """A GPU that gives a sequence fewer tokens per second than people read."""
    shape = shape_of(case.load)
    return shape is not None and shape.per_request is not None and 0 < shape.per_request < 5 and not on_cpu(case.log, case.context, case.device)


def _per_second(case: Case, lines: int) -> float | None:
    hits = case.log.hits(DEBUG_LINE)
    first, last = clock_seconds(hits[0].line.clock), clock_seconds(hits[-1].line.clock)
    if first is None or last is None or last < first or lines < 200:
        return None
    return lines / max(1.0, last - first)


def _debugging(case: Case, quotes: list[Quote], confidence: float, name: str, per_second: float | None = None) -> Found:
    shape = shape_of(case.load)
    speed = f" Now: {shape.generation_rate:.1f} tokens/s with {shape.running:g} running." if shape and shape.generation_rate is not None else ""
    speed_zh = f"目前 {shape.running:g} 个请求在运行，共 {shape.generation_rate:.1f} tokens/s。" if shape and shape.generation_rate is not None else ""
    if name == "VLLM_TRACE_FUNCTION":
        what = "VLLM_TRACE_FUNCTION is set: every Python function that the server calls is written to a file, which slows it down by an order of magnitude."
        what_zh = "设置了 VLLM_TRACE_FUNCTION：服务器调用的每个 Python 函数都会写入文件，速度会慢一个数量级。"
        fix = Fix(Words("remove VLLM_TRACE_FUNCTION from the environment and restart", "从环境变量中去掉 VLLM_TRACE_FUNCTION 并重启"), "unset VLLM_TRACE_FUNCTION")
    else:
        often = f", {per_second:.0f} per second" if per_second else ""
        often_zh = f"，每秒 {per_second:.0f} 行" if per_second else ""
        share = case.log.count(DEBUG_LINE) / max(1, case.log.lines)
        what = f"{share:.0%} of the log ({case.log.count(DEBUG_LINE)} lines{often}) are DEBUG lines: the server formats and writes text at every step."
        what_zh = f"日志中 {share:.0%}（{case.log.count(DEBUG_LINE)} 行{often_zh}）是 DEBUG 行：服务器每一步都在格式化并写出文本。"
        fix = Fix(Words("log at INFO", "使用 INFO 日志级别"), "export VLLM_LOGGING_LEVEL=INFO")
    return Found(
        cause=Words(what + speed, what_zh + speed_zh),
        evidence=[*quotes, *([shape.middle.quote] if shape else [])],
        fixes=[fix],
        verify=Words(
            "restart and send the same load: the line is gone and tokens/s in `Avg generation throughput` comes back by an order of magnitude"
            if name == "VLLM_TRACE_FUNCTION"
            else "restart and send the same load: no DEBUG lines, and tokens/s is compared with before",
            "重启并用相同负载：该行消失，`Avg generation throughput` 恢复一个数量级" if name == "VLLM_TRACE_FUNCTION" else "重启并用相同负载：没有 DEBUG 行，并与之前的 tokens/s 比较",
        ),
        confidence=confidence,
        weight="degraded",
        explains=("T4", "T6") if confidence > 0.5 else (),
    )


RULES: Final = (
    Rule(
        id="T6",
        title=Words("One host core is the limit", "主机的一个 CPU 核是瓶颈"),
        symptoms=Words("the API or engine process at 100 % of one core, the GPU below 70 %", "API 或引擎进程占满一个核，GPU 低于 70%"),
        why=Words("text, streaming, scheduling and sampling run in one Python process", "文本处理、流式输出、调度和采样都在一个 Python 进程里"),
        needs=Words("CPU use per process, GPU use", "每个进程的 CPU 使用率、GPU 利用率"),
        remedy=Words("less work per token on the host, `--api-server-count`, `--stream-interval`, request logs off, a faster core", "减少主机上每个 token 的工作，`--api-server-count`、`--stream-interval`，关闭请求日志，换更快的核"),
        check=Words("a profile of that process; time per token", "对该进程做 profile；每 token 耗时"),
        judge=host_core,
        sees=(REQUEST_LOGGED,),
    ),
    Rule(
        id="T14",
        title=Words("Debugging is left on", "调试选项没有关闭"),
        symptoms=Words("`VLLM_TRACE_FUNCTION is enabled`, floods of DEBUG lines", "`VLLM_TRACE_FUNCTION is enabled`、大量 DEBUG 行"),
        why=Words("every function call or step is written down", "每次函数调用或每一步都会被写下来"),
        needs=Words("the log's first lines or the environment", "日志开头几行或环境变量"),
        remedy=Words("unset `VLLM_TRACE_FUNCTION`, `VLLM_LOGGING_LEVEL=INFO`", "取消 `VLLM_TRACE_FUNCTION`，设 `VLLM_LOGGING_LEVEL=INFO`"),
        check=Words("an order of magnitude comes back", "速度恢复一个数量级"),
        judge=debugging_left_on,
        sees=(TRACE, DEBUG_LINE),
    ),
)
