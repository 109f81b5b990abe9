"""BlockReader: one row for each question, spans over long parts in windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.decisions.question import Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.decisions.text_only import too_long
from headway.runtime.readers.canonical_text import canonical_text
from headway.runtime.readers.endpoints.prompt import option_text
from headway.runtime.readers.group_size import fitting_options
from headway.runtime.readers.vela2.blocks import Block, BlockForm
from headway.runtime.readers.vela2.calibration import ROUTER, Calibration, is_alias
from headway.runtime.readers.vela2.encoder_reader import merged_words
from headway.runtime.readers.vela2.parts import (
    DoesNotFit,
    PartTokens,
    covers_words,
    kept_lengths,
    uncovered,
    word_windows,
)
from headway.runtime.readers.vela2.questions import VelaQuestion
from headway.runtime.readers.vela2.reading import SpanSource, VelaReadings
from headway.runtime.readers.vela2.request import Prepared, RequestReader
from headway.runtime.readers.vela2.state import Role
from headway.runtime.row import ItemFailure, Outcome, Row


@dataclass(frozen=True, slots=True)
class SpanForm:
    """`repeat`: the longest part that a span's block repeats whole; longer ones are read in windows of `window` tokens that
    begin `stride` apart."""

    repeat: int
    window: int
    stride: int


class BlockReader(DecisionReader):
    """Outcomes: logits [options] of the readouts `options` and `set`, [words, labels] of the span heads."""

    question_types: frozenset[QuestionType] = frozenset({"choice", "noul", "score", "set", "span"})
    reads_parts = True

    def __init__(self, requests: RequestReader, readings: VelaReadings, calibration: Calibration, presets: Mapping[str, Question], spans: SpanForm, *,
                 max_tokens: int, broad_loaded: bool):  # fmt: skip
        self._requests = requests
        self._readings = readings
        self._calibration = calibration
        self._form = BlockForm(requests.ids)
        self._spans = spans
        self._max_tokens = max_tokens
        self._broad_loaded = broad_loaded
        self.presets = presets

    def temperature(self, kind: QuestionType, options: int) -> float:
        return self._calibration.temperature("choice" if kind == "noul" else kind)

    def group_size(self, subject: Subject, question: Question) -> int:
        """Half of the input stays for the state."""
        described = [(option.key, "" if option.description is None else canonical_text(option.description)) for option in question.options]
        return fitting_options(
            len(described), self.comfortable_options, lambda: self._max_tokens // 2,
            lambda: [len(self._requests.ids(option_text(*each))) for each in described],
        )  # fmt: skip

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        prepared = self._requests.prepare(subject, questions)
        if isinstance(prepared, ItemFailure):
            return [prepared] * len(questions)
        return [each if isinstance(each, ItemFailure) else self._plan(prepared, each) for each in prepared.questions]

    def _plan(self, prepared: Prepared, question: VelaQuestion) -> QuestionPlan | ItemFailure:
        try:
            return self._plan_span(prepared, question) if question.kind == "span" else self._plan_options(prepared, question)
        except DoesNotFit:
            return too_long(self._needed(prepared, question), self._max_tokens)

    def _plan_options(self, prepared: Prepared, question: VelaQuestion) -> QuestionPlan:
        block = self._form.block(question)
        parts = self._cut(prepared.parts_for(question, self._max_tokens), question, _length(block))
        row = self._form.options_row(question, block, parts)
        unread = _unread(prepared, question, parts)

        def read(outcomes: Sequence[Outcome]) -> Reading:
            return self._readings.options(question, np.asarray(outcomes[0], dtype=np.float64), unread)

        return QuestionPlan((row,), read, len(row.token_ids), unread == 0)

    def _plan_span(self, prepared: Prepared, question: VelaQuestion) -> QuestionPlan:
        role = question.roles[0]
        head = self._calibration.span_head(question.head, question.key, question.names, broad_loaded=self._broad_loaded)
        shown = self._as_trained(question, head)
        block = self._form.block(shown)
        parts = prepared.parts_for(question, self._max_tokens)
        target = next(part for part in parts if part.role == role)
        if len(target.ids) <= self._spans.repeat:
            cut = self._cut(parts, question, _length(block) + self._form.around_repeat(role), repeated=role)
            windows = None
            views = [cut]
        else:
            windows = word_windows(target.words, len(target.ids), self._spans.window, self._spans.stride)
            views = [
                self._cut(tuple(part.window(start, end) if part.role == role else part for part in parts), question,
                          _length(block) + self._form.around_repeat(role), repeated=role)
                for start, end in windows
            ]  # fmt: skip
        return self._span_plan(prepared, question, [self._form.span_row(head, role, block, view) for view in views], views, windows, head)

    def _span_plan(self, prepared: Prepared, question: VelaQuestion, rows: Sequence[Row], views: Sequence[tuple[PartTokens, ...]],
                   windows: list[tuple[int, int]] | None, head: str) -> QuestionPlan:  # fmt: skip
        role = question.roles[0]
        whole = prepared.parts[role]
        held = [next(part for part in view if part.role == role) for view in views]
        places = [(part.first_word, part.first_word + len(part.words)) for part in held]
        starts = [0] if windows is None else [start for start, _ in windows]
        ranges = [(start, start + len(part.ids)) for start, part in zip(starts, held, strict=True)]
        unread = uncovered(len(whole.ids), ranges)
        seen = whole.words[: max(end for _, end in places)]
        complete = unread == 0 and covers_words(whole.words, ranges)
        source = SpanSource(prepared.state.parts[role], len(whole.ids), seen, head)

        def read(outcomes: Sequence[Outcome]) -> Reading:
            logits = merged_words([np.asarray(each, dtype=np.float64) for each in outcomes], places, len(seen), len(question.options))
            return self._readings.spans(question, logits, source, unread)

        return QuestionPlan(tuple(rows), read, sum(len(row.token_ids) for row in rows), complete)

    def _as_trained(self, question: VelaQuestion, head: str) -> VelaQuestion:
        """The router head knows one name for what no source supports; the answer keeps the caller's."""
        if not self._broad_loaded or head != ROUTER or not is_alias(question.names):
            return question
        trained = self._calibration.trained_label()
        return question if question.names == [trained[0]] else replace(question, options=(trained,))

    def _cut(self, parts: Sequence[PartTokens], question: VelaQuestion, block: int, repeated: Role | None = None) -> tuple[PartTokens, ...]:
        """The parts as far as they fit beside the block. Raises DoesNotFit."""
        room = self._max_tokens - self._form.around_parts([part.role for part in parts]) - block
        if repeated is not None:
            room -= min(len(next(part for part in parts if part.role == repeated).ids), (max(0, room) + 1) // 2)
        kept = kept_lengths(0, parts, room, frozenset(question.roles))
        return tuple(part.window(0, kept[part.role]) for part in parts)

    def _needed(self, prepared: Prepared, question: VelaQuestion) -> int:
        return self._form.around_parts(prepared.state.roles) + _length(self._form.block(question)) + len(prepared.parts)


def _length(block: Block) -> int:
    return len(block.head) + sum(len(option) for option in block.options) + len(block.suffix)


def _unread(prepared: Prepared, question: VelaQuestion, parts: Sequence[PartTokens]) -> int:
    """Tokens of the parts that the question reads and that were cut."""
    return sum(len(prepared.parts[part.role].ids) - len(part.ids) for part in parts if part.role in question.roles)
