"""The plan of `POST /v1/rerank`: how well each document answers a query, best first."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from headway.errors import RequestError
from headway.runtime.model_facts import RerankExit, RerankFacts
from headway.runtime.row import ItemFailure, Outcome, Row
from headway.runtime.tasks.input_usage import InputUsage, too_long
from headway.runtime.tasks.item_plan import Answered, Item, ItemPlan, failed_item, input_tokens, run_items
from headway.runtime.tasks.sequence_head import sigmoid
from headway.runtime.tasks.sequence_text import SequenceText
from headway.wire.rerank import RerankRequest


def scorer_name(scorer: RerankExit) -> str:
    """The readout of one trained pair of layer and dimension."""
    return f"relevance {scorer.layer}/{scorer.dimension}"


class RerankPlanner:
    """Query first, document second. `last_layer` is read as such, all others as exits."""

    def __init__(self, facts: RerankFacts, text: SequenceText, last_layer: int):
        self._facts = facts
        self._text = text
        self._last_layer = last_layer

    def __call__(self, request: RerankRequest) -> Generator[Sequence[Row], Sequence[Outcome], dict[str, Any]]:
        scorer = self._scorer(request)
        results = yield from run_items(self._items(request, scorer))
        scored: list[dict[str, Any]] = []
        failed: list[dict[str, Any]] = []
        for index, result in enumerate(results):
            if not isinstance(result, Answered):
                failed.append(failed_item(index, result))
                continue
            entry = {"index": index, "relevance_score": float(sigmoid(result.value)), "logit": result.value}
            if request.return_documents:
                entry["document"] = request.documents[index]
            scored.append({**entry, "input": result.usage.body()})
        scored.sort(key=lambda entry: (-entry["logit"], entry["index"]))
        return {"results": scored[: request.top_n] + failed, "usage": {"input_tokens": input_tokens(results), "output_tokens": 0},
                "meta": {"pair_scorer": {"layer": scorer.layer, "dimension": scorer.dimension}}}  # fmt: skip

    def _scorer(self, request: RerankRequest) -> RerankExit:
        """Raises RequestError for a pair that was not trained."""
        default = self._facts.default
        asked = RerankExit(request.layer or default.layer, request.dimensions or default.dimension)
        if asked not in self._facts.exits:
            known = ", ".join(f"{each.layer}/{each.dimension}" for each in self._facts.exits)
            raise RequestError(f"layer and dimensions must be one of {known}, found {asked.layer}/{asked.dimension}",
                               param="layer" if request.layer is not None else "dimensions")  # fmt: skip
        return asked

    def _items(self, request: RerankRequest, scorer: RerankExit) -> list[Item]:
        envelope, limit = self._text.pair, self._text.limit
        need = limit - envelope.size + 1
        query, *documents = self._text.bounded.read_all([request.query, *request.documents], need)
        layer = scorer.layer if scorer.layer != self._last_layer else None
        items: list[Item] = []
        for index, (text, document) in enumerate(zip(request.documents, documents, strict=True)):
            tokens = len(query.ids) + len(document.ids) + envelope.size
            if not text.strip() or not document.ids:
                items.append(ItemFailure("invalid_input", f"document {index} has no text"))
            elif tokens > limit:
                items.append(too_long(tokens, limit, not (query.complete and document.complete), f"the query with document {index}"))
            else:
                row = self._text.pair_row(envelope, query.ids, document.ids, scorer_name(scorer), layer)
                items.append(ItemPlan((row,), InputUsage(tokens, tokens), lambda outcomes: float(outcomes[0][0])))
        return items
