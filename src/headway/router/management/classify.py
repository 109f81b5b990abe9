"""What single signals say about a text: the same rules, models and thresholds that requests meet."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from headway.router.deployments.calls import FoundSpan, Unanswered
from headway.router.generation.generation import Generation
from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.models import SECONDS, calls, default_recipe, switched_off, unanswered
from headway.router.management.preview_report import preview_report
from headway.router.management.route import Route
from headway.router.observation import Observation
from headway.router.plugins.personal_data import personal_data_source
from headway.router.request.context import RequestContext
from headway.router.request.deadline import Deadline
from headway.router.request.identity import Identity
from headway.router.request.view import RequestView
from headway.router.routing import route
from headway.router.signals.extraction import SignalExtraction
from headway.router.signals.table import KIND_OF_TYPE
from headway.router.signals.usage import used_rules
from headway.router.truth import Truth

_MOST_TEXTS, _MOST_BYTES = 100, 1 << 20
_MOST_AT_ONCE = 8
Task = Callable[[Generation, str], Awaitable[dict[str, Any]]]


async def intent(generation: Generation, text: str) -> dict[str, Any]:
    """The whole routing of the text, and the best domain if domains are used."""
    began = time.perf_counter()
    body = {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": text}]}
    context = RequestContext(generation, body, {}, Identity(), Deadline.after(SECONDS, visible=True), "classify", dry_run=True)
    await route(context)
    report = preview_report(context, text, trace=False)
    domains = [each for each in context.observations if each.kind == "domain"]
    best = max((each for each in domains if each.truth is Truth.TRUE), key=lambda each: each.confidence or 0.0, default=None)
    decision = report["decision_result"]
    return {
        "classification": {
            "category": best.name if best else "",
            "confidence": best.confidence if best else 0.0,
            "processing_time_ms": _ms(began),
        },
        "probabilities": {label: value for each in domains for label, value in each.labels.items()},
        "recommended_model": report["selected_model"],
        "routing_decision": report["routing_decision"],
        "matched_signals": decision["matched_signals"],
        "decision_result": {name: decision[name] for name in ("decision_name", "confidence", "matched_rules")},
        "signal_errors": report["signal_errors"],
    }


async def pii(generation: Generation, text: str) -> dict[str, Any]:
    began = time.perf_counter()
    source = personal_data_source(default_recipe(generation))
    with calls(generation) as asking:
        (answer,) = await source.find(asking, [text])
    if isinstance(answer, Unanswered):
        raise unanswered(answer)
    found = sorted((span for span in answer.value if span.score >= source.threshold), key=lambda span: span.start)
    return {
        "has_pii": bool(found),
        "entities": [_entity(text, span) for span in found],
        "masked_text": _masked(text, found),
        "security_recommendation": "block" if found or not answer.read_all else "allow",
        "read_all": answer.read_all,
        "processing_time_ms": _ms(began),
    }


async def security(generation: Generation, text: str) -> dict[str, Any]:
    began = time.perf_counter()
    found = await _observed(generation, ("jailbreak", "safety"), text)
    matched = [each for each in found if each.truth is Truth.TRUE]
    known = [each for each in found if each.truth is not Truth.UNKNOWN and each.reason is None]  # a policy is no evidence
    risk = max((each.value or each.confidence or 0.0 for each in known), default=0.0)
    errors = _errors(found)
    return {
        "is_jailbreak": any(each.kind == "jailbreak" for each in matched),
        "risk_score": risk,
        "detection_types": sorted({each.kind for each in matched}),
        "confidence": max((each.confidence or 0.0 for each in matched), default=1.0 - risk if known else 0.0),
        "recommendation": "block" if matched else "review" if errors else "allow",
        "reasoning": ", ".join(f"{each.key} matched" for each in matched) or ("not every rule has an answer" if errors else "no rule matched"),
        "patterns_detected": sorted({label for each in matched for label in each.matched_labels}),
        "signal_errors": errors,
        "processing_time_ms": _ms(began),
    }


async def fact_check(generation: Generation, text: str) -> dict[str, Any]:
    began = time.perf_counter()
    found = await _observed(generation, ("fact_check",), text)
    needed = next((each for each in found if each.name == "needs_fact_check" and each.truth is Truth.TRUE), None)
    value = next((each.value if each.name == "needs_fact_check" else 1.0 - each.value for each in found if each.value is not None), None)
    label = "fact_check_needed" if needed else "unknown" if value is None else "no_fact_check_needed"
    return {"needs_fact_check": needed is not None, "confidence": value, "label": label, "signal_errors": _errors(found), "processing_time_ms": _ms(began)}


async def user_feedback(generation: Generation, text: str) -> dict[str, Any]:
    began = time.perf_counter()
    found = await _observed(generation, ("user_feedback",), text)
    best = next((each for each in found if each.truth is Truth.TRUE), None)
    return {
        "feedback_type": best.name if best else "",
        "confidence": best.confidence if best else 0.0,
        "probabilities": {label: value for each in found for label, value in each.labels.items()},
        "signal_errors": _errors(found),
        "processing_time_ms": _ms(began),
    }


async def combined(generation: Generation, text: str) -> dict[str, Any]:
    """Everything that the configuration has a model for."""
    names = ("intent", "pii", "security")
    results = await asyncio.gather(*(_TASKS[name](generation, text) for name in names), return_exceptions=True)
    told: dict[str, Any] = {}
    for name, result in zip(names, results, strict=True):
        if isinstance(result, ManagementError):
            told[name] = {"error": {"code": result.code, "message": result.message}}
        elif isinstance(result, BaseException):
            raise result
        else:
            told[name] = result
    return told


_TASKS: Mapping[str, Task] = {
    "intent": intent, "pii": pii, "security": security, "fact-check": fact_check, "user-feedback": user_feedback, "combined": combined,
}  # fmt: skip
_BATCH_NAMES: Mapping[str, str] = {"intent": "intent", "pii": "pii", "security": "security", "all": "combined"}


async def one(call: Call) -> Answer:
    task = _TASKS.get(call.parameters["task"])
    if task is None:
        raise ManagementError("NOT_FOUND", f"there is no task {call.parameters['task'][:40]!r}", 404, fix=f"There are {', '.join(_TASKS)} and batch.")
    text = _text(call.json().get("text"), "text")
    with call.state.generations.use() as generation:
        return Answer(await task(generation, text))


async def batch(call: Call) -> Answer:
    body = call.json()
    texts, kind = body.get("texts"), body.get("task_type", "intent")
    if kind not in _BATCH_NAMES:
        raise ManagementError("INVALID_TASK_TYPE", f"task_type must be one of {', '.join(_BATCH_NAMES)}, found {str(kind)[:40]!r}")
    if not isinstance(texts, list) or not 1 <= len(texts) <= _MOST_TEXTS:
        raise ManagementError("INVALID_INPUT", f"texts must be a list of 1 to {_MOST_TEXTS} strings")
    read = [_text(text, f"texts[{at}]") for at, text in enumerate(texts)]
    began = time.perf_counter()
    places = asyncio.Semaphore(_MOST_AT_ONCE)
    with call.state.generations.use() as generation:

        async def classified(text: str) -> dict[str, Any]:
            async with places:
                return await _TASKS[_BATCH_NAMES[kind]](generation, text)

        results = await asyncio.gather(*map(classified, read))
    took = _ms(began)
    categories = Counter(result["classification"]["category"] for result in results if "classification" in result)
    statistics = {"category_distribution": dict(categories), "avg_processing_time_ms": round(took / len(read), 3)}
    return Answer({"results": results, "total_count": len(results), "processing_time_ms": took, "statistics": statistics})


async def _observed(generation: Generation, types: Sequence[str], text: str) -> list[Observation]:
    """What the default recipe's rules of these types say. Raises ManagementError 503 when no rule of them is used."""
    recipe, kinds = default_recipe(generation), [KIND_OF_TYPE[each] for each in types]
    if not any(rules for _, rules in used_rules(recipe, kinds)):
        raise switched_off(" and ".join(types), "Use such a signal in a decision.")
    view = RequestView({"messages": [{"role": "user", "content": text}]})
    found = await SignalExtraction(recipe, generation.deployments, kinds).observe(view, Deadline.after(SECONDS, visible=True))
    return list(found)


def _errors(found: Sequence[Observation]) -> dict[str, str]:
    return {each.key: each.reason for each in found if each.reason}


def _entity(text: str, span: FoundSpan) -> dict[str, Any]:
    return {
        "type": span.label, "value": text[span.start : span.end], "confidence": span.score,
        "start_position": span.start, "end_position": span.end, "masked_value": f"[{span.label}]",
    }  # fmt: skip


def _masked(text: str, found: Sequence[FoundSpan]) -> str:
    parts, at = [], 0
    for span in found:
        if span.start >= at:
            parts += [text[at : span.start], f"[{span.label}]"]
            at = span.end
    return "".join(parts) + text[at:]


def _text(given: Any, name: str) -> str:
    if not isinstance(given, str) or not given.strip() or len(given) > _MOST_BYTES:
        raise ManagementError("INVALID_INPUT", f"{name} must be a string that is not empty")
    return given


def _ms(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)


_ROOT = "/api/v1/diagnostics/classify"
ROUTES = (
    Route("POST", f"{_ROOT}/batch", batch, "classify.invoke", "One task for several texts.", ("/api/v1/classify/batch",)),
    Route("POST", f"{_ROOT}/{{task}}", one, "classify.invoke", "What a signal says about a text.", ("/api/v1/classify/{task}",)),
)
