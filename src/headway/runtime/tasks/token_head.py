"""Token heads: labels of tokens, and the spans that they make (personal data, names, ...)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from headway.decisions.reader import FoundSpan
from headway.runtime.long_input.bounded_text import Content, Offset
from headway.runtime.long_input.windows import Window, deepest, windows
from headway.runtime.model_facts import HeadFacts, Overflow
from headway.runtime.row import ItemFailure, Outcome
from headway.runtime.tasks.classify import ClassifyHead, unfit
from headway.runtime.tasks.input_usage import InputUsage, over_budget, too_long
from headway.runtime.tasks.item_plan import Item, ItemPlan
from headway.runtime.tasks.long_input import HeadLimits, LongInput
from headway.runtime.tasks.sequence_head import softmax
from headway.runtime.tasks.sequence_text import SequenceText
from headway.runtime.tasks.span_decoding import WordStrategy, decode_spans
from headway.runtime.tasks.tags import tags_of
from headway.wire.classify import ClassifyRequest, InvalidInput, TextInput

READOUT: Final = "tokens"
_INSIDE: Final = 64  # code points of a token within which a cut is looked for; one unknown word may have thousands


class TokenHead(ClassifyHead):
    """Offsets are code points of the text as it was sent. An empty text has no spans."""

    policies: Sequence[Overflow] = ("reject", "truncate", "window")
    finds_spans = True

    def __init__(self, facts: HeadFacts, limits: HeadLimits, text: SequenceText, words: WordStrategy):
        self.facts = facts
        self.limits = limits
        self._text = text
        self._words = words
        self._tags = tags_of(facts.labels)

    def plan_items(self, request: ClassifyRequest, reading: LongInput) -> list[Item]:
        return [self._item(i, given, request, reading) for i, given in enumerate(request.inputs)]

    def _item(self, index: int, given: Any, request: ClassifyRequest, reading: LongInput) -> Item:
        if isinstance(given, InvalidInput):
            return ItemFailure("invalid_input", given.message)
        if not isinstance(given, TextInput) or given.text_pair is not None:
            return ItemFailure("invalid_input", unfit(given, self.facts, index))
        text, special = given.text, self._text.single.size
        content = self._text.content(text, reading.budget, offsets=True)
        tokens = len(content.ids) + special
        if not content.ids:
            return ItemPlan((), InputUsage(tokens, tokens), lambda outcomes: _nothing(request))
        if tokens > reading.budget and reading.overflow != "truncate":
            failure = over_budget if reading.overflow == "window" else too_long
            return failure(tokens, reading.budget, not content.complete, f"input {index}")
        lower_bound = not content.complete
        if tokens > reading.budget:
            content = self._prefix(text, content, reading.budget - special)
        width = reading.allowed - special
        overlap = reading.window.overlap if reading.window is not None else 0
        laid = windows(len(content.ids), width, overlap) if content.ids else []
        rows = tuple(self._text.row(content.ids[window.start : window.end], READOUT) for window in laid)
        usage = InputUsage(tokens, len(content.ids) + special, lower_bound, len(laid) if reading.window is not None else None)

        def answer(outcomes: Sequence[Outcome]) -> dict[str, Any]:
            if not outcomes:
                return _nothing(request)
            body = self._spans(text, content.offsets, self._probabilities(laid, outcomes), request)
            if reading.window is not None:
                body["windows"] = [{"start": window.start, "end": window.end} for window in laid]
            return body

        return ItemPlan(rows, usage, answer)

    def _prefix(self, text: str, content: Content, width: int) -> Content:
        """The longest beginning of the text whose own tokens are at most `width`: a cut inside of a word changes its tokens.

        Looked for inside of the first token that no longer fits, then at the ends of the tokens before it.
        """
        start, end = content.offsets[width]
        inside = range(min(end - 1, start + _INSIDE), start, -1)
        for cut in (*inside, start, *(stop for _, stop in reversed(content.offsets[:width]))):
            beginning = self._text.bounded.read(text[:cut], width + 1, offsets=True)
            if len(beginning.ids) <= width:
                return beginning
        return Content((), ())

    def _probabilities(self, laid: Sequence[Window], outcomes: Sequence[Outcome]) -> npt.NDArray[np.float64]:
        """[content tokens, labels]: each token as seen by the window in which it has most context."""
        before = len(self._text.single.before)
        each = [softmax(outcome[before : before + window.end - window.start]) for window, outcome in zip(laid, outcomes, strict=True)]
        if len(each) == 1:
            return each[0]
        chosen = deepest(laid, laid[-1].end)
        return np.stack([each[number][token - laid[number].start] for token, number in enumerate(chosen)])

    def _spans(
        self, text: str, offsets: Sequence[Offset], probabilities: npt.NDArray[np.float64], request: ClassifyRequest
    ) -> dict[str, Any]:
        found = decode_spans(text, offsets, probabilities, self._tags, self._words)
        if request.threshold is not None:
            found = [span for span in found if span.probability >= request.threshold]
        body: dict[str, Any] = {"spans": [span_body(span) for span in found]}
        if request.return_tokens:
            body["tokens"] = token_bodies(self.facts.labels, offsets, probabilities)
        return body


def span_body(span: FoundSpan) -> dict[str, Any]:
    return {"label": span.label, "start": span.start, "end": span.end, "text": span.text, "probability": span.probability}


def token_bodies(labels: Sequence[str], offsets: Sequence[Offset], probabilities: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
    """Each token's place and its best label."""
    best = probabilities.argmax(1).tolist()
    return [
        {"start": start, "end": end, "label": labels[label], "probability": float(probabilities[i, label])}
        for i, ((start, end), label) in enumerate(zip(offsets, best, strict=True))
    ]


def _nothing(request: ClassifyRequest) -> dict[str, Any]:
    return {"spans": [], "tokens": []} if request.return_tokens else {"spans": []}
