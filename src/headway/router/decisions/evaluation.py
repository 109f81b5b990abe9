"""Rule trees, compiled once and evaluated per request in three-valued (Kleene) logic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headway.router.config.document.numeric_range import NumericPredicate
from headway.router.config.document.rule_tree import RuleNode
from headway.router.decisions.result import TraceNode
from headway.router.observation import Observation, Observations
from headway.router.truth import Truth, all_of, any_of

Evaluate: TypeAlias = Callable[[Observations], TraceNode]
_UNSCANNED: Mapping[str, Truth] = {"match": Truth.TRUE, "no_match": Truth.FALSE, "unknown": Truth.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Leaves:
    """What leaves need to know about signals. `scales` are what the confidences of signal types measure; types without one are gates.
    `choices` are the systemone rules whose labels exclude each other."""

    scales: Mapping[str, str]
    choices: frozenset[str] = frozenset()


def compile_rules(node: RuleNode | None, leaves: Leaves) -> Evaluate:
    """`node` None always holds. Only below a root with `on_unknown` does UNKNOWN exist; elsewhere a failed leaf counts as its `on_error` says
    (no match by default). A leaf's `on_unscanned` comes before what its signal made of content that was not read."""
    if node is None:
        return _combine("AND", ())
    return _compile(node, leaves, node.on_unknown is not None)


def _compile(node: RuleNode, leaves: Leaves, kleene: bool) -> Evaluate:
    if node.is_leaf:
        return _leaf(node, leaves, kleene)
    return _combine(node.operator or "AND", [_compile(child, leaves, kleene) for child in node.conditions or ()])


def _leaf(node: RuleNode, leaves: Leaves, kleene: bool) -> Evaluate:
    type, name, label = node.type or "", node.name or "", node.label or ""
    absent = TraceNode("leaf", Truth.FALSE, signal_type=type, signal_name=name, label=label)
    if_failed = None if kleene else Truth.of(node.on_error == "match")
    if_unscanned = None if node.on_unscanned is None else _UNSCANNED[node.on_unscanned]
    holds = _condition(node, chosen_only=name in leaves.choices)
    plain = node.predicate is None
    scale = leaves.scales.get(type) if plain else None

    def evaluate(observations: Observations) -> TraceNode:
        found = observations.get(type, name)
        if found is None or (plain and found.truth is Truth.FALSE and found.reason is None):
            return absent
        truth, confidence = found.truth, None
        assumed = found.reason is not None
        if if_unscanned is not None and found.is_unscanned:
            truth = if_unscanned
        if truth is Truth.UNKNOWN:
            truth = truth if if_failed is None else if_failed
        elif not assumed:  # what a policy of the signal decided holds for every label and predicate
            truth, confidence = holds(found)
        score = confidence if scale is not None and truth is Truth.TRUE else None
        return TraceNode(
            "leaf",
            truth,
            confidence=(1.0 if confidence is None else confidence) if truth is Truth.TRUE else None,
            score=score,
            scale=scale if score is not None else None,
            sources=1,
            assumed=assumed,
            signal_type=type,
            signal_name=name,
            label=label,
            reason=found.reason,
            evidence=found.evidence,
        )

    return evaluate


def _condition(node: RuleNode, *, chosen_only: bool) -> Callable[[Observation], tuple[Truth, float | None]]:
    """What an answered observation means for a leaf: does it hold, and with which confidence."""
    predicate, label = node.predicate, node.label
    if label is not None:
        return lambda found: _label_holds(found, label, predicate, chosen_only)
    if predicate is not None:
        return lambda found: (Truth.of(predicate.holds(float(found.truth is Truth.TRUE) if found.value is None else found.value)), None)
    return lambda found: (found.truth, found.confidence)


def _label_holds(found: Observation, label: str, predicate: NumericPredicate | None, chosen_only: bool) -> tuple[Truth, float | None]:
    """A predicate stands in for the model's own selection, except for a choice: there the label must be the chosen one as well."""
    matched, probability = label in found.matched_labels, found.labels.get(label)
    if predicate is None:
        return Truth.of(matched), probability
    meets = probability is not None and predicate.holds(probability)
    return Truth.of(meets and (matched or not chosen_only)), None


def _combine(operator: str, parts: Sequence[Evaluate]) -> Evaluate:
    join = {"AND": _and, "OR": _or, "NOT": _not}[operator]
    return lambda observations: join(tuple([part(observations) for part in parts]))


def _not(children: tuple[TraceNode, ...]) -> TraceNode:
    child = children[0]
    truth = child.truth.negated()
    return TraceNode("NOT", truth, 1.0 if truth is Truth.TRUE else None, sources=1, assumed=child.assumed, children=children)


def _and(children: tuple[TraceNode, ...]) -> TraceNode:
    truth = all_of([child.truth for child in children])
    if truth is not Truth.TRUE:
        # One child that is really false settles it, whatever is missing elsewhere.
        assumed = any(child.assumed for child in children) and not any(child.truth is Truth.FALSE and not child.assumed for child in children)
        return TraceNode("AND", truth, assumed=assumed, children=children)
    if not children:
        return TraceNode("AND", truth, 0.0)
    confidence = sum(child.confidence or 0.0 for child in children) / len(children)
    scored = [child for child in children if child.score is not None]
    one_scale = len({child.scale for child in scored}) == 1
    return TraceNode(
        "AND",
        truth,
        confidence,
        score=sum(child.score or 0.0 for child in scored) / len(scored) if one_scale else None,
        scale=scored[0].scale if one_scale else None,
        sources=sum(child.sources for child in children),
        assumed=any(child.assumed for child in children),
        children=children,
    )


def _or(children: tuple[TraceNode, ...]) -> TraceNode:
    truth = any_of([child.truth for child in children])
    if truth is not Truth.TRUE:
        return TraceNode("OR", truth, assumed=any(child.assumed for child in children), children=children)
    best = max(leading(children), key=lambda child: child.confidence or 0.0)
    return TraceNode("OR", truth, best.confidence, best.score, best.scale, best.sources, best.assumed, children=children)


def leading(children: Sequence[TraceNode]) -> Sequence[TraceNode]:
    """The branches of an OR that speak for it: those that hold by an answer rather than by a policy, among them those with evidence.

    So a gate that matches as well neither raises nor hides what other branches measured.
    """
    holding = [child for child in children if child.truth is Truth.TRUE]
    answered = [child for child in holding if not child.assumed] or holding
    return [child for child in answered if child.score is not None] or answered
