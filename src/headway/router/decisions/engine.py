"""The decision engine: all decisions of a recipe, evaluated; one wins, or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headway.router.config.document.decisions import Decision
from headway.router.config.document.rule_tree import RuleNode
from headway.router.decisions.evaluation import Evaluate, Leaves, compile_rules
from headway.router.decisions.ranking import Strategy, comparable, ranked
from headway.router.decisions.result import DecisionResult, Evaluated, TraceNode
from headway.router.observation import Observations
from headway.router.signals.kind import Recipe
from headway.router.signals.table import SIGNAL_KINDS
from headway.router.truth import Truth

PROJECTION_SCALE = "projection"
ASSUMED_RULE = "on_unknown:match"


@dataclass(frozen=True, slots=True)
class _Compiled:
    decision: Decision
    evaluate: Evaluate
    on_unknown: str | None
    catch_all: bool


class RecipeDecisions:
    """The decisions of one recipe. Every one of them is evaluated for every request: a trace shows also those that lose."""

    def __init__(self, decisions: Sequence[Decision], strategy: Strategy, leaves: Leaves) -> None:
        self._strategy = strategy
        self._decisions = [
            _Compiled(decision, compile_rules(decision.rules, leaves), decision.rules.on_unknown if decision.rules else None, is_catch_all(decision.rules))
            for decision in decisions
        ]

    def decide(self, observations: Observations) -> DecisionResult:
        evaluated = tuple(_resolved(each, each.evaluate(observations)) for each in self._decisions)
        policies = {each.name: each.policy for each in evaluated if each.policy is not None}
        failed = next((name for name, policy in policies.items() if policy == "fail_request"), None)
        if failed is not None:
            return DecisionResult(None, None, evaluated, failed=failed, policies=policies)
        order = ranked([each for each in evaluated if each.matched], self._strategy)
        if not order:
            return DecisionResult(None, None, evaluated, policies=policies)
        winner = order[0]
        rivals = [each for each in order if each.tier == winner.tier]
        return DecisionResult(
            winner.name,
            winner.confidence if winner.root.sources <= 1 else None,
            evaluated,
            matched_rules=(ASSUMED_RULE,) if winner.policy == "match" else tuple(dict.fromkeys(supporting_leaves(winner.root))),
            policies=policies,
            order=tuple(each.name for each in order),
            ranked_by="confidence" if self._strategy == "confidence" and comparable(rivals) else "priority",
        )


SCALES: Mapping[str, str] = {kind.type: kind.scale for kind in SIGNAL_KINDS if kind.scale is not None} | {"projection": PROJECTION_SCALE}


def compile_decisions(recipe: Recipe) -> RecipeDecisions:
    routing = recipe.routing
    asked = (routing.signals.systemone if routing.signals else None) or ()
    choices = frozenset(rule.name for rule in asked if rule.question.type == "choice")
    return RecipeDecisions(routing.decisions or (), _strategy(recipe), Leaves(SCALES, choices))


def _strategy(recipe: Recipe) -> Strategy:
    """The recipe's own, else that of the router."""
    settings = recipe.document.global_.router if recipe.document.global_ else None
    return recipe.routing.strategy or (settings.strategy if settings else None) or "priority"


def is_catch_all(rules: RuleNode | None) -> bool:
    """Whether a decision with these rules matches everything: no rules, or AND without conditions."""
    return rules is None or (not rules.is_leaf and rules.operator in (None, "AND") and not rules.conditions)


def _resolved(compiled: _Compiled, root: TraceNode) -> Evaluated:
    decision = compiled.decision
    matched, policy = root.truth is Truth.TRUE, None
    confidence, score, scale = root.confidence, root.score, root.scale
    if root.truth is Truth.UNKNOWN:
        policy = compiled.on_unknown
        matched, confidence = policy == "match", 1.0 if policy == "match" else None
    return Evaluated(
        decision.name,
        matched,
        confidence,
        root,
        compiled.catch_all,
        policy,
        score,
        scale,
        decision.priority,
        decision.tier,
    )


def supporting_leaves(node: TraceNode) -> Iterator[str]:
    """`type:name` (`type:name:label`) of the leaves because of which `node` holds; NOT is supported by what is absent, which has no name."""
    if node.kind == "leaf":
        if node.truth is Truth.TRUE:
            yield ":".join(filter(None, (node.signal_type, node.signal_name, node.label)))
    elif node.kind == "AND":
        for child in node.children:
            yield from supporting_leaves(child)
    elif node.kind == "OR":
        holding = [child for child in node.children if child.truth is Truth.TRUE]
        for child in [child for child in holding if not child.assumed] or holding:
            yield from supporting_leaves(child)
