"""N16: health says yes and the engine does not move."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.load import LoadSample
from headway.doctor.facts.own_probe import UNANSWERED
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.network.server_address import served_at
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

HEALTHY: Final = sight(
    'GET /health HTTP/1.1" 200',
    'GET /version HTTP/1.1" 200',
    'GET /v1/models HTTP/1.1" 200',
    'GET /ping HTTP/1.1" 200',
    '"GET /health" 200',
)
DEAD: Final = sight("EngineDeadError", "engine_dead", "EngineCore encountered an issue")
# why an engine stands still, where a collective or a dead rank says it
DEEPER: Final = sight(
    "No available shared memory broadcast block found",
    "Watchdog caught collective operation timeout",
    "died unexpectedly",
)
# a model that was put to sleep serves nothing on purpose
ASLEEP: Final = sight("seconds to fall asleep", "Sleep mode freed", "POST /sleep")
AWAKE: Final = sight("seconds to wake up", "POST /wake_up")
_INTERVALS: Final = 6
_SECONDS: Final = 60.0


def engine_does_not_move(case: Case) -> Found | None:
    """The last samples all have work (running or waiting) and neither read nor wrote a token."""
    asleep, awake = case.log.last(ASLEEP), case.log.last(AWAKE)
    if asleep is not None and (awake is None or awake.line.number < asleep.line.number):
        return None
    still = _standing(case.load)
    dead = case.log.first(DEAD)
    if still is None and not (
        dead is not None and case.log.last(HEALTHY, DEAD) not in (None, dead) and case.log.sees(HEALTHY)
    ):
        return _unanswered(case)
    answered = case.log.last(HEALTHY)
    at = still[0].quote.line if still and still[0].quote.line is not None else None
    earlier = [hit for hit in case.exceptions.first if at is None or hit.line.number < at]
    healthy = Words(
        " while /health still answers 200" if answered else "", "，而 /health 仍返回 200" if answered else ""
    )
    if still:
        last = still[-1]
        seconds = last.t - still[0].t if last.t is not None and still[0].t is not None else None
        shown = Words(
            f"{len(still)} intervals" + (f" ({seconds:.0f} s)" if seconds else ""),
            f"{len(still)} 个统计周期" + (f"（{seconds:.0f} 秒）" if seconds else ""),
        )
        running, waiting = int(last.running or 0), int(last.waiting or 0)
        kind = (
            Words(
                "the engine process is dead or frozen and waiting requests are never scheduled",
                "引擎进程已死或卡住，等待的请求从未被调度",
            )
            if not running
            else Words("a step is stuck (hang) in the engine process", "引擎进程的某一步卡住了（挂起）")
        )
        cause = Words(
            f"For {shown.en} there was no progress: {running} running, {waiting} waiting, 0.0 tokens/s{healthy.en}; {kind.en}. The health check tests the HTTP thread only, so waiting does not help.",
            f"连续 {shown.zh}没有任何进展：运行 {running}，等待 {waiting}，0.0 tokens/s{healthy.zh}；{kind.zh}。健康检查只检查 HTTP 线程，继续等待没有用。",
        )
        evidence = [still[0].quote, last.quote, *quoted(answered)]
    else:
        cause = Words(
            f"The engine process is dead (EngineDeadError){healthy.en}: the API process lives on and every request fails until a restart.",
            f"引擎进程已死（EngineDeadError）{healthy.zh}：API 进程仍在，但在重启之前所有请求都会失败。",
        )
        evidence = quoted(dead, answered)
    known = bool(earlier) or case.log.sees(DEEPER)
    return Found(
        cause=cause,
        evidence=evidence,
        fixes=[
            _restart(case),
            Fix(
                Words(
                    "read what the engine process printed before it died; the first error of that process is what to repair",
                    "查看引擎进程在死亡之前的输出；需要修复的是该进程的第一个错误",
                )
            ),
        ]
        if still is None
        else [
            _STACK,
            _restart(case),
            Fix(
                Words(
                    "judge life by progress: a probe that asks for one token with a time limit",
                    "以进展判断存活：用带时限、只要求一个 token 的请求做探针",
                ),
                _probe(case),
            ),
        ],
        verify=Words(
            f"a 1-token completion returns within seconds: `{_probe(case)}` exits with 0",
            f"1 token 补全在数秒内返回：`{_probe(case)}` 退出码为 0",
        ),
        confidence=0.6 if known else 0.92 if still and len(still) >= _INTERVALS else 0.8,
        title=Words("The engine is stuck or dead, health says 200", "引擎卡住或已死，健康检查却返回 200")
        if answered
        else Words("The engine is stuck or dead", "引擎卡住或已死"),
        at=at,
        explains=("N7", "N8", "N9", "T1", "T2"),
    )


def _unanswered(case: Case) -> Found | None:
    """A tiny request of our own got nothing, health answered, and no token was made meanwhile for anybody."""
    probe, answered = case.log.first(UNANSWERED), case.log.last(HEALTHY)
    if (
        probe is None
        or answered is None
        or any((sample.generation_rate or 0) > 0 or (sample.prompt_rate or 0) > 0 for sample in case.load)
    ):
        return None
    last = case.load[-1] if case.load else None
    busy = last is not None and (last.running or 0) > 0
    shown = Words("", "") if last is None else Words(
        f" Meanwhile {int(last.running or 0)} were running and {int(last.waiting or 0)} waiting, and no token was made.",
        f"此间运行 {int(last.running or 0)}、等待 {int(last.waiting or 0)}，没有生成任何 token。",
    )  # fmt: skip
    return Found(
        cause=Words(
            f"/health answers, and a request for {probe['tokens']} tokens got no token within {probe['seconds']} s.{shown.en} The health check tests the HTTP thread only.",
            f"/health 有应答，但一个只要 {probe['tokens']} 个 token 的请求在 {probe['seconds']} 秒内没有得到任何 token。{shown.zh}健康检查只检查 HTTP 线程。",
        ),
        evidence=[probe.quote(), answered.quote(), *([last.quote] if last is not None else [])],
        fixes=[_STACK, _restart(case)],
        verify=Words(f"`{_probe(case)}` exits with 0 within seconds", f"`{_probe(case)}` 在数秒内以 0 退出"),
        confidence=0.85 if busy else 0.7,
        title=Words("The engine is stuck or dead, health says 200", "引擎卡住或已死，健康检查却返回 200"),
        explains=("N7", "N8", "N9", "T1", "T2"),
    )


_STACK: Final = Fix(
    Words(
        "take a stack dump of the engine process first, it shows where it stands",
        "先抓取引擎进程的调用栈，它显示卡在哪里",
    ),
    "for p in $(pgrep -f 'EngineCore|vllm serve|headway serve|sglang'); do py-spy dump --pid $p; done",
)


def _restart(case: Case) -> Fix:
    command = case.launch.command if re.match(r"\S*(?:vllm|headway|python\S*|docker) ", case.launch.command) else ""
    return Fix(
        Words("restart the server; nothing else brings it back", "重启服务器，没有其他办法恢复"), command or None
    )


def _standing(samples: Sequence[LoadSample]) -> list[LoadSample] | None:
    """The run of standing samples at the end, None when it is too short to tell from a long prefill."""
    run: list[LoadSample] = []
    for sample in reversed(samples):
        busy = (sample.running or 0) > 0 or (sample.waiting or 0) > 0
        if not busy or sample.generation_rate is None or sample.generation_rate > 0 or (sample.prompt_rate or 0) > 0:
            break
        run.append(sample)
    run.reverse()
    if len(run) < 3:
        return None
    first, last = run[0].t, run[-1].t
    if first is None and isinstance(
        run[0].source, Quote
    ):  # scrapes without their times are seldom nearer than ten seconds
        return run
    long = first is not None and last is not None and last - first >= _SECONDS
    return run if long or len(run) >= _INTERVALS else None


def _probe(case: Case) -> str:
    model = (
        case.launch.value("served_model_name").strip("[]'\"")
        or case.launch.model
        or case.context.text("endpoint.models.0")
        or "default"
    )
    return f'curl -sf -m 30 {served_at(case)}/v1/completions -H \'Content-Type: application/json\' -d \'{{"model": "{model.split(chr(39))[0]}", "prompt": "1", "max_tokens": 1}}\''


RULES: Final = (
    Rule(
        id="N16",
        title=Words("Health says yes, the engine does not move", "健康检查正常，但引擎没有进展"),
        symptoms=Words(
            "running or waiting above 0 with 0.0 tokens/s for many intervals, /health 200",
            "running 或 waiting 大于 0，多个周期 0.0 tokens/s，而 /health 返回 200",
        ),
        why=Words(
            "the engine process died or a step hangs; the health check tests only the HTTP thread. Zeros without requests are idle and healthy",
            "引擎进程已死或某一步挂起；健康检查只检查 HTTP 线程。没有请求时的零是空闲，属正常",
        ),
        needs=Words("statistics lines or metrics over a minute", "一分钟以上的统计行或指标"),
        remedy=Words("stack dump, restart, liveness by progress", "抓栈、重启、以进展判断存活"),
        check=Words("a 1-token completion", "单 token 补全"),
        judge=engine_does_not_move,
        sees=(HEALTHY, DEAD, DEEPER, ASLEEP, AWAKE, UNANSWERED),
    ),
)
