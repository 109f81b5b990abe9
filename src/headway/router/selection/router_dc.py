"""router_dc: the model whose description is most like the request."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.router.config.document.algorithms import RouterDCSelection
from headway.router.deployments.calls import Unanswered
from headway.router.embedding.embedder import Embedder
from headway.router.embedding.memo import VectorMemo
from headway.router.request.context import RequestContext
from headway.router.selection.candidates import Candidate
from headway.router.selection.embedding_query import embedded_query
from headway.router.selection.ranking import Ranking, by_score, without_choice


def described(candidate: Candidate, with_capabilities: bool) -> str:
    """What stands for a model: its description, and what it says it can do; its name when there is neither."""
    words = [candidate.description or ""]
    if with_capabilities and candidate.card is not None and candidate.card.capabilities:
        words.append("Capabilities: " + ", ".join(candidate.card.capabilities))
    return "\n".join(filter(None, words)) or candidate.name


class RouterDC:
    """Similarities become probabilities by a softmax with `temperature`; when even the best similarity is below `min_similarity` nothing fits, and
    the declared order holds. A request without text, or an embedding model that does not answer, likewise."""

    type = "router_dc"

    def __init__(self, settings: RouterDCSelection, deployment: str, candidates: Sequence[Candidate], memo: VectorMemo):
        self._settings = settings
        self._order = [candidate.name for candidate in candidates]
        texts = [described(candidate, settings.use_capabilities) for candidate in candidates]
        self._embedder = Embedder(deployment, memo, texts)

    def deployments(self) -> frozenset[str]:
        return frozenset({self._embedder.deployment})

    async def rank(self, candidates: Sequence[Candidate], context: RequestContext) -> Ranking:
        found = await self.similarities(context)
        if isinstance(found, str):
            return without_choice(candidates, found)
        similarity = {candidate.name: found[candidate.name] for candidate in candidates}
        if max(similarity.values()) < self._settings.min_similarity:
            return without_choice(candidates, "below_min_similarity")
        values = np.array(list(similarity.values())) / self._settings.temperature
        chances = np.exp(values - values.max())
        chances /= chances.sum()
        scores = dict(zip(similarity, chances.tolist(), strict=True))
        return Ranking(by_score(candidates, scores), "the description that is most like the request", scores, max(scores.values()))

    async def similarities(self, context: RequestContext) -> dict[str, float] | str:
        """By candidate; a word when there are none."""
        vectors = await embedded_query(self._embedder, context)
        if isinstance(vectors, Unanswered):
            return vectors.reason
        return dict(zip(self._order, (vectors.candidates @ vectors.queries[0]).tolist(), strict=True))
