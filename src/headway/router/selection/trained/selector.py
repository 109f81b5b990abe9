"""knn, kmeans, svm, mlp: models chosen by what was learned from rows of texts and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.router.deployments.calls import Unanswered
from headway.router.embedding.embedder import Embedder
from headway.router.request.context import RequestContext
from headway.router.selection.candidates import Candidate
from headway.router.selection.embedding_query import embedded_query
from headway.router.selection.ranking import Ranking, by_score, without_choice
from headway.router.selection.trained.artifact import Trained


@dataclass(frozen=True, slots=True)
class TrainedSelector:
    """Models that it was not trained on come last. Vectors of another embedding model than in training are never scored."""

    type: str
    trained: Trained
    embedder: Embedder

    def deployments(self) -> frozenset[str]:
        return frozenset({self.embedder.deployment})

    async def rank(self, candidates: Sequence[Candidate], context: RequestContext) -> Ranking:
        told = self.trained.description
        known = {candidate.name: told.models.index(candidate.name) for candidate in candidates if candidate.name in told.models}
        if not known:
            return without_choice(candidates, "not_trained_on_these_models")
        vectors = await embedded_query(self.embedder, context)
        if isinstance(vectors, Unanswered):
            return without_choice(candidates, vectors.reason)
        if vectors.queries.shape[1] != told.width or told.representation not in (None, vectors.representation):
            return without_choice(candidates, "embedding_model_changed")
        row = self.trained.scores(vectors.queries)[0]
        scores = {model: float(row[at]) for model, at in known.items()}
        return Ranking(by_score(candidates, scores), f"the best by {self.type}", scores)
