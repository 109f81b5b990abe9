"""Rules about conditions: every one names a signal or projection of its own recipe, with a label that is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headway.router.config.diagnostics import Diagnostic, Path, shown
from headway.router.config.document.document import Document
from headway.router.config.document.routing import RecipeRouting
from headway.router.config.document.rule_tree import RuleNode
from headway.router.config.rules.profiles import Profile, did_you_mean, leaves, profiles
from headway.router.signals.table import KIND_OF_TYPE

_PROJECTION = "projection"
_LOCAL_CLASSIFIER_FLOOR = 0.5


def condition_references(document: Document) -> Iterator[Diagnostic]:
    for profile in profiles(document):
        known = _Known(profile.routing)
        for where, at, path, node in _trees(profile):
            for place, leaf in leaves(node, path):
                yield from _leaf(leaf, place, f"{where}: {shown((at, *place[len(path) :]))}", known)


def _trees(profile: Profile) -> Iterator[tuple[str, str, Path, RuleNode | None]]:
    """(whose, field, path, tree) of decisions and of the composers of complexity rules."""
    for index, decision in enumerate(profile.routing.decisions or ()):
        yield f'decision "{decision.name}"', "rules", (*profile.path, "decisions", index, "rules"), decision.rules
    signals = profile.routing.signals
    for index, rule in enumerate((signals.complexity if signals else None) or ()):
        yield f'complexity rule "{rule.name}"', "composer", (*profile.path, "signals", "complexity", index, "composer"), rule.composer


class _Known:
    """What conditions of one recipe may name: by type, name -> the rule (None for a projection's output)."""

    def __init__(self, routing: RecipeRouting):
        self.names: dict[str, Mapping[str, Any]] = {}
        for kind in KIND_OF_TYPE.values():
            rules = getattr(routing.signals, kind.collection, None) if routing.signals else None
            self.names[kind.type] = {name: rule for rule in rules or () for name in kind.names(rule)} if kind.in_conditions else {}
        mappings = (routing.projections.mappings if routing.projections else None) or ()
        self.names[_PROJECTION] = {output.name: None for mapping in mappings for output in mapping.outputs or () if output.name}
        self.bindings = routing.model_bindings or {}


def _leaf(leaf: RuleNode, path: Path, where: str, known: _Known) -> Iterator[Diagnostic]:
    type_, name = leaf.type or "", leaf.name or ""
    if type_ not in known.names:
        yield Diagnostic("not_supported", f"{where}: conditions on {type_} are not supported by Headway", (*path, "type"))
        return
    names = known.names[type_]
    if name not in names:
        what = "output of a projection mapping" if type_ == _PROJECTION else f"{type_} signal"
        yield Diagnostic("signal_undeclared", f'{where}: no {what} is called "{name}"', (*path, "name"), _advice(name, names, known))
        return
    if type_ == _PROJECTION:
        return
    if leaf.on_unscanned is not None and names[name].coverage != "full":
        message = f'{where}: on_unscanned needs coverage: full of systemone "{name}", which reads the beginning of a text and leaves the rest'
        yield Diagnostic("on_unscanned", message, (*path, "on_unscanned"))
    labels = KIND_OF_TYPE[type_].labels(names[name])
    if labels is None:
        if leaf.label is not None:
            yield Diagnostic("label_refused", f'{where}: {type_} "{name}" has no labels', (*path, "label"))
    elif leaf.label not in labels:
        found = "none" if leaf.label is None else f'"{leaf.label}"'
        message = f'{where}: {type_} "{name}" needs one of its labels ({_listed(labels)}); found {found}'
        yield Diagnostic("label_undeclared", message, (*path, "label"), did_you_mean(leaf.label, labels))
    if type_ == "classifier":
        yield from _classifier_predicate(leaf, path, where, names[name], known)


def _advice(name: str, names: Mapping[str, Any], known: _Known) -> str | None:
    levels = sorted(each for each in names if each.startswith(f"{name}:"))
    if levels:
        return f"Write {' or '.join(levels)}"
    elsewhere = sorted(type_ for type_, others in known.names.items() if name in others)
    return did_you_mean(name, names) or (f"A {elsewhere[0]} has this name" if elsewhere else None)


def _listed(labels: tuple[str, ...]) -> str:
    return ", ".join(labels[:8]) + (", ..." if len(labels) > 8 else "")


def _classifier_predicate(leaf: RuleNode, path: Path, where: str, rule: Any, known: _Known) -> Iterator[Diagnostic]:
    """A score needs a range, unless the binding has chosen thresholds. Local classifiers only know that a label is the likely one."""
    bound = known.bindings.get(f"classifier.{rule.name}")
    if bound is not None and bound.operating_point is not None:
        return
    given = leaf.predicate
    if given is None:
        yield Diagnostic("predicate_missing", f'{where}: classifier "{rule.name}" needs a predicate on the score of the label', path)
    elif rule.type == "local" and not (
        given.gte is not None and given.gte >= _LOCAL_CLASSIFIER_FLOOR and given.gt is None and given.lt is None and given.lte is None
    ):
        message = f'{where}: local classifier "{rule.name}" takes only predicate gte of at least {_LOCAL_CLASSIFIER_FLOOR}'
        yield Diagnostic("predicate_refused", message, (*path, "predicate"))
