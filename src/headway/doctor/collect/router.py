"""A semantic router from outside: its own reports, its metrics, and one previewed request, as steps that went well or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from headway.doctor.collect.bounded_answer import ask
from headway.doctor.collect.metrics import scrape
from headway.doctor.collect.network import base_url, parse_address
from headway.doctor.collect.transcript import Transcript
from headway.doctor.words import Words
from headway.errors import DoctorError

_LISTENER, _MANAGEMENT, _METRICS_PORT = 8899, 8080, 9190
_FINAL_STATES: Final = ("failed",)


@dataclass(frozen=True, slots=True)
class RouterPlace:
    """Base URLs. `management` and `metrics` are on ports of their own; `listener` is where requests go."""

    listener: str
    management: str
    metrics: str


@dataclass(frozen=True, slots=True)
class Step:
    """One stop of the walk. `ok` None: it could not be told."""

    name: Words
    ok: bool | None
    detail: Words


def place_of(url: str, management: str | None, metrics: str | None) -> RouterPlace:
    """`url`: the listener's address. The other two default to ports 8080 and 9190 of the same host, moved like the listener's
    when that is above 8899 (VLLM_SR_PORT_OFFSET moves all three). Raises DoctorError (`address_invalid`)."""
    listener = base_url(url, _LISTENER)
    address = parse_address(listener)
    shown = f"[{address.host}]" if ":" in address.host else address.host
    moved = max(0, address.port - _LISTENER)

    def beside(given: str | None, port: int) -> str:
        return base_url(given, port) if given else f"http://{shown}:{port + moved}"

    return RouterPlace(listener, beside(management, _MANAGEMENT), beside(metrics, _METRICS_PORT))


def walk(client: httpx.Client, place: RouterPlace, prompt: str, transcript: Transcript) -> tuple[list[Step], dict[str, Any]]:
    """The steps, and the parts of a context that they brought. Nothing is generated: the request is only previewed."""
    steps: list[Step] = []
    part: dict[str, Any] = {}
    startup = _json(client, f"{place.management}/startup-status", transcript)
    steps.append(_startup_step(startup, place))
    if startup is not None:
        part["command"] = "vllm-sr serve"
        steps += _deployment_steps(startup, transcript)
    try:
        sample = scrape(client, place.metrics)
    except DoctorError as error:
        transcript.say(str(error))
        steps.append(Step(_METRICS, None, Words(str(error), f"指标无法读取：{error}")))
    else:
        part["metrics"] = [{"t": 0, **sample, **averages(sample)}]
        steps += [_signals_step(sample), _phases_step(sample)]
    if startup is not None and startup.get("ready"):
        steps.append(_preview_step(client, place, prompt, transcript))
    return steps, part


_METRICS: Final = Words("metrics", "指标")


def _json(client: httpx.Client, url: str, transcript: Transcript, body: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    try:
        response = ask(client, url, body)
        answer = response.json()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        transcript.say(f"{url}: {type(error).__name__}: {error}")
        return None
    except ValueError:
        transcript.say(f"{url}: HTTP {response.status}, no JSON")
        return None
    if response.status not in (200, 503):
        transcript.say(f"{url}: HTTP {response.status} {json.dumps(answer)[:300]}")
        return None
    return answer if isinstance(answer, dict) else None


def _startup_step(startup: dict[str, Any] | None, place: RouterPlace) -> Step:
    name = Words("startup", "启动")
    if startup is None:
        return Step(name, False, Words(f"{place.management} does not answer", f"{place.management} 无应答"))
    phase, message = str(startup.get("phase", "")), str(startup.get("message", ""))
    return Step(name, bool(startup.get("ready")), Words(f"{phase}: {message}", f"{phase}：{message}"))


def _deployment_steps(startup: Mapping[str, Any], transcript: Transcript) -> list[Step]:
    """Each deployment; a reason is repeated in the words of the router's own log, which the rules know."""
    steps: list[Step] = []
    for entry in startup.get("model_deployments", []):
        name, state, reason = str(entry.get("name", "")), str(entry.get("state", "")), str(entry.get("reason", ""))
        if reason:
            verb = "failed to load" if state in _FINAL_STATES else state
            transcript.say(f"model runtime is not ready: model {name} {verb}: {reason}")
        elif not entry.get("ready"):
            transcript.say(f"Waiting for Router-managed model deployments: {name} ({entry.get('artifact', '')}) {state}")
        detail = f"{state} {reason}".strip()
        steps.append(Step(Words(f"deployment {name}", f"部署 {name}"), bool(entry.get("ready")), Words(detail, detail)))
    return steps


def averages(sample: Mapping[str, float]) -> dict[str, float]:
    """`x_avg{labels}` for every histogram or summary with `x_sum` and `x_count`."""
    found: dict[str, float] = {}
    for key, total in sample.items():
        name, brace, labels = key.partition("{")
        if name.endswith("_sum") and (count := sample.get(name[:-4] + "_count" + brace + labels)):
            found[name[:-4] + "_avg" + brace + labels] = round(total / count, 6)
    return found


def _labelled(sample: Mapping[str, float], name: str) -> dict[str, float]:
    """Label text -> value of the series of one metric."""
    return {key.partition("{")[2].rstrip("}"): value for key, value in sample.items() if key.split("{")[0] == name}


def _signals_step(sample: Mapping[str, float]) -> Step:
    name = Words("signals", "信号")
    asked = sum(_labelled(sample, "llm_signal_extraction_total").values())
    matched = sum(_labelled(sample, "llm_signal_match_total").values())
    unknown = {labels: value for labels, value in _labelled(sample, "vsr_model_runtime_unknown_answers_total").items() if value}
    if unknown:
        worst = ", ".join(f"{labels}: {value:.0f}" for labels, value in sorted(unknown.items(), key=lambda pair: -pair[1])[:3])
        return Step(name, False, Words(f"answers unknown: {worst}", f"未知的回答：{worst}"))
    if not asked:
        return Step(name, None, Words("no request was routed yet", "还没有请求经过路由"))
    return Step(name, True, Words(f"{asked:.0f} evaluated, {matched:.0f} matched, none unknown", f"评估 {asked:.0f} 次，匹配 {matched:.0f} 次，无未知"))


def _phases_step(sample: Mapping[str, float]) -> Step:
    """The slowest stage of routing by its mean."""
    name = Words("slow phases", "慢阶段")
    means = {labels.partition("=")[2]: value for labels, value in _labelled(averages(sample), "llm_routing_stage_duration_seconds_avg").items()}
    if not means:
        return Step(name, None, Words("no request was routed yet", "还没有请求经过路由"))
    slowest = max(means, key=lambda stage: means[stage])
    total = sum(means.values())
    text = f"{slowest} {means[slowest] * 1e3:.1f} ms / {total * 1e3:.1f} ms"
    return Step(name, True, Words(f"slowest stage (mean): {text}", f"最慢的阶段（均值）：{text}"))


def _preview_step(client: httpx.Client, place: RouterPlace, prompt: str, transcript: Transcript) -> Step:
    name = Words("preview", "预览")
    body = {"model": "vllm-sr/auto", "text": prompt}
    answer = _json(client, f"{place.management}/api/v1/routing/preview?trace=true", transcript, body)
    if answer is None:
        return Step(name, None, Words("the preview was not answered", "预览无应答"))
    errors = answer.get("signal_errors") or {}
    for signal, reason in errors.items():
        transcript.say(json.dumps({"level": "warn", "msg": "signal unknown", "signal": signal, "reason": _reason(reason), "code": str(reason)}))
    decision = str((answer.get("decision_result") or {}).get("decision_name", ""))
    model = str(answer.get("selected_model", ""))
    if errors:
        named = ", ".join(f"{signal}: {reason}" for signal, reason in errors.items())
        return Step(name, False, Words(f"unknown signals: {named}", f"未知信号：{named}"))
    return Step(name, bool(model), Words(f"decision {decision or '-'}, model {model or '-'}", f"决策 {decision or '-'}，模型 {model or '-'}"))


def _reason(code: object) -> str:
    """The bounded word of metrics for a code such as `decision_timeout`."""
    text = str(code)
    return next((word for word in ("timeout", "unavailable", "overloaded", "input_limit", "scan_budget") if word in text), text)
