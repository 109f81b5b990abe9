"""What a preview says about a routed request: what was observed, which decision won, which model would answer, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headway.router.decisions.result import Evaluated, TraceNode
from headway.router.observation import Observation
from headway.router.request.context import RequestContext
from headway.router.signals.table import KIND_OF_TYPE
from headway.router.truth import Truth

PROJECTION_KEY = "projections"


def preview_report(context: RequestContext, shown: str, trace: bool) -> dict[str, Any]:
    observations = list(context.observations)
    report: dict[str, Any] = {
        "original_text": shown,
        "requested_model": context.view.model,
        "recipe": context.recipe.name if context.recipe else "",
        "decision_result": _decision(context, observations),
        **_selection(context),
        "routing_decision": context.decision_name or "",
        "signal_confidences": {each.key: each.confidence for each in observations if each.truth is Truth.TRUE and each.confidence is not None},
        "signal_values": _values(context, observations),
        "signal_errors": {each.key: each.reason for each in observations if each.reason},
        "metrics": {"stages_ms": {stage: round(ms, 3) for stage, ms in context.timings_ms.items()}},
        "generation": context.generation.number,
        "signal_types": _types(observations),
    }
    if context.decision is not None and context.decision.policies:
        report["applied_unknown_policies"] = dict(context.decision.policies)
    if trace and context.decision is not None:
        report["eval_trace"] = [_evaluated(each) for each in context.decision.evaluated]
        report["ranking"] = {"order": list(context.decision.order), "by": context.decision.ranked_by}
    return report


def _decision(context: RequestContext, observations: Iterable[Observation]) -> dict[str, Any]:
    chosen, recipe, result = context.decision_name, context.recipe, context.decision
    rules = next((each.root for each in result.evaluated if each.name == chosen), None) if result else None
    told: dict[str, Any] = {
        "decision_name": chosen or "",
        "confidence": result.confidence if result else None,
        "matched_rules": list(result.matched_rules) if result else [],
        "algorithm": context.selection.method if context.selection and chosen else "",
        "plugins": [plugin.type for plugin in recipe.plugins.get(chosen, ())] if recipe and chosen else [],
        "used_signals": _grouped(_leaves(rules)) if rules else {},
        "matched_signals": _grouped((each.kind, each.name) for each in observations if each.truth is Truth.TRUE),
        "unmatched_signals": _grouped((each.kind, each.name) for each in observations if each.truth is Truth.FALSE),
        "unknown_signals": _grouped((each.kind, each.name) for each in observations if each.truth is Truth.UNKNOWN),
    }
    if result is not None and result.failed:
        told["failed_decision"] = result.failed
    return told


def _selection(context: RequestContext) -> dict[str, Any]:
    found = context.selection
    if found is None:
        return {"recommended_models": [], "selected_model": "", "selection_status": "failed", "selection_method": "", "selection_reason": ""}
    return {
        "recommended_models": list(found.order),
        "selected_model": found.model or "",
        "selection_status": found.status,
        "selection_method": found.method,
        "selection_reason": found.reason,
        "selection_scores": dict(found.scores),
        "selection_provenance": {
            "mode": "sampled" if found.sampled else "read_only",
            "state_dependent": found.method in ("latency_aware", "multi_factor", "hybrid"),
            "sampled": found.sampled,
            "sampling_seed": found.sampling_seed,
        },
    }


def _values(context: RequestContext, observations: Iterable[Observation]) -> dict[str, float]:
    values = {each.key: each.value for each in observations if each.value is not None}
    for each in observations:
        values |= {f"{each.key}:{label}": number for label, number in each.labels.items()}
    return values | {f"projection_score:{name}": score for name, score in context.projection_scores.items()}


def _grouped(names: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind, name in names:
        key = _group(kind)
        if name not in found.setdefault(key, []):
            found[key].append(name)
    return found


def _group(kind: str) -> str:
    return KIND_OF_TYPE[kind].observation_key if kind in KIND_OF_TYPE else PROJECTION_KEY


def _types(observations: Iterable[Observation]) -> dict[str, str]:
    """Of each group of signals above, the type that conditions, confidences and errors name its signals by."""
    return {_group(each.kind): each.kind for each in observations}


def _leaves(node: TraceNode) -> Iterator[tuple[str, str]]:
    if node.kind == "leaf":
        yield node.signal_type, node.signal_name
    for child in node.children:
        yield from _leaves(child)


def _evaluated(each: Evaluated) -> dict[str, Any]:
    told: dict[str, Any] = {"decision_name": each.name, "matched": each.matched, "confidence": each.confidence, "root_trace": _node(each.root)}
    if each.catch_all:
        told["catch_all"] = True
    if each.policy is not None:
        told["applied_unknown_policy"] = each.policy
    return told


def _node(node: TraceNode) -> Mapping[str, Any]:
    """`truth` is true, false or unknown; `matched` is what older readers know. `score` is what the node ranks by, on its `scale`; `assumed` says
    that a policy stood in for a missing answer."""
    told: dict[str, Any] = {"node_type": node.kind, "matched": node.truth is Truth.TRUE, "truth": node.truth.name.lower(), "confidence": node.confidence}
    if node.kind == "leaf":
        told |= {"signal_type": node.signal_type, "signal_name": node.signal_name}
        if node.label:
            told["label"] = node.label
    if node.score is not None:
        told |= {"score": node.score, "scale": node.scale}
    if node.reason:
        told["reason"] = node.reason
    if node.assumed:
        told["assumed"] = True
    if node.evidence:
        told["evidence"] = dict(node.evidence)
    if node.children:
        told["children"] = [_node(child) for child in node.children]
    return told
