"""DecisionReader: how one family reads questions. The planner around it turns scores into answers of any wire form."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from headway.decisions.calibration import Calibration
from headway.decisions.question import Question, QuestionType, Subject
from headway.decisions.row import ItemFailure, Outcome, Row

FloatArray: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FoundSpan:
    """Code points [start, end) of the text that the question read."""

    label: str
    start: int
    end: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What the model says to one question.

    `scores` [n options] are logits before any temperature: the planner divides by the calibrated temperature and takes
    the softmax (choice, noul, score), or the sigmoid (set). `abstain` is a logit beside them, if the family has one.
    `spans` for span questions; `scores` are then the largest word logit of each label. `extras` become `x_` fields.
    """

    scores: FloatArray
    abstain: float | None = None
    spans: tuple[FoundSpan, ...] = ()
    threshold: float | None = None  # what decided `spans`, or decides the labels of a set; None: the planner's default
    span_head: str | None = None  # for families with several
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QuestionPlan:
    """Rows of one question, and how their values are read. `read` gets values only, never failures: the planner turns a
    failed row into the failure of the question. Questions may ask for equal rows: those are computed once."""

    rows: tuple[Row, ...]
    read: Callable[[Sequence[Outcome]], Reading]
    input_tokens: int
    complete: bool = True  # every token of what the question reads is in some row


class DecisionReader(abc.ABC):
    """Pure planning: renders and tokenizes. Used from several threads."""

    question_types: frozenset[QuestionType]
    max_options: int = 255
    presets: Mapping[str, Question] = {}
    """Questions that the package was trained on, by name. The planner puts one in the place of a question that names it,
    keeps the request's `over` and `threshold`, and leaves `preset` set."""
    comfortable_options: int = 255
    """Above it the planner asks in two rounds: groups of at most this many, then the best of each group."""
    reads_parts: bool = False
    """True: the family reads parts of a state itself, as `over` says. False: the planner hands over a subject whose state is
    only the parts that `over` names, and `over` is None."""
    calibration: Calibration | None = None
    """What the operator fitted to examples of his own; set once, when the model is loaded."""

    def group_size(self, subject: Subject, question: Question) -> int:
        """How many options of this question the model reads at once; at least 2. Readers with a short input count tokens."""
        return self.comfortable_options

    @abc.abstractmethod
    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        """One entry for each question, in order. Each is read as if it were alone, unless the family reads all questions
        in one sequence."""

    def temperature(self, kind: QuestionType, options: int) -> float:
        """The temperature that the package states for a type and number of options; 1 when it states none."""
        return 1.0

    def applied_temperature(self, kind: QuestionType, options: int) -> float:
        """What scores are divided by: the operator's temperature where there is one, else the package's."""
        fitted = None if self.calibration is None else self.calibration.temperature(kind, options)
        return self.temperature(kind, options) if fitted is None else fitted

    def applied_threshold(self, kind: QuestionType) -> float | None:
        """Below it the operator wants no answer; None where he chose none."""
        chosen = None if self.calibration is None else self.calibration.thresholds.get(kind)
        return None if chosen is None else chosen.threshold
