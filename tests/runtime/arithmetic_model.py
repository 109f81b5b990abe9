"""A model with arithmetic that anybody can do in their head, and switches to break it: for tests of what is around models.

A text's token ids are its code points. Embeddings: [sum of ids, number of ids]. Classify: the last digit of the sum decides
between `even` and `odd`. Rerank: a document's logit is the number of characters that it shares with the query.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from random import Random
from typing import Any

import numpy as np

from headway.errors import RequestError
from headway.runtime.loaded_model import LoadedModel, Planner, Surface
from headway.runtime.model_facts import EmbeddingFacts, HeadFacts, ModelFacts
from headway.runtime.row import ItemFailure, Outcome, Row
from headway.wire.classify import ClassifyRequest, TextInput
from headway.wire.embeddings import EmbeddingsRequest, Text
from headway.wire.rerank import RerankRequest

Rows = Generator[Sequence[Row], Sequence[Outcome], dict[str, Any]]
LABELS = ("even", "odd")
BREAKS, NOT_A_NUMBER, TOO_LONG = "¤", "∞", 1000


class ArithmeticModel(LoadedModel):
    """`passes` are the token ids of the rows of every forward pass so far. A row with BREAKS makes its pass raise, one with
    NOT_A_NUMBER comes out as NaN. While `gate` is cleared no pass ends; `entered` is set once one waits there."""

    def __init__(self, rounds: int = 1, uses_device_thread: bool = True):
        self.facts = ModelFacts(
            parameters=2, dtype="float32", limits={"max_input_tokens": TOO_LONG},
            heads=(HeadFacts("parity", "sequence", LABELS),), embedding=EmbeddingFacts((2,), (1,), False, "sum"),
        )  # fmt: skip
        self.planners: dict[Surface, Planner] = {
            "embeddings": self._embeddings, "classify": self._classify, "rerank": self._rerank,
        }  # fmt: skip
        self.uses_device_thread = uses_device_thread
        self.passes: list[list[tuple[int, ...]]] = []
        self.threads: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.rounds = rounds

    @property
    def memory_bytes(self) -> int:
        return 8

    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        self.passes.append([row.token_ids for row in rows])
        self.threads.add(threading.current_thread().name)
        if not self.gate.is_set():
            self.entered.set()
            assert self.gate.wait(30)
        texts = ["".join(map(chr, row.token_ids)) for row in rows]
        if any(BREAKS in text for text in texts):
            raise ZeroDivisionError("secret text: " + " ".join(texts))
        return [_values(text) for text in texts]

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        return [Row(tuple(chance.randrange(97, 123) for _ in range(length)), "sum")]

    def _embeddings(self, request: EmbeddingsRequest) -> Rows:
        if request.layer is not None:
            raise RequestError("this model has no exits", param="layer")
        texts = [item.text if isinstance(item, Text) else None for item in request.inputs]
        rows = [_row(text) for text in texts if text is not None and len(text) <= TOO_LONG]
        outcomes = iter((yield from self._run(rows)))
        data = []
        for index, text in enumerate(texts):
            if text is None or len(text) > TOO_LONG:
                data.append({"object": "embedding", "index": index, "error": "max_length_exceeded" if text else "invalid_input"})
                continue
            outcome = next(outcomes)
            if isinstance(outcome, ItemFailure):
                data.append({"object": "embedding", "index": index, "error": outcome.code})
            else:
                data.append({"object": "embedding", "index": index, "embedding": outcome})
        tokens = sum(len(row.token_ids) for row in rows)
        return {
            "object": "list", "data": data, "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            "meta": {"representation": {"layer": 1, "dimension": 2, "normalized": False}},
        }  # fmt: skip

    def _classify(self, request: ClassifyRequest) -> Rows:
        if request.head not in (None, "parity"):
            raise RequestError("there is no such head", param="head")
        rows = [_row(item.text if isinstance(item, TextInput) else "") for item in request.inputs]
        outcomes = yield from self._run(rows)
        results = []
        for index, outcome in enumerate(outcomes):
            if isinstance(outcome, ItemFailure):
                results.append({"index": index, "error": outcome.code})
            else:
                results.append({"index": index, "label": LABELS[int(outcome[0]) % 2]})
        return {"head": "parity", "kind": "sequence", "labels": list(LABELS), "results": results, "usage": {"input_tokens": 1}}

    def _rerank(self, request: RerankRequest) -> Rows:
        outcomes = yield from self._run([_row(document) for document in request.documents])
        results = [{"index": index, "logit": float(outcome[1])} for index, outcome in enumerate(outcomes)]
        return {"results": results, "usage": {"input_tokens": 1}}

    def _run(self, rows: list[Row]) -> Generator[Sequence[Row], Sequence[Outcome], Sequence[Outcome]]:
        """Every round after the first asks for the rows again, with another readout."""
        outcomes = yield rows
        for number in range(1, self.rounds):
            outcomes = yield [Row(row.token_ids, f"sum{number}") for row in rows]
        return outcomes


def _row(text: str) -> Row:
    return Row(tuple(map(ord, text)), "sum")


def _values(text: str) -> np.ndarray[Any, Any]:
    if NOT_A_NUMBER in text:
        return np.array([np.nan, 0.0], dtype=np.float32)
    return np.array([sum(map(ord, text)), len(text)], dtype=np.float32)
