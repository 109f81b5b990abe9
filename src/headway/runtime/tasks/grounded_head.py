"""Grounded heads: which parts of an answer its context does not support."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from headway.decisions.reader import FoundSpan
from headway.runtime.long_input.bounded_text import Offset
from headway.runtime.model_facts import HeadFacts, Overflow
from headway.runtime.row import ItemFailure, Outcome
from headway.runtime.tasks.classify import ClassifyHead, unfit
from headway.runtime.tasks.input_usage import InputUsage, too_long
from headway.runtime.tasks.item_plan import Item, ItemPlan
from headway.runtime.tasks.long_input import HeadLimits, LongInput
from headway.runtime.tasks.operating_point import GroundedPoint
from headway.runtime.tasks.sequence_head import softmax
from headway.runtime.tasks.sequence_text import SequenceText
from headway.runtime.tasks.span_decoding import trimmed
from headway.runtime.tasks.token_head import READOUT, span_body, token_bodies
from headway.wire.classify import ClassifyRequest, GroundedInput, InvalidInput

POLICIES: Final[tuple[Overflow, ...]] = ("reject", "truncate")


class GroundedHead(ClassifyHead):
    """Offsets are code points of the answer. A long pair is cut at the end of question and context; the answer stays whole."""

    policies: Sequence[Overflow] = POLICIES
    finds_spans = True

    def __init__(self, facts: HeadFacts, limits: HeadLimits, text: SequenceText, point: GroundedPoint):
        self.facts = facts
        self.limits = limits
        self._text = text
        self._point = point

    def plan_items(self, request: ClassifyRequest, reading: LongInput) -> list[Item]:
        return [self._item(i, given, request, reading) for i, given in enumerate(request.inputs)]

    def _item(self, index: int, given: Any, request: ClassifyRequest, reading: LongInput) -> Item:
        if isinstance(given, InvalidInput):
            return ItemFailure("invalid_input", given.message)
        if not isinstance(given, GroundedInput):
            return ItemFailure("invalid_input", unfit(given, self.facts, index))
        if not given.answer.strip():
            return ItemFailure("invalid_input", f"input {index} has no answer")
        envelope = self._text.pair
        answer = self._text.content(given.answer, reading.allowed, offsets=True)
        context = self._text.content(self._point.first_text(given.question, given.context), reading.allowed)
        tokens = len(context.ids) + len(answer.ids) + envelope.size
        lower_bound = not (context.complete and answer.complete)
        room = reading.allowed - envelope.size - len(answer.ids)
        if room < 0 or (tokens > reading.allowed and reading.overflow == "reject"):
            return too_long(tokens, reading.allowed, lower_bound, f"input {index}")
        row = self._text.pair_row(envelope, context.ids[:room], answer.ids, READOUT)
        first = envelope.second_start(context.ids[:room])
        usage = InputUsage(tokens, len(row.token_ids), lower_bound)

        def read(outcomes: Sequence[Outcome]) -> dict[str, Any]:
            probabilities = softmax(outcomes[0][first : first + len(answer.ids)])
            return self._spans(given.answer, answer.offsets, probabilities, request)

        return ItemPlan((row,), usage, read)

    def _spans(
        self, text: str, offsets: Sequence[Offset], probabilities: npt.NDArray[np.float64], request: ClassifyRequest
    ) -> dict[str, Any]:
        unsupported = probabilities[:, self._point.positive]
        spans = self._runs(text, offsets, unsupported, request.threshold)
        body: dict[str, Any] = {"spans": [span_body(span) for span in spans]}
        if request.return_tokens:
            body["tokens"] = token_bodies(self.facts.labels, offsets, probabilities)
        return body

    def _runs(
        self, text: str, offsets: Sequence[Offset], unsupported: npt.NDArray[np.float64], threshold: float | None
    ) -> list[FoundSpan]:
        """Runs of tokens that pass the threshold; the probability of a run is its largest."""
        label = self.facts.labels[self._point.positive]
        runs: list[list[Any]] = []
        is_open = False
        for (start, end), probability in zip(offsets, unsupported.tolist(), strict=True):
            if start == end:
                continue
            if not self._point.passes(probability, threshold):
                is_open = False
            elif is_open:
                runs[-1][1:] = [max(end, runs[-1][1]), max(probability, runs[-1][2])]
            else:
                runs.append([start, end, probability])
                is_open = True
        return [span for start, end, top in runs if (span := trimmed(text, label, start, end, top)) is not None]
