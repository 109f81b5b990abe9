"""Logits of one question -> Reading: calibrated nouls, thresholds of sets, spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.decisions.reader import FloatArray, FoundSpan, Reading
from headway.runtime.readers.vela2.calibration import BROAD, Calibration
from headway.runtime.readers.vela2.parts import UNCOVERED
from headway.runtime.readers.vela2.questions import VelaQuestion
from headway.runtime.readers.vela2.spans import LabelledSpan, find_spans, trimmed
from headway.runtime.readers.vela2.words import Word


@dataclass(frozen=True, slots=True)
class SpanSource:
    """What a span question read: the text of its part, how many tokens that has, its words, and the head."""

    text: str
    tokens: int
    words: Sequence[Word]
    head: str


class VelaReadings:
    """`calibrate_nouls`: apply the package's fit of nouls. `report_heads`: there are several span heads."""

    def __init__(self, calibration: Calibration, *, calibrate_nouls: bool, report_heads: bool):
        self._calibration = calibration
        self._noul = calibration.noul if calibrate_nouls else None
        self._report_heads = report_heads

    def options(self, question: VelaQuestion, logits: FloatArray, unread: int) -> Reading:
        """logits [options], and that of "none of these" last where it is shown. `unread`: tokens that were cut."""
        scores = logits[: len(question.options)]
        extras = {"unread_tokens": unread} if unread else {}
        threshold = self._calibration.set_threshold(question.key) if question.kind == "set" else None
        if question.kind == "noul" and self._noul is not None:
            scores = self._fitted(scores)
        abstain = float(logits[-1]) if question.kind == "choice" else None
        return Reading(scores, abstain, threshold=threshold, extras=extras)

    def _fitted(self, scores: FloatArray) -> FloatArray:
        """Logits whose softmax at the type's temperature T' is sigmoid(logit(p) / T + b), p being theirs without the fit."""
        assert self._noul is not None
        divisor, shift = self._noul
        kept = self._calibration.temperature("choice")
        return np.array([0.0, kept * ((scores[1] - scores[0]) / kept / divisor + shift)])

    def spans(self, question: VelaQuestion, logits: FloatArray, source: SpanSource, unread: int) -> Reading:
        """logits [words, labels]."""
        calibration = self._calibration
        temperature = calibration.span_temperature(source.head)
        p = 0.5 * (1.0 + np.tanh(0.5 * logits / temperature))
        threshold = question.threshold
        if threshold is None:
            threshold = calibration.span_threshold(question.key, question.names, source.tokens, source.head)
            threshold = self._gated(threshold, question, p, source)
        low, high = question.clip or (0, len(source.text))
        found = [_clipped(span, source.text, low, high) for span in find_spans(p, source.words, source.text, threshold)]
        spans = tuple(
            FoundSpan(question.names[span.label], span.start - low, span.end - low, source.text[span.start : span.end], span.probability)
            for span in found if span.start < span.end
        )  # fmt: skip
        inside = [index for index, word in enumerate(source.words) if low <= word.start and word.end <= high]
        best = logits[inside].max(0) if inside else np.full(len(question.options), UNCOVERED)
        # The planner divides by the temperature of spans, which is that of the router head.
        scores = best * (calibration.temperature("span") / temperature)
        return Reading(scores, spans=spans, threshold=threshold, span_head=source.head if self._report_heads else None,
                       extras={"unread_tokens": unread} if unread else {})  # fmt: skip

    def _gated(self, threshold: float, question: VelaQuestion, p: FloatArray, source: SpanSource) -> float:
        """A text with little personal data in it is read at a higher threshold."""
        gate = self._calibration.sparse_gate
        if gate is None or source.head == BROAD or not self._calibration.is_personal(question.key, question.names):
            return threshold
        most, least, probe = gate
        if threshold >= least or not source.words or len(find_spans(p, source.words, source.text, probe)) > most:
            return threshold
        return least


def _clipped(span: LabelledSpan, text: str, low: int, high: int) -> LabelledSpan:
    start, end = trimmed(text, max(span.start, low), min(span.end, high)) if (low, high) != (0, len(text)) else (span.start, span.end)
    return LabelledSpan(start, max(start, end), span.label, span.probability)
