"""kb: requests that are like the examples of a label, or group of labels, of a knowledge base."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headway.errors import ConfigError
from headway.router.config.document.model_catalog import KnowledgeBase
from headway.router.config.document.model_signals import KBSignalRule
from headway.router.deployments.calls import StageCalls, Unanswered
from headway.router.embedding.embedder import Embedder, Vectors
from headway.router.embedding.source import required_embedding
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking import reasons
from headway.router.signals.asking.kb_source import read_exemplars
from headway.router.signals.asking.prototypes import similarity
from headway.router.signals.kind import ModelSignal, Recipe, SignalKind
from headway.router.truth import Truth

METRIC = "kb_metric"
"""The kind of observations that hold a knowledge base's numbers, named `base:metric`."""


class KnowledgeSignal:
    """All rules of one knowledge base, and its metrics: best_score, best_matched_score (0 when no label reaches its threshold), and the margins
    between groups that the base declares."""

    def __init__(self, base: KnowledgeBase, rules: Sequence[KBSignalRule], recipe: Recipe) -> None:
        """Raises ConfigError for a base that cannot be read, and rules about labels or groups that it does not have."""
        exemplars = read_exemplars(base, recipe.document.place(base.source.path))
        for rule in rules:
            _check_target(base, rule, exemplars)
        self._base = base
        self._rules = rules
        self._counts = {label: len(texts) for label, texts in exemplars.items()}
        texts = [text for label in exemplars for text in exemplars[label]]
        self._embedder = Embedder(required_embedding(recipe, f"knowledge base {base.name}"), recipe.vectors, texts)

    def deployments(self) -> frozenset[str]:
        return frozenset((self._embedder.deployment,))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        names = [rule.name for rule in self._rules]
        metrics = [f"{self._base.name}:{metric}" for metric in self._metric_names()]
        if not view.user_text.strip():
            return [*reasons.nothing_to_read("kb", names), *reasons.nothing_to_read(METRIC, metrics)]
        vectors = await self._embedder.embed(calls, [view.user_text])
        if isinstance(vectors, Unanswered):
            return [*reasons.unknown("kb", names, reasons.VECTORS, vectors), *reasons.unknown(METRIC, metrics, reasons.VECTORS, vectors)]
        scores = self._scores(vectors)
        best = max(scores, key=scores.__getitem__)
        found = [self._judged(rule, scores, best) for rule in self._rules]
        return [*found, *(Observation(METRIC, name, Truth.TRUE, value=value) for name, value in zip(metrics, self._metrics(scores), strict=True))]

    def _scores(self, vectors: Vectors) -> dict[str, float]:
        scores, at = {}, 0
        for label, count in self._counts.items():
            scores[label] = similarity(vectors.queries[0], vectors.candidates[at : at + count], self._base.prototype_scoring)
            at += count
        return scores

    def _judged(self, rule: KBSignalRule, scores: Mapping[str, float], best: str) -> Observation:
        members = [rule.target.value] if rule.target.kind == "label" else self._base.groups[rule.target.value]
        passed = [label for label in members if scores[label] >= self._threshold(label)]
        if rule.match == "best":
            passed = [label for label in passed if label == best]
        value = max(scores[label] for label in members)
        confidence = max(0.0, max(scores[label] for label in passed)) if passed else None
        return Observation("kb", rule.name, Truth.of(bool(passed)), confidence, value, matched_labels=tuple(passed), evidence={"label": best})

    def _threshold(self, label: str) -> float:
        return self._base.label_thresholds.get(label, self._base.threshold)

    def _metric_names(self) -> list[str]:
        return ["best_score", "best_matched_score", *(metric.name for metric in self._base.metrics)]

    def _metrics(self, scores: Mapping[str, float]) -> Iterable[float]:
        yield max(scores.values())
        yield max((score for label, score in scores.items() if score >= self._threshold(label)), default=0.0)
        for metric in self._base.metrics:
            positive, negative = (max(scores[label] for label in self._base.groups[group]) for group in (metric.positive_group, metric.negative_group))
            yield positive - negative


def compile_kb(rules: Sequence[KBSignalRule], recipe: Recipe) -> Sequence[ModelSignal]:
    """One signal for each base that a rule or a score of a projection names."""
    declared = {base.name: base for base in recipe.catalog.kbs or ()}
    wanted = dict.fromkeys([*(rule.kb for rule in rules), *_measured(recipe)])
    for name in wanted:
        if name not in declared:
            raise ConfigError(
                f"knowledge base {name!r:.80} is not declared",
                param="global.model_catalog.kbs",
                fix=f"Declare it with the folder of its manifest (none is built in); declared are: {', '.join(declared) or 'none'}.",
            )
    return [KnowledgeSignal(declared[name], [rule for rule in rules if rule.kb == name], recipe) for name in wanted]


def _measured(recipe: Recipe) -> Iterable[str]:
    scores = (recipe.routing.projections.scores if recipe.routing.projections else None) or ()
    for score in scores:
        yield from (given.kb for given in score.inputs or () if given.type == METRIC and given.kb)


def _check_target(base: KnowledgeBase, rule: KBSignalRule, exemplars: Mapping[str, list[str]]) -> None:
    target = rule.target
    known = list(exemplars) if target.kind == "label" else [group for group, members in base.groups.items() if members]
    if target.value not in known:
        raise ConfigError(
            f'kb rule "{rule.name}": knowledge base {base.name} has no {target.kind} {target.value!r:.80}',
            param="routing.signals.kb",
            fix=f"Known are: {', '.join(known) or 'none'}.",
        )


KB = SignalKind("kb", "kb", "kb", compile_kb, scale="similarity", measures=METRIC)
