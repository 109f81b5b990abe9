"""Slow answers of runtimes: threads that share too few cores (R20), and which phase takes the time (R31)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.cpu_threads import THREADS, cpu_limit_of, throttled_share
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.rules.runtime.deployments import SERVED, STARTED, deployment
from headway.doctor.rules.runtime.deployments import SIGHTS as DEPLOYMENTS
from headway.doctor.rules.runtime.readings import PRINTED, last, phase_seconds, readings, transport_seconds
from headway.doctor.rules.runtime.unknown import fields_of
from headway.doctor.words import Words

TIMING: Final = sight(
    "stage timing", "forward_ms", "queue_ms", "transport_ms", "forward_seconds", pattern=r"stage timing\b|\b(?:(?:forward|queue|transport)_ms|forward_seconds)=", series=True
)
SERVER_TIMING: Final = sight("erver-timing", "erver-Timing", pattern=r"[Ss]erver-[Tt]iming: (?P<phases>.*)")
_SLOW_SECONDS: Final = 0.25
_THROTTLED: Final = 0.1
_COMPLAINT: Final = re.compile(r"slow|latency|takes long|late\b|慢|延迟|卡", re.IGNORECASE)
_PHASE: Final = re.compile(r"(?P<name>\w{1,40});dur=(?P<ms>\d+(?:\.\d+)?)(?![\d.])")


def threads_share_too_few_cores(case: Case) -> Found | None:
    workers = _workers(case)
    limit = cpu_limit_of(case.context)
    if not workers or limit is None:
        return None
    budget = limit.threads
    threads = max(workers.values())
    total = sum(workers.values())
    count = len(workers)
    periods, throttled = case.context.number("host.cgroup.nr_periods"), case.context.number("host.cgroup.nr_throttled")
    share = throttled_share(case.context)
    forward = _mean(case, "forward")
    other = _other_load(case)
    crowded = total > budget and (count > 1 or (share is not None and share >= _THROTTLED and case.log.sees(STARTED, SERVED)))
    if not crowded and not (other and total + other[0] > budget):
        return None
    slow = (share is not None and share >= _THROTTLED) or (forward is not None and forward >= 0.3)
    if not slow:
        return None
    left = max(1, int(budget - (other[0] if other else 0)))
    each = max(1, left // count)
    quotes: list[Quote] = [hit.quote() for hit in case.log.hits(THREADS)[:2]]
    quotes.append(limit.fact.quote)
    if case.context.has("host.cgroup.nr_throttled"):
        quotes.append(case.context.quote("host.cgroup.nr_throttled"))
    if case.context.has("env.VLLM_SRUN_CPU_THREADS"):
        quotes.append(case.context.quote("env.VLLM_SRUN_CPU_THREADS", f"VLLM_SRUN_CPU_THREADS={case.context.text('env.VLLM_SRUN_CPU_THREADS')}"))
    stalls = Words(
        f"; the kernel throttled {throttled:g} of {periods:g} periods ({share:.0%})" if share and throttled is not None and periods else "",
        f"；内核在 {periods:g} 个周期中限流了 {throttled:g} 个（{share:.0%}）" if share and throttled is not None and periods else "",
    )
    takes = Words(f" A forward pass takes {forward * 1000:.0f} ms." if forward else "", f"一次前向耗时 {forward * 1000:.0f} ms。" if forward else "")
    beside = Words(f" Beside them {other[1]} uses {other[0]:g} cores." if other else "", f"此外 {other[1]} 占用 {other[0]:g} 个核心。" if other else "")
    fixes = [
        Fix(
            Words(
                f"{left} cores{' that are left' if other else ''} / {count} busy worker{'s' if count > 1 else ''} = {each} thread{'s' if each > 1 else ''} each, in the router's environment",
                f"{'剩余 ' if other else ''}{left} 个核心 / {count} 个繁忙 worker = 每个 {each} 线程，设在路由器环境中",
            ),
            f"VLLM_SRUN_CPU_THREADS={each}",
        ),
        Fix(Words("a runtime that you start yourself takes it as a flag", "自行启动的运行时用参数指定"), f"--threads {each}"),
    ]
    if other:
        fixes.append(
            Fix(
                Words(f"and cores of their own, away from {other[1]}", f"并分配独占核心，避开 {other[1]}"),
                f"taskset -c {budget - each * count}-{budget - 1} vllm-sr serve",
            )
        )
    return Found(
        cause=Words(
            f"{count} worker{'s' if count > 1 else ''} x {threads} threads = {total} threads share {budget} cores{stalls.en}.{takes.en}{beside.en} Every thread of a pass waits for the slowest; the models are not too large.",
            f"{count} 个 worker x {threads} 线程 = {total} 个线程争用 {budget} 个核心{stalls.zh}。{takes.zh}{beside.zh}每次前向都要等最慢的线程；模型并不算大。",
        ),
        evidence=quotes,
        fixes=fixes,
        verify=Words(
            "`grep nr_throttled /sys/fs/cgroup/cpu.stat` stays flat for a minute under load, and forward seconds fall",
            "负载下一分钟内 `grep nr_throttled /sys/fs/cgroup/cpu.stat` 不再增长，前向耗时下降",
        ),
        confidence=STATED if share is not None and share >= _THROTTLED and crowded else 0.75,
        weight="degraded",
        explains=("T7", "R31", "R12"),
    )


def _workers(case: Case) -> Mapping[str, int]:
    """CPU worker -> its threads."""
    found: dict[str, int] = {}
    for hit in case.log.hits(THREADS):
        found[str(hit.line.fields.get("deployment", "")) or hit.line.process or str(hit.line.number)] = int(hit.number("threads" if hit["threads"] else "ours"))
    if found:
        return found
    given = case.context.number("env.VLLM_SRUN_CPU_THREADS")
    started = {
        str(fields_of(hit).get("deployment", hit.line.number))
        for hit in case.log.hits(STARTED)
        if fields_of(hit).get("device", "cpu") == "cpu" and "process_started" in hit.line.text
    }
    return dict.fromkeys(sorted(started), int(given)) if given else {}


def _other_load(case: Case) -> tuple[float, str] | None:
    """Cores that an LLM server or the like keeps busy, from the context's processes."""
    for each in case.context.items("host.processes"):
        fields: Mapping[str, Any] = each if isinstance(each, dict) else {}
        text = " ".join(map(str, fields.values())) if fields else str(each)
        percent = next((value for name in ("cpu_percent", "cpu", "pcpu") if isinstance(value := fields.get(name), (int, float))), None)
        named = re.search(r"\b(vllm serve|llama-server|ollama|sglang|text-generation|python\S* -m vllm|VLLM::EngineCore)\b", text)
        if named and percent is not None and percent >= 90:
            return round(percent / 100), named[1]
    return None


def _timings(case: Case) -> dict[str, tuple[float, Quote]]:
    """phase -> mean seconds, of the router's stage lines or of Server-Timing."""
    sums: dict[str, tuple[float, int, Quote]] = {}
    for hit in case.log.hits(TIMING, SERVER_TIMING):
        for name, seconds in _phases(hit).items():
            total, count, quote = sums.get(name, (0.0, 0, hit.quote()))
            sums[name] = (total + seconds, count + 1, quote)
    return {name: (total / count, quote) for name, (total, count, quote) in sums.items()}


def _phases(hit: Hit) -> Mapping[str, float]:
    if "phases" in hit.match.re.groupindex:
        return {m["name"]: float(m["ms"]) / 1000 for m in _PHASE.finditer(hit["phases"])}
    fields = fields_of(hit)
    found = {}
    for name, value in fields.items():
        for suffix, unit in (("_ms", 0.001), ("_seconds", 1.0)):
            if name.endswith(suffix):
                with suppress(TypeError, ValueError):
                    found[name.removesuffix(suffix)] = float(value) * unit
    return found


def _mean(case: Case, phase: str) -> float | None:
    scraped = phase_seconds(case, phase)
    timed = _timings(case).get(phase)
    return scraped[0] if scraped else timed[0] if timed else None


def where_the_time_goes(case: Case) -> Found | None:
    timed = _timings(case)
    phases: dict[str, tuple[float, Quote]] = {}
    for phase in ("forward", "queue", "tokenize", "parse", "post"):
        if found := phase_seconds(case, phase) or timed.get(phase):
            phases[phase] = found
    if found := transport_seconds(case) or timed.get("transport"):
        phases["transport"] = found
    phases |= _own(case) if not phases else {}
    if not phases:
        return None
    total = sum(seconds for seconds, _ in phases.values())
    longest = max(phases, key=lambda phase: phases[phase][0])
    seconds, quote = phases[longest]
    complained = bool(_COMPLAINT.search(case.context.text("said")))
    if total < (_SLOW_SECONDS if complained else 2 * _SLOW_SECONDS) or seconds < 0.5 * total:
        return None
    name = next((d for hit in case.log.hits(TIMING) if (d := str(fields_of(hit).get("deployment", "")))), "") or next(
        (d for each in readings(case, "vsr_model_runtime_ready") if (d := each.labels.get("deployment", ""))), ""
    )
    place = deployment(case, name)
    shown = ", ".join(f"{phase} {value:.3g} s" for phase, (value, _) in phases.items())
    advice, fixes = _advice(longest, name, place.device)
    return Found(
        cause=Words(
            f"A call of {name or 'the runtime'} takes {total:.2f} s, {seconds / total:.0%} of it in {longest} ({shown}). {advice.en}",
            f"对 {name or '该运行时'}的一次调用耗时 {total:.2f} 秒，其中 {seconds / total:.0%} 在 {longest}（{shown}）。{advice.zh}",
        ),
        evidence=[quote],
        fixes=fixes,
        verify=Words(
            f"the seconds of {longest} in `curl -s localhost:9190/metrics | grep vsr_model_runtime` fall under the same load",
            f"相同负载下 `curl -s localhost:9190/metrics | grep vsr_model_runtime` 中 {longest} 的耗时下降",
        ),
        confidence=0.75,
        weight="degraded",
    )


def _own(case: Case) -> dict[str, tuple[float, Quote]]:
    """Of a runtime that a person starts: its own histograms."""
    found: dict[str, tuple[float, Quote]] = {}
    values: dict[str, float] = {}
    for name in ("vllm_srun_request_duration_seconds", "vllm_srun_queue_duration_seconds", "vllm_srun_forward_duration_seconds"):
        for suffix in ("_p95", "_avg", "_mean"):
            if mean := last(case, name + suffix):
                values[name] = mean.value
                found[name.split("_")[2]] = (mean.value, mean.quote)
                break
        sums, counts = readings(case, f"{name}_sum"), readings(case, f"{name}_count")
        if sums and counts and counts[-1].value:
            values[name] = sums[-1].value / counts[-1].value
            found[name.split("_")[2]] = (values[name], sums[-1].quote)
    if "request" in found:
        rest = found["request"][0] - found.get("queue", (0.0, None))[0] - found.get("forward", (0.0, None))[0]
        _, quote = found.pop("request")
        if "forward" not in found:
            found["forward"] = (max(0.0, rest), quote)
    return found


def _advice(phase: str, name: str, device: str) -> tuple[Words, list[Fix]]:
    owner = f"global.model_catalog.deployments.{name or 'primary'}"
    if phase == "queue":
        return (
            Words("The model is saturated; the forward passes are not slow.", "模型已饱和，前向本身并不慢。"),
            [
                Fix(
                    Words("a second replica or a GPU, a smaller model, or a process of its own", "第二个副本或 GPU、更小的模型，或独立进程"),
                    f"{owner}.replicas: [{{device: auto}}, {{device: auto}}]",
                ),
            ],
        )
    if phase == "transport":
        return (
            Words(
                "The time passes between router and runtime: busy cores on this host, or a remote endpoint.",
                "时间耗在路由器与运行时之间：本机核心繁忙，或 endpoint 在远端。",
            ),
            [
                Fix(Words("give router and runtime cores that nothing else uses", "为路由器与运行时分配独占核心"), "taskset -c 0-3 vllm-sr serve"),
                Fix(
                    Words("or bring the runtime to this host, over a Unix socket", "或把运行时移到本机，通过 Unix socket 访问"),
                    f"{owner}.endpoint: unix:///run/vllm-srun/srun.sock",
                ),
            ],
        )
    return (
        Words("The model itself is slow on this device.", "模型本身在该设备上就慢。"),
        [
            Fix(Words("shorten the forward pass: a GPU, or a smaller model", "缩短前向：GPU，或更小的模型"), f"{owner}.device: {'cuda:0' if device in ('', 'cpu') else 'auto'}"),
            Fix(Words("many questions about one input: compute it once", "对同一输入问很多问题：只计算一次"), f"{owner}.enable_shared_context: true"),
        ],
    )


RULES: Final = (
    Rule(
        id="R20",
        title=Words("Threads of the workers share too few cores", "worker 线程争用过少的核心"),
        symptoms=Words("high forward seconds, several workers, `nr_throttled` grows", "前向耗时高、多个 worker、`nr_throttled` 增长"),
        why=Words("threads of all workers exceed the CPU budget, or other work shares the cores", "所有 worker 的线程超出 CPU 预算，或与其他负载共用核心"),
        needs=Words("threads x workers, quota, affinity, other load", "线程数 x worker 数、配额、亲和性、其他负载"),
        remedy=Words("VLLM_SRUN_CPU_THREADS = budget / busy workers, dedicated cores", "VLLM_SRUN_CPU_THREADS = 预算 / 繁忙 worker 数，独占核心"),
        check=Words("throttling flat, forward falls", "限流不再增长，前向耗时下降"),
        judge=threads_share_too_few_cores,
        sees=(THREADS, TIMING, SERVER_TIMING, PRINTED, *DEPLOYMENTS),
    ),
    Rule(
        id="R31",
        title=Words("Calls of a runtime are slow in one phase", "运行时调用在某一阶段耗时"),
        symptoms=Words("slow requests", "请求缓慢"),
        why=Words("bound by forward, queue or transport", "受前向、排队或传输限制"),
        needs=Words(
            "`vsr_model_runtime_server_seconds` by phase against `_transport_seconds`", "按阶段的 `vsr_model_runtime_server_seconds` 与 `_transport_seconds`"
        ),
        remedy=Words("by phase: smaller model or GPU; capacity; free cores", "按阶段：小模型或 GPU；增加容量；空闲核心"),
        check=Words("that phase falls", "该阶段耗时下降"),
        judge=where_the_time_goes,
        sees=(TIMING, SERVER_TIMING, PRINTED, *DEPLOYMENTS),
    ),
)
