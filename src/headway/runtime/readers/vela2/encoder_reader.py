"""SequenceReader: all questions of a state in one sequence, in windows over a part that does not fit.

Questions that cannot share a sequence are put into several: a second span question, questions that take the beginning
alone, and, once something must be cut, questions about different parts. Then each is read as far as there is text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headway.decisions.question import Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, FloatArray, QuestionPlan, Reading
from headway.decisions.text_only import too_long
from headway.runtime.readers.canonical_text import canonical_text, instructions_text
from headway.runtime.readers.group_size import fitting_options
from headway.runtime.readers.vela2.calibration import ROUTER
from headway.runtime.readers.vela2.marker_readout import MarkerLogits
from headway.runtime.readers.vela2.parts import (
    UNCOVERED,
    DoesNotFit,
    PartTokens,
    are_whole,
    covers_words,
    kept_lengths,
    token_windows,
)
from headway.runtime.readers.vela2.questions import VelaQuestion
from headway.runtime.readers.vela2.reading import SpanSource, VelaReadings
from headway.runtime.readers.vela2.request import Prepared, RequestReader
from headway.runtime.readers.vela2.sequence import SchemaTokens, SequenceForm
from headway.runtime.readers.vela2.state import Role
from headway.runtime.row import ItemFailure, Outcome, Row

_NARROWEST = 64  # tokens of a window; below it there would be thousands


@dataclass(frozen=True, slots=True)
class Laid:
    """Rows that answer `members` (indices of questions). `windows`: the tokens of the windowed part that each row holds,
    None without windows. `unread`: tokens of the parts that are read and are in no row."""

    members: tuple[int, ...]
    rows: tuple[Row, ...]
    parts: tuple[tuple[PartTokens, ...], ...]
    windows: tuple[tuple[int, int], ...] | None
    unread: int


class SequenceReader(DecisionReader):
    """Rows of the readout `markers`; outcomes are MarkerLogits."""

    question_types: frozenset[QuestionType] = frozenset({"choice", "noul", "score", "set", "span"})
    reads_parts = True

    def __init__(self, requests: RequestReader, readings: VelaReadings, form: SequenceForm, presets: Mapping[str, Question], *,
                 max_tokens: int, overlap: int, temperatures: Mapping[str, float], isolated: bool = False):  # fmt: skip
        """`isolated`: a sequence for each question, so that none hears of another. The models were made for one sequence."""
        self._requests = requests
        self._readings = readings
        self._form = form
        self._max_tokens = max_tokens
        self._overlap = overlap
        self._temperatures = temperatures
        self._isolated = isolated
        self.presets = presets

    def temperature(self, kind: QuestionType, options: int) -> float:
        return self._temperatures["choice" if kind == "noul" else kind]

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        prepared = self._requests.prepare(subject, questions)
        if isinstance(prepared, ItemFailure):
            return [prepared] * len(questions)
        plans: dict[int, QuestionPlan | ItemFailure] = {
            index: each for index, each in enumerate(prepared.questions) if isinstance(each, ItemFailure)
        }
        for group in _groups(prepared.questions, self._isolated):
            for members, laid in self._lay(prepared, group):
                for index in members:
                    plans[index] = laid if isinstance(laid, ItemFailure) else self._question_plan(prepared, laid, index)
        return [plans[index] for index in range(len(questions))]

    def group_size(self, subject: Subject, question: Question) -> int:
        """Half of the input stays for the state."""
        text = self._requests.ids(instructions_text(question.instructions))
        described = [self._option_text(option.key, "" if option.description is None else canonical_text(option.description)) for option in question.options]
        return fitting_options(
            len(described), self.comfortable_options, lambda: self._max_tokens // 2 - len(text) - 2,
            lambda: [1 + len(self._requests.ids(each)) for each in described],
        )  # fmt: skip

    @staticmethod
    def _option_text(name: str, text: str) -> str:
        return f"{name}: {text}" if text else name

    def _schema(self, question: VelaQuestion) -> SchemaTokens:
        options = tuple(self._requests.ids(self._option_text(name, text)) for name, text in question.options)
        return SchemaTokens(question, () if question.kind == "span" else self._requests.ids(question.text), options)

    def _lay(self, prepared: Prepared, group: Sequence[int]) -> list[tuple[Sequence[int], Laid | ItemFailure]]:
        """Rows for a group, or for parts of it where one sequence will not do: each part with what became of it."""
        asked = [question for index in group if isinstance(question := prepared.questions[index], VelaQuestion)]
        schema = [self._schema(question) for question in asked]
        parts = prepared.parts_for(asked[0], self._max_tokens)
        read = frozenset(role for question in asked for role in question.roles)
        taken = self._form.overhead(len(parts)) + sum(each.length for each in schema)
        try:
            kept = kept_lengths(taken, parts, self._max_tokens, read)
        except DoesNotFit:
            kept = None
        if kept is not None and are_whole(parts, kept, read):
            return [(group, self._row(prepared, group, schema, parts, kept))]
        halves = _split(group, asked, crowded=kept is None or taken > self._max_tokens // 2)
        if halves is not None:
            return [each for half in halves for each in self._lay(prepared, half)]
        if kept is None:
            return [(group, too_long(taken, self._max_tokens))]
        if len(read) > 1 or asked[0].truncate:
            return [(group, self._row(prepared, group, schema, parts, kept))]
        return [(group, self._windows(prepared, group, schema, parts, kept))]

    def _row(self, prepared: Prepared, group: Sequence[int], schema: list[SchemaTokens], parts: tuple[PartTokens, ...], kept: Mapping[Role, int]) -> Laid:
        cut = tuple(part.window(0, kept[part.role]) for part in parts)
        read = frozenset(role for each in schema for role in each.question.roles)
        unread = sum(len(prepared.parts[part.role].ids) - len(part.ids) for part in cut if part.role in read)
        return Laid(tuple(group), (self._form.row(schema, cut),), (cut,), None, unread)

    def _windows(self, prepared: Prepared, group: Sequence[int], schema: list[SchemaTokens], parts: tuple[PartTokens, ...],
                 kept: Mapping[Role, int]) -> Laid | ItemFailure:  # fmt: skip
        role = schema[0].question.roles[0]
        total = len(prepared.parts[role].ids)
        if kept[role] < min(total, _NARROWEST):
            return too_long(self._max_tokens - kept[role] + _NARROWEST, self._max_tokens)
        windows = tuple(token_windows(total, kept[role], self._overlap))
        cut = tuple(
            tuple(part.window(start, end) if part.role == role else part.window(0, kept[part.role]) for part in parts) for start, end in windows
        )
        return Laid(tuple(group), tuple(self._form.row(schema, each) for each in cut), cut, windows, 0)

    def _question_plan(self, prepared: Prepared, laid: Laid, index: int) -> QuestionPlan:
        question = prepared.questions[index]
        assert isinstance(question, VelaQuestion)
        complete = laid.unread == 0
        # The tokens of the rows are counted once, on the first question that they answer.
        tokens = sum(len(row.token_ids) for row in laid.rows) if index == laid.members[0] else 0
        if question.kind != "span":
            scalars = [each for each in laid.members if not _is_span(prepared.questions[each])]
            place = scalars.index(index)
            return QuestionPlan(laid.rows, lambda outcomes: self._read_options(question, laid, place, outcomes), tokens, complete)
        words = prepared.parts[question.roles[0]].words
        complete = complete and (laid.windows is None or covers_words(words, laid.windows))
        return QuestionPlan(laid.rows, lambda outcomes: self._read_spans(prepared, question, laid, outcomes), tokens, complete)

    def _read_options(self, question: VelaQuestion, laid: Laid, place: int, outcomes: Sequence[Outcome]) -> Reading:
        stacked = np.stack([_logits(outcome).options[place] for outcome in outcomes]).astype(np.float64)
        return self._readings.options(question, merged_options(stacked, question.kind == "set"), laid.unread)

    def _read_spans(self, prepared: Prepared, question: VelaQuestion, laid: Laid, outcomes: Sequence[Outcome]) -> Reading:
        role = question.roles[0]
        part = prepared.parts[role]
        windowed = [next(each for each in parts if each.role == role) for parts in laid.parts]
        places = [(each.first_word, each.first_word + len(each.words)) for each in windowed]
        logits = merged_words([_logits(outcome).words.astype(np.float64) for outcome in outcomes], places, len(part.words), len(question.options))
        seen = part.words if laid.windows is not None else part.words[: places[0][1]]
        source = SpanSource(prepared.state.parts[role], len(part.ids), seen, ROUTER)
        return self._readings.spans(question, logits[: len(seen)], source, laid.unread)


def merged_options(stacked: FloatArray, is_set: bool) -> FloatArray:
    """[windows, options] -> [options]: the mean, for sets the largest: a label that one window shows is there."""
    merged: FloatArray = stacked.max(0) if is_set else stacked.mean(0)
    return merged


def merged_words(windows: Sequence[FloatArray], places: Sequence[tuple[int, int]], words: int, labels: int) -> FloatArray:
    """Logits [words of a window, labels] and the words [start, end) that each window holds -> [words, labels]: the mean over
    the windows that hold a word."""
    sums, counts = np.zeros((words, labels)), np.zeros(words)
    for logits, (start, end) in zip(windows, places, strict=True):
        sums[start:end] += logits
        counts[start:end] += 1
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], UNCOVERED)


def _logits(outcome: Outcome) -> MarkerLogits:
    assert isinstance(outcome, MarkerLogits)
    return outcome


def _is_span(question: VelaQuestion | ItemFailure) -> bool:
    return isinstance(question, VelaQuestion) and question.kind == "span"


def _groups(questions: Sequence[VelaQuestion | ItemFailure], isolated: bool) -> list[list[int]]:
    """Questions that may share a sequence: all but the second and later spans; those that take the beginning apart."""
    if isolated:
        return [[index] for index, each in enumerate(questions) if isinstance(each, VelaQuestion)]
    groups: list[list[int]] = []
    for truncate in (False, True):
        those = [index for index, each in enumerate(questions) if isinstance(each, VelaQuestion) and each.truncate == truncate]
        spans = [index for index in those if _is_span(questions[index])]
        first = [index for index in those if index not in spans[1:]]
        groups += [group for group in (first, *([index] for index in spans[1:])) if group]
    return groups


def _split(group: Sequence[int], asked: Sequence[VelaQuestion], *, crowded: bool) -> list[list[int]] | None:
    """By the parts that are read, else, when the questions take more than half of the input, in two."""
    by_roles: dict[tuple[Role, ...], list[int]] = {}
    for index, question in zip(group, asked, strict=True):
        by_roles.setdefault(question.roles, []).append(index)
    if len(by_roles) > 1:
        return list(by_roles.values())
    if not crowded or len(group) == 1:
        return None
    middle = len(group) // 2
    return [list(group[:middle]), list(group[middle:])]
