"""Which rules of a recipe's signals something uses: those that a decision or a projection can see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headway.router.config.document.rule_tree import RuleNode
from headway.router.signals.kind import Recipe, SignalKind


def used_rules(recipe: Recipe, kinds: Sequence[SignalKind]) -> Iterator[tuple[SignalKind, list[Any]]]:
    """Each kind with its rules that are used, in the order of the configuration; kinds without any are left out."""
    used = used_names(recipe)
    signals = recipe.routing.signals
    for kind in kinds:
        rules = getattr(signals, kind.collection, None) or () if signals else ()
        chosen = [rule for rule in rules if any((kind.type, name) in used for name in (*kind.names(rule), rule.name))]
        if chosen or (kind.measures is not None and any(type == kind.measures for type, _ in used)):
            yield kind, chosen


def used_names(recipe: Recipe) -> frozenset[tuple[str, str]]:
    """(type, name) of every leaf of decisions, every input of a score, every member of a partition, and every leaf of the composers of complexity
    rules among them."""
    routing = recipe.routing
    used: set[tuple[str, str]] = set()
    for decision in routing.decisions or ():
        used.update(_leaves(decision.rules))
    if routing.projections is not None:
        for score in routing.projections.scores or ():
            for given in score.inputs:
                if given.type == "kb_metric":
                    used.add((given.type, f"{given.kb}:{given.metric}"))
                elif given.name:  # `rule:label` reads one label of a rule
                    used.update((given.type, name) for name in (given.name, given.name.rpartition(":")[0]))
        for partition in routing.projections.partitions or ():
            used.update((type, member) for member in partition.members or () for type in ("domain", "embedding"))
    for rule in (routing.signals.complexity if routing.signals else None) or ():
        if any(type == "complexity" and name.partition(":")[0] == rule.name for type, name in used.copy()):
            used.update(_leaves(rule.composer))
    return frozenset(used)


def _leaves(node: RuleNode | None) -> Iterator[tuple[str, str]]:
    if node is None:
        return
    if node.type and node.name:
        yield node.type, node.name
    for child in node.conditions or ():
        yield from _leaves(child)
