"""Why signals are unknown: too late (R12), nobody there (R13), queue full (R14), and what a safety rule makes of it (R30)."""

from __future__ import annotations

import math
import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.masking import mask
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.rules.runtime.deployments import SERVED, Deployment, deployment, documents, inside
from headway.doctor.rules.runtime.deployments import SIGHTS as DEPLOYMENTS
from headway.doctor.rules.runtime.readings import Reading, growth, last, phase_seconds, readings
from headway.doctor.rules.runtime.statement import READY
from headway.doctor.rules.runtime.unknown import (
    BLOCKED,
    RULE_MATCHED,
    SIGHTS,
    SIGNAL,
    WORKER_FULL,
    Unknown,
    fields_of,
    is_ready,
    unknown_answers,
)
from headway.doctor.words import Words

PROBE: Final = sight("runtime probe failed", pattern=r"^runtime probe failed", series=True)
FAILED_LOAD: Final = sight("failed to load:", pattern=r"failed to load: (?P<why>.*)")
_SEES: Final = (*SIGHTS, *DEPLOYMENTS, PROBE, READY, FAILED_LOAD, WORKER_FULL)
_SAFETY: Final = re.compile(r"jailbreak|pii|safety", re.IGNORECASE)
_UNANSWERED: Final = frozenset({"unanswered", "unavailable", "not_ready", "timeout", "overloaded", "no_answer", "unknown", "runtime_unavailable", "deadline"})


def _confidence(case: Case, unknown: Unknown) -> float:
    """Few of very many are no fault."""
    answered = growth(case, "vsr_model_runtime_requests_total", outcome="ok")
    if answered is not None and answered.value > 0 and unknown.count < 0.01 * answered.value:
        return 0.4
    return 0.9 if unknown.count >= 3 else 0.6 if unknown.count == 2 else 0.5


def answers_come_too_late(case: Case) -> Found | None:
    unknown = unknown_answers(case, "timeout", "deadline_exceeded")
    if unknown is None or is_ready(case, unknown.deployment) is False:
        return None
    place = deployment(case, unknown.deployment)
    limit = unknown.number("timeout_ms") or _configured_limit(case, unknown.signal)
    forward, queue = phase_seconds(case, "forward", unknown.deployment), phase_seconds(case, "queue", unknown.deployment)
    spent = sum(pair[0] for pair in (forward, queue) if pair) * 1000 or None
    elapsed = unknown.number("elapsed_ms") or unknown.number("waited_ms")
    if spent is None and elapsed is not None and limit is not None and elapsed > limit:
        spent = elapsed
    if queue and forward and queue[0] > 3 * forward[0]:
        return None  # then it waits in the queue, which is another cause
    wanted = int(math.ceil(max(1.5 * (spent or 0), 2 * (limit or 0) if spent is None or (limit or 0) > spent else 0) / 50) * 50) or None
    signal = unknown.signal or "the signal"
    parts = Words("", "")
    if forward:
        waits = f" + {queue[0] * 1000:.0f} ms" if queue else ""
        parts = Words(
            f" One answer takes {forward[0] * 1000:.0f} ms of forward{waits}{' in the queue' if queue else ''}.",
            f"一次回答的前向耗时 {forward[0] * 1000:.0f} ms{f'，排队 {queue[0] * 1000:.0f} ms' if queue else ''}。",
        )
    within = Words(
        f"within its timeout_ms of {limit:g}" if limit else "within its timeout_ms",
        f"未在 timeout_ms={limit:g} 内返回" if limit else "未在其 timeout_ms 内返回",
    )
    quotes: list[Quote] = [*unknown.quotes, *([forward[1]] if forward else []), *([queue[1]] if queue else [])]
    ready = last(case, "vsr_model_runtime_ready", deployment=unknown.deployment)
    name = signal.partition(":")[2] or signal
    return Found(
        cause=Words(
            f"{unknown.count} answers of {unknown.deployment or 'the model'}{f' ({place.artifact})' if place.artifact else ''} for {signal} did not come {within.en}, so the signal is unknown and never matches.{parts.en}"
            " The deployment itself is ready.",
            f"{unknown.deployment or '该模型'}{f'（{place.artifact}）' if place.artifact else ' '}有 {unknown.count} 次对 {signal} 的回答{within.zh}，信号因此未知、从不匹配。{parts.zh}deployment 本身已就绪。",
        ),
        evidence=[*quotes, *([ready.quote] if ready else [])],
        fixes=[
            Fix(
                Words(
                    f"raise timeout_ms of {name} above what an answer takes{f' ({spent:.0f} ms)' if spent else ''}",
                    f"把 {name} 的 timeout_ms 提高到一次回答所需时间以上{f'（{spent:.0f} ms）' if spent else ''}",
                ),
                f"timeout_ms: {wanted}" if wanted else None,
            ),
            Fix(
                Words("or a smaller model, or a GPU for this deployment", "或换更小的模型，或为该 deployment 配 GPU"),
                f"global.model_catalog.deployments.{unknown.deployment or 'primary'}.device: cuda:0" if case.context.items("host.gpus") else None,
            ),
        ],
        verify=Words(
            f"`curl -s localhost:9190/metrics | grep 'vsr_model_runtime_unknown_answers_total.*timeout'` stays at {unknown.count} under the same load",
            f"相同负载下 `curl -s localhost:9190/metrics | grep 'vsr_model_runtime_unknown_answers_total.*timeout'` 保持为 {unknown.count}",
        ),
        confidence=_confidence(case, unknown),
        weight="degraded",
        explains=("R31",),
    )


def _configured_limit(case: Case, signal: str) -> float | None:
    name = signal.partition(":")[2] or signal
    for _, tree in documents(case):
        for rule in inside(tree, "routing", "signals", "systemone") or []:
            if isinstance(rule, dict) and rule.get("name") == name and isinstance(rule.get("timeout_ms"), (int, float)):
                return float(rule["timeout_ms"])
    return None


def nobody_answers(case: Case) -> Found | None:
    unknown = unknown_answers(case, "unavailable", "not_ready")
    probes = case.log.hits(PROBE)
    gauge = _not_ready(case)
    if unknown is None and gauge is None and len(probes) < 3:
        return None
    name = (
        (unknown.deployment if unknown else "")
        or (gauge.labels.get("deployment", "") if gauge else "")
        or (str(fields_of(probes[0]).get("deployment", "")) if probes else "")
    )
    ready = is_ready(case, name)
    if ready is True or (unknown is None and gauge is None and case.log.sees(READY) and case.log.hits(READY)[-1].line.number > probes[-1].line.number):
        return None
    own = [hit for hit in probes if str(fields_of(hit).get("deployment", name)) == name]
    error = str(fields_of(own[-1]).get("error", "")) if own else ""
    place = deployment(case, name)
    reason = case.log.first(FAILED_LOAD)
    count = unknown.count if unknown else 0
    ask = _own_reason(place)
    shown = Words(f" Its probe says `{error[:160]}`." if error else "", f"探测结果：`{error[:160]}`。" if error else "")
    if reason is not None:
        why = mask(reason["why"])[:160]
        shown = Words(f" Its own reason: `{why}`.", f"它自己给出的原因：`{why}`。")
    lost = Words(
        f"{count} answers were unknown (`unavailable`)" if count else "signals that need it are unknown",
        f"有 {count} 次回答为 `unavailable`" if count else "依赖它的信号均为未知",
    )
    strength = 0.9 if ready is False or error or reason else 0.75
    if unknown is None and not own and reason is None:
        strength = 0.5  # a start that goes on shows the same
    if unknown is not None and unknown.count < 3 and ready is None and not error:
        strength = 0.5
    return Found(
        cause=Words(
            f"The runtime of deployment {name or '(unnamed)'} is not ready or not reachable: {lost.en}.{shown.en} Signals come back by themselves once it is ready; limits of time or queue are not involved.",
            f"deployment {name or '（未命名）'} 的运行时未就绪或不可达：{lost.zh}。{shown.zh}它就绪后信号会自行恢复；与时限或队列无关。",
        ),
        evidence=[
            *(unknown.quotes if unknown else ()),
            *(hit.quote() for hit in own[:1]),
            *([gauge.quote] if gauge else []),
            *([reason.quote()] if reason else []),
        ],
        fixes=[
            Fix(
                Words(
                    f"ask the runtime of {name or 'this deployment'} for its own reason (the state of `/health`, the reason of `/v1/models`), and repair that",
                    f"查看 {name or '该 deployment'} 运行时自己给出的原因（`/health` 的状态、`/v1/models` 的原因）并修复",
                ),
                ask,
            ),
            Fix(
                Words("if its process is gone, start it", "若进程已不在，启动它"),
                f"vllm-srun serve {place.artifact}" if place.artifact and not place.managed else None,
            ),
        ],
        verify=Words(
            f"`curl -s localhost:9190/metrics | grep vsr_model_runtime_ready` shows 1 for {name or 'the deployment'}, and unknown answers stop growing",
            f"`curl -s localhost:9190/metrics | grep vsr_model_runtime_ready` 中 {name or '该 deployment'} 为 1，且未知回答不再增加",
        ),
        confidence=strength,
        weight="degraded",
        explains=("N1",) if place.endpoint else (),
    )


def _own_reason(place: Deployment) -> str:
    """Where a runtime says what is wrong: one that the router starts has a socket of its own, and the router repeats its `/v1/models`."""
    base = place.endpoint or "http://localhost:8100"
    return "curl -s localhost:8080/startup-status" if place.managed else f"curl -s {base}/health; curl -s {base}/v1/models"


def _not_ready(case: Case) -> Reading | None:
    """The gauge of the first deployment whose last value is 0."""
    latest = {tuple(sorted(each.labels.items())): each for each in readings(case, "vsr_model_runtime_ready")}
    return next((each for each in latest.values() if each.value == 0), None)


def queue_is_full(case: Case) -> Found | None:
    unknown = unknown_answers(case, "overloaded") or _refused_by_the_worker(case)
    if unknown is None:
        return None
    name = unknown.deployment
    place = deployment(case, name)
    queue, forward = phase_seconds(case, "queue", name), phase_seconds(case, "forward", name)
    replicas = _replicas(case, name)
    rate = next((each.value for each in [last(case, "vsr_model_runtime_request_rate", deployment=name)] if each is not None), None)
    waits = Words(f" A call waits {queue[0]:g} s in its queue." if queue else "", f"一次调用在队列中等待 {queue[0]:g} 秒。" if queue else "")
    load = Words("", "")
    if rate and forward:
        use = rate * forward[0] / replicas
        load = (
            Words(
                f" {rate:g} calls/s x {forward[0]:g} s / {replicas} = {use:.1f} workers' worth of work, more than 1.",
                f"{rate:g} 次/秒 x {forward[0]:g} 秒 / {replicas} = {use:.1f}，超过 1。",
            )
            if use > 1
            else load
        )
    return Found(
        cause=Words(
            f"The queue of deployment {name or '(unnamed)'}{f' ({place.artifact})' if place.artifact else ''} is full: it refused {unknown.count} calls with 429 `overloaded`, and the signals are unknown."
            f"{waits.en}{load.en} It is ready; a longer limit of time would only lengthen the wait.",
            f"deployment {name or '（未命名）'}{f'（{place.artifact}）' if place.artifact else ''}的队列已满：以 429 `overloaded` 拒绝了 {unknown.count} 次调用，信号因此未知。{waits.zh}{load.zh}"
            "它本身已就绪；放宽时限只会让等待更久。",
        ),
        evidence=[*unknown.quotes, *([queue[1]] if queue else [])],
        fixes=[
            Fix(
                Words(f"more capacity: a second replica ({replicas + 1} in all), or a GPU", f"增加容量：再加一个副本（共 {replicas + 1} 个），或配 GPU"),
                f"vllm-srun serve {place.artifact} --port 8101"
                if place.artifact and not place.managed
                else f"global.model_catalog.deployments.{name or 'primary'}.replicas: [{', '.join(['{device: auto}'] * (replicas + 1))}]",
            ),
            Fix(Words("or a smaller model, or a process of its own for the busiest signal", "或更小的模型，或让最繁忙的信号使用独立进程"), None),
            Fix(Words("only for short bursts: a longer queue of the worker", "仅用于短暂突发：加长 worker 的队列"), "--max-queue 2048"),
        ],
        verify=Words(
            "`curl -s localhost:9190/metrics | grep 'vsr_model_runtime_server_seconds.*queue'` falls below the forward seconds, and `overloaded` stops growing",
            "`curl -s localhost:9190/metrics | grep 'vsr_model_runtime_server_seconds.*queue'` 低于前向耗时，且 `overloaded` 不再增加",
        ),
        confidence=_confidence(case, unknown),
        weight="degraded",
        explains=("R12", "R31", "R13"),
    )


def _refused_by_the_worker(case: Case) -> Unknown | None:
    """Its own access log."""
    hits = case.log.hits(WORKER_FULL)
    if len(hits) < 3 or not case.log.sees(SERVED):
        return None
    place = deployment(case, "")
    name = place.name or place.artifact.rpartition("/")[2]
    return Unknown("overloaded", name, "", case.log.count(WORKER_FULL), {}, tuple(hit.quote() for hit in hits[:2]), hits[0].line.number)


def _replicas(case: Case, name: str) -> int:
    for _, tree in documents(case):
        given = inside(tree, "global", "model_catalog", "deployments", name, "replicas")
        if isinstance(given, list) and given:
            return len(given)
    return 1


def safety_matches_unanswered(case: Case) -> Found | None:
    """A jailbreak or PII rule that has no answer matches."""
    hits = [
        hit
        for hit in case.log.hits(RULE_MATCHED)
        if str(fields_of(hit).get("type", "")) != "unscanned"
        and (
            {str(fields_of(hit).get("type", "")), str(fields_of(hit).get("reason", ""))} & _UNANSWERED
            or str(fields_of(hit).get("reason", "")).startswith("unanswered")
        )
    ]
    if not hits and case.log.count(BLOCKED) >= 3:
        hits = [hit for hit in case.log.hits(SIGNAL) if _SAFETY.match(str(fields_of(hit).get("signal", "")))]
    if not hits:
        return None
    fields = fields_of(hits[0])
    rule, why = str(fields.get("rule", "")) or str(fields.get("signal", "")) or "the safety rule", str(fields.get("reason", "")) or str(fields.get("type", ""))
    name = str(fields.get("deployment", "")) or next(
        (d for u in [unknown_answers(case, "unavailable", "timeout", "overloaded")] if u and (d := u.deployment)), ""
    )
    if not name:
        unready = _not_ready(case)
        name = unready.labels.get("deployment", "") if unready else ""
    place = deployment(case, name)
    reason = case.log.first(FAILED_LOAD)
    ask = _own_reason(place)
    own = mask(reason["why"])[:140] if reason else ""
    told = Words(f" The deployment's reason: `{own}`." if own else "", f"该 deployment 的原因：`{own}`。" if own else "")
    gauge = last(case, "vsr_model_runtime_ready", deployment=name)
    return Found(
        cause=Words(
            f"{rule} matched {len(hits)} times without an answer ({why}) of its model{f' ({name})' if name else ''}: a safety rule that cannot ask treats every text as a match, by design.{told.en}"
            " The texts are not attacks; the deployment is the fault. `on_unknown: no_match` would let everything through unchecked: a conscious choice only.",
            f"{rule} 在模型{f'（{name}）' if name else ''}没有回答（{why}）的情况下匹配了 {len(hits)} 次：安全规则问不到答案时，按设计把所有文本都算作匹配。{told.zh}"
            "这些文本并非攻击，问题在该 deployment。`on_unknown: no_match` 会让内容全部不经检查放行，只能是有意的选择。",
        ),
        evidence=[*(hit.quote() for hit in hits[:2]), *([gauge.quote] if gauge and gauge.value == 0 else []), *([reason.quote()] if reason else [])],
        fixes=[
            Fix(
                Words(
                    f"repair deployment {name or 'of this rule'}: its own reason (`/v1/models`) says what is wrong (not ready, not reachable, too slow)",
                    f"修复 deployment {name or '（该规则所用）'}：它自己给出的原因（`/v1/models`）说明问题（未就绪、不可达或太慢）",
                ),
                ask,
            ),
            *([Fix(Words("see its state as the router has it", "查看路由器记录的状态"), "curl -s localhost:8080/startup-status")] if not place.managed else []),
        ],
        verify=Words(
            f'`vsr_model_runtime_ready{{deployment="{name or "guard"}"}}` is 1 and an ordinary question is routed again',
            f'`vsr_model_runtime_ready{{deployment="{name or "guard"}"}}` 为 1，普通问题恢复正常路由',
        ),
        confidence=0.9 if len(hits) >= 3 else 0.7,
        weight="degraded" if reason else "fatal",
        explains=("R12", "R13", "R14"),
    )


RULES: Final = (
    Rule(
        id="R12",
        proof="live",
        title=Words("Answers of a model come later than the signal allows", "模型回答晚于信号时限"),
        symptoms=Words(
            "unknown answers with the reason `timeout`, `decision_timeout`; the deployment is ready",
            "未知回答的原因为 `timeout`、`decision_timeout`；deployment 已就绪",
        ),
        why=Words("an answer takes longer than timeout_ms", "回答耗时超过 timeout_ms"),
        needs=Words("timeout_ms, forward and queue seconds", "timeout_ms、前向与排队时间"),
        remedy=Words("raise timeout_ms, a smaller model, a GPU", "提高 timeout_ms、换小模型或 GPU"),
        check=Words("`vsr_model_runtime_unknown_answers_total` flat", "`vsr_model_runtime_unknown_answers_total` 不再增长"),
        judge=answers_come_too_late,
        sees=_SEES,
    ),
    Rule(
        id="R13",
        proof="live",
        title=Words("The runtime of a deployment is not ready or not reachable", "deployment 的运行时未就绪或不可达"),
        symptoms=Words(
            "unknown answers with the reason `unavailable`; `vsr_model_runtime_ready` 0; probe errors",
            "未知回答原因为 `unavailable`；`vsr_model_runtime_ready` 为 0；探测失败",
        ),
        why=Words("its process, model or address", "进程、模型或地址的问题"),
        needs=Words("its /health and /v1/models", "它的 /health 与 /v1/models"),
        remedy=Words("repair that runtime", "修复该运行时"),
        check=Words("ready 1", "ready 为 1"),
        judge=nobody_answers,
        sees=_SEES,
    ),
    Rule(
        id="R14",
        title=Words("The queue of a runtime is full", "运行时队列已满"),
        symptoms=Words("unknown answers with the reason `overloaded`; 429 of the worker", "未知回答原因为 `overloaded`；worker 返回 429"),
        why=Words("more calls come than it can compute", "请求多于其计算能力"),
        needs=Words("queue seconds, --max-queue, request rate", "排队时间、--max-queue、请求速率"),
        remedy=Words("a replica or GPU, a smaller model, a process of its own", "副本或 GPU、小模型、独立进程"),
        check=Words("queue seconds", "排队时间"),
        judge=queue_is_full,
        sees=_SEES,
    ),
    Rule(
        id="R30",
        title=Words("A safety rule matches because its model does not answer", "安全规则因模型无回答而匹配"),
        symptoms=Words("a jailbreak or PII rule matches everything", "越狱或 PII 规则对所有内容都匹配"),
        why=Words("safety rules match when unanswered", "安全规则在没有回答时按匹配处理"),
        needs=Words("ready state and reason of that deployment", "该 deployment 的就绪状态与原因"),
        remedy=Words("repair the deployment", "修复该 deployment"),
        check=Words("ready 1, matches fall", "ready 为 1，匹配减少"),
        judge=safety_matches_unanswered,
        sees=_SEES,
    ),
)
