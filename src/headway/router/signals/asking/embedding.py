"""embedding: requests that are like the candidates of a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.router.config.document.model_catalog import EmbeddingConfig
from headway.router.config.document.model_signals import EmbeddingRule
from headway.router.deployments.calls import StageCalls, Unanswered
from headway.router.embedding.embedder import Embedder, Matrix
from headway.router.embedding.memo import Input
from headway.router.embedding.source import embedding_config, required_embedding
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking import reasons
from headway.router.signals.asking.images import image_inputs
from headway.router.signals.asking.prototypes import similarity
from headway.router.signals.kind import ModelSignal, Recipe, SignalKind
from headway.router.truth import Truth


@dataclass(frozen=True, slots=True)
class _Bank:
    """Where a rule's candidates lie among those of the embedder: wanted ones, then unwanted ones."""

    rule: EmbeddingRule
    start: int
    wanted: int
    unwanted: int


class EmbeddingSignal:
    """Rules that compare the same: text of the latest user turn, or its pictures (the nearest one counts)."""

    def __init__(self, modality: str, banks: Sequence[_Bank], embedder: Embedder, config: EmbeddingConfig) -> None:
        self._modality = modality
        self._banks = banks
        self._embedder = embedder
        self._config = config

    def deployments(self) -> frozenset[str]:
        return frozenset((self._embedder.deployment,))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        names = [bank.rule.name for bank in self._banks]
        queries: list[Input] = [{"image": url} for url in view.images] if self._modality == "image" else [view.user_text]
        if not queries or queries == [""] or (isinstance(queries[0], str) and not queries[0].strip()):
            return reasons.nothing_to_read("embedding", names)
        vectors = await self._embedder.embed(calls, queries)
        if isinstance(vectors, Unanswered):
            return reasons.unknown("embedding", names, reasons.VECTORS, vectors)
        scores = [max(self._score(bank, query, vectors.candidates) for query in vectors.queries) for bank in self._banks]
        matched, soft = chosen(scores, [bank.rule.threshold for bank in self._banks], self._config)
        return [
            Observation(
                "embedding",
                bank.rule.name,
                Truth.of(n in matched),
                min(1.0, max(0.0, scores[n])) if n in matched else None,
                scores[n],
                evidence={"soft": True} if soft and n in matched else {},
            )
            for n, bank in enumerate(self._banks)
        ]

    def _score(self, bank: _Bank, query: Matrix, candidates: Matrix) -> float:
        """The likeness to wanted candidates, less that to unwanted ones."""
        scoring = bank.rule.prototype_scoring or self._config.prototype_scoring
        mean = bank.rule.aggregation_method == "mean"
        middle = bank.start + bank.wanted
        score = similarity(query, candidates[bank.start : middle], scoring, mean)
        return score - similarity(query, candidates[middle : middle + bank.unwanted], scoring, mean) if bank.unwanted else score


def chosen(scores: Sequence[float], thresholds: Sequence[float], config: EmbeddingConfig) -> tuple[frozenset[int], bool]:
    """The numbers of the rules that match, and whether that is by soft matching."""
    order = sorted(range(len(scores)), key=lambda n: -scores[n])
    passed = [n for n in order if scores[n] >= thresholds[n]]
    if passed:
        return frozenset(passed[: config.top_k or None]), False
    if config.enable_soft_matching and order and scores[order[0]] >= config.min_score_threshold:
        return frozenset(order[:1]), True
    return frozenset(), False


def compile_embeddings(rules: Sequence[EmbeddingRule], recipe: Recipe) -> Sequence[ModelSignal]:
    """Raises ConfigError when nothing makes vectors, or a picture cannot be read."""
    groups = [(modality, [rule for rule in rules if rule.query_modality == modality]) for modality in ("text", "image")]
    return [_compiled(modality, group, recipe) for modality, group in groups if group]


def _compiled(modality: str, rules: Sequence[EmbeddingRule], recipe: Recipe) -> EmbeddingSignal:
    banks: list[_Bank] = []
    candidates: list[Input] = []
    for rule in rules:
        wanted: list[Input] = [*rule.candidates, *image_inputs(rule.image_candidates, recipe.document.place)]
        unwanted: list[Input] = [*rule.negative_candidates, *image_inputs(rule.negative_image_candidates, recipe.document.place)]
        banks.append(_Bank(rule, len(candidates), len(wanted), len(unwanted)))
        candidates += [*wanted, *unwanted]
    deployment = required_embedding(recipe, f'embedding rule "{rules[0].name}"')
    return EmbeddingSignal(modality, banks, Embedder(deployment, recipe.vectors, candidates), embedding_config(recipe))


EMBEDDING = SignalKind("embedding", "embeddings", "embeddings", compile_embeddings, scale="similarity")
