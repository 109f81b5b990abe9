"""How questions are put to a model with option markers, and how a state longer than a sequence is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from headway.decisions.answers import softmax
from headway.decisions.question import Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.decisions.text_only import refuse_media
from headway.errors import RequestError
from headway.runtime.long_input.windows import Window, windows
from headway.runtime.readers.laya.sequence import Head, Sequences
from headway.runtime.readers.laya.settings import KINDS
from headway.runtime.row import ItemFailure, Outcome, Row

READOUT: Final = "markers"
COMFORTABLE_OPTIONS: Final = 16  # more of them starve each other of tokens: the head has some hundreds for all
_SCAN_INPUTS: Final = 4
_MOST_OVERLAP: Final = 512


@dataclass(frozen=True, slots=True)
class Markers:
    """`kind`: the row of the type embedding. `at`: indices of the markers in the row."""

    kind: int
    at: tuple[int, ...]


class LayaReader(DecisionReader):
    """A state that does not fit beside the question is read in windows. A statement then holds as far as it does in the
    window where it holds most; a choice or score is that of the window in which the model is surest. The probabilities
    are those of that window, `x_window` names it."""

    question_types: frozenset[QuestionType] = frozenset(KINDS)
    comfortable_options = COMFORTABLE_OPTIONS

    def __init__(self, sequences: Sequences, temperature: Callable[[QuestionType, int], float], max_scan_tokens: int | None = None):
        """`temperature` of a type and number of options. `max_scan_tokens`: the longest state that is read without the
        request's own budget; None = four sequences."""
        self._sequences = sequences
        self._temperature = temperature
        self.max_scan_tokens = max_scan_tokens or _SCAN_INPUTS * sequences.max_tokens

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        refused = refuse_media(subject)
        if refused is not None:
            return [refused] * len(questions)
        budget = max(subject.max_tokens or self.max_scan_tokens, self._sequences.max_tokens)
        keep_end = isinstance(subject.state, list)  # of a conversation, which ends with what is new
        to_the_end = keep_end and any(question.truncate for question in questions)
        state, whole = self._sequences.state_ids(subject.state, None if to_the_end else budget + 1)
        return [self._plan(state, whole and len(state) <= budget, budget, keep_end, question) for question in questions]

    def temperature(self, kind: QuestionType, options: int) -> float:
        return self._temperature(kind, options)

    def _plan(
        self, state: list[int], within: bool, budget: int, keep_end: bool, question: Question
    ) -> QuestionPlan | ItemFailure:
        try:
            head = self._sequences.head(question)
        except RequestError as error:
            return ItemFailure("invalid_question", error.message)
        room = self._sequences.room(head)
        if room < 1:
            return ItemFailure(
                "max_length_exceeded",
                f"question and options take {len(head.ids)} of {self._sequences.max_tokens} tokens, nothing is left for the state",
            )
        laid = self._windows(state, within, room, keep_end, question.truncate)
        if laid is None:
            return ItemFailure("scan_budget_exceeded", f"the state has more than {budget} tokens; nothing was read")
        detail = Markers(KINDS[question.type], head.markers)
        rows = tuple(
            Row(self._sequences.sequence(head, state[window.start : window.end]), READOUT, detail) for window in laid
        )
        complete = not head.instructions_cut and (not state or (laid[0].start == 0 and laid[-1].end == len(state)))
        read = _Read(question.type, head, tuple(laid), self.temperature(question.type, len(question.options)))
        return QuestionPlan(rows, read, sum(len(row.token_ids) for row in rows), complete)

    def _windows(self, state: list[int], within: bool, room: int, keep_end: bool, truncate: bool) -> list[Window] | None:
        """None: more than may be read."""
        if len(state) <= room and within:
            return [Window(0, len(state))]
        if truncate:
            return [Window(len(state) - room, len(state)) if keep_end else Window(0, room)]
        return windows(len(state), room, min(_MOST_OVERLAP, room // 4)) if within else None


@dataclass(frozen=True, slots=True)
class _Read:
    """Outcome of a window: logits of the options, then those of the actions (the first: to act)."""

    kind: QuestionType
    head: Head
    windows: tuple[Window, ...]
    temperature: float

    def __call__(self, outcomes: Sequence[Outcome]) -> Reading:
        best = max(range(len(outcomes)), key=lambda window: self._weight(outcomes[window]))
        count = len(self.head.markers)
        logits, actions = outcomes[best][:count], outcomes[best][count:]
        return Reading(np.asarray(logits, dtype=np.float64), extras=self._extras(best, actions))

    def _weight(self, outcome: npt.NDArray[np.float32]) -> float:
        p = softmax(outcome[: len(self.head.markers)].astype(np.float64) / self.temperature)
        return float(p[1] if self.kind == "noul" else p.max())

    def _extras(self, best: int, actions: npt.NDArray[np.float32]) -> dict[str, Any]:
        extras: dict[str, Any] = {}
        if len(actions):
            extras["act_probability"] = float(softmax(actions.astype(np.float64))[0])
        if len(self.windows) > 1:
            window = self.windows[best]
            extras["window"] = {"index": best, "token_start": window.start, "token_end": window.end, "count": len(self.windows)}
        if self.head.option_tokens is not None:
            extras |= {"option_tokens": self.head.option_tokens, "distinct_options": self.head.distinct}
        return extras
