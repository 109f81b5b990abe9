"""Sequence and multi-label heads: one distribution, or one score for each label, for a text or a pair of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from headway.errors import RequestError
from headway.runtime.long_input.windows import Window, windows
from headway.runtime.model_facts import HeadFacts, Overflow
from headway.runtime.row import ItemFailure, Outcome
from headway.runtime.tasks.classify import ClassifyHead, unfit
from headway.runtime.tasks.input_usage import InputUsage, over_budget, too_long
from headway.runtime.tasks.item_plan import Item, ItemPlan
from headway.runtime.tasks.long_input import HeadLimits, LongInput
from headway.runtime.tasks.operating_point import ScorePoint
from headway.runtime.tasks.pair_cut import cut_pair
from headway.runtime.tasks.sequence_text import SequenceText
from headway.wire.classify import ClassifyRequest, InvalidInput, TextInput

Floats: TypeAlias = npt.NDArray[np.float64]
READOUT: Final = "classify"


def softmax(logits: npt.ArrayLike) -> Floats:
    """Over the last axis, in float64."""
    x = np.asarray(logits, dtype=np.float64)
    raised = np.exp(x - x.max(-1, keepdims=True))
    shares: Floats = raised / raised.sum(-1, keepdims=True)
    return shares


def sigmoid(logits: npt.ArrayLike) -> Floats:
    """In float64, without overflow."""
    x = np.asarray(logits, dtype=np.float64)
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


class SequenceHead(ClassifyHead):
    """`point` only for multi-label heads. Long texts: the largest value of each label over all windows."""

    policies: Sequence[Overflow] = ("reject", "truncate", "window")

    def __init__(self, facts: HeadFacts, limits: HeadLimits, text: SequenceText, point: ScorePoint | None = None, *, readout: str = READOUT):
        self.facts = facts
        self.limits = limits
        self._text = text
        self._point = point
        self._readout = readout
        self._values: Callable[[npt.ArrayLike], Floats] = softmax if facts.kind == "sequence" else sigmoid

    def plan_items(self, request: ClassifyRequest, reading: LongInput) -> list[Item]:
        if reading.window is not None:
            for index, given in enumerate(request.inputs):
                if isinstance(given, TextInput) and given.text_pair is not None:
                    raise RequestError(f"input {index} is a pair of texts; windows read single texts",
                                       param="options.overflow", fix="Use overflow: reject or truncate.")  # fmt: skip
        return [self._item(i, given, reading) for i, given in enumerate(request.inputs)]

    def _item(self, index: int, given: Any, reading: LongInput) -> Item:
        if isinstance(given, InvalidInput):
            return ItemFailure("invalid_input", given.message)
        if not isinstance(given, TextInput) or (given.text_pair is not None and "text_pair" not in self.facts.inputs):
            return ItemFailure("invalid_input", unfit(given, self.facts, index))
        if not given.text.strip():  # some tokenizers make tokens of white space
            return ItemFailure("invalid_input", f"input {index} has no text")
        if given.text_pair is not None:
            return self._pair(index, given.text, given.text_pair, reading)
        return self._windowed(index, given.text, reading) if reading.window is not None else self._single(index, given.text, reading)

    def _single(self, index: int, text: str, reading: LongInput) -> Item:
        content = self._text.content(text, reading.allowed)
        if not content.ids:
            return ItemFailure("invalid_input", f"input {index} has no text")
        special = self._text.single.size
        tokens = len(content.ids) + special
        if tokens > reading.allowed and reading.overflow == "reject":
            return too_long(tokens, reading.allowed, not content.complete, f"input {index}")
        kept = content.ids[: reading.allowed - special]
        usage = InputUsage(tokens, len(kept) + special, lower_bound=not content.complete)
        return ItemPlan((self._text.row(kept, self._readout),), usage, lambda outcomes: self._answer(self._values(outcomes[0])))

    def _pair(self, index: int, first: str, second: str, reading: LongInput) -> Item:
        envelope = self._text.pair
        one, two = self._text.content(first, reading.allowed), self._text.content(second, reading.allowed)
        tokens = len(one.ids) + len(two.ids) + envelope.size
        lower_bound = not (one.complete and two.complete)
        if tokens > reading.allowed and reading.overflow == "reject":
            return too_long(tokens, reading.allowed, lower_bound, f"input {index}")
        keep_one, keep_two = cut_pair(len(one.ids), len(two.ids), max(0, reading.allowed - envelope.size))
        row = self._text.pair_row(envelope, one.ids[:keep_one], two.ids[:keep_two], self._readout)
        usage = InputUsage(tokens, len(row.token_ids), lower_bound=lower_bound)
        return ItemPlan((row,), usage, lambda outcomes: self._answer(self._values(outcomes[0])))

    def _windowed(self, index: int, text: str, reading: LongInput) -> Item:
        assert reading.window is not None
        content = self._text.content(text, reading.budget)
        if not content.ids:
            return ItemFailure("invalid_input", f"input {index} has no text")
        special = self._text.single.size
        tokens = len(content.ids) + special
        if tokens > reading.budget:
            return over_budget(tokens, reading.budget, not content.complete, f"input {index}")
        laid = windows(len(content.ids), reading.window.tokens - special, reading.window.overlap)
        rows = tuple(self._text.row(content.ids[window.start : window.end], self._readout) for window in laid)
        return ItemPlan(rows, InputUsage(tokens, tokens, windows=len(laid)), lambda outcomes: self._merged(laid, outcomes))

    def _merged(self, laid: Sequence[Window], outcomes: Sequence[Outcome]) -> dict[str, Any]:
        each = [self._values(outcome) for outcome in outcomes]
        name = "probabilities" if self.facts.kind == "sequence" else "scores"
        shown = [{"start": window.start, "end": window.end, name: values.tolist()} for window, values in zip(laid, each, strict=True)]
        return {**self._answer(np.max(each, axis=0)), "windows": shown}

    def _answer(self, values: Floats) -> dict[str, Any]:
        if self.facts.kind == "sequence":
            return {"label": self.facts.labels[int(values.argmax())], "probabilities": values.tolist()}
        body: dict[str, Any] = {"scores": values.tolist()}
        if self._point is not None:
            bounds = np.array(self._point.thresholds)
            passed = values >= bounds if self._point.inclusive else values > bounds
            body["selected"] = [label for label, yes in zip(self.facts.labels, passed, strict=True) if yes]
        return body
