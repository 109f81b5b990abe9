"""Entailment models as decision models: the state is the premise, each option makes a hypothesis.

choice: the instructions are a template with one {label}; options are weighed by the logit of entailment alone. noul: the
hypothesis is the `true` criterion or the instructions, and the answer is P(entailment) against all other labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from headway.decisions.content import text_of
from headway.decisions.question import Question, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.runtime.long_input.bounded_text import Content
from headway.runtime.row import ItemFailure, Outcome
from headway.runtime.tasks.input_usage import too_long
from headway.runtime.tasks.sequence_head import READOUT
from headway.runtime.tasks.sequence_text import SequenceText

LABEL_SETS: Final = (frozenset({"entailment", "not_entailment"}), frozenset({"entailment", "contradiction", "neutral"}))
MAX_HYPOTHESES: Final = 2048
PLACEHOLDER: Final = "{label}"


def entailment_label(labels: Sequence[str]) -> int | None:
    """The number of the label entailment, if these are the labels of an entailment model, in any order and case."""
    lowered = [label.lower() for label in labels]
    return lowered.index("entailment") if frozenset(lowered) in LABEL_SETS and len(set(lowered)) == len(lowered) else None


class EntailmentReader(DecisionReader):
    """`entailment`: number of that label among `labels` logits."""

    question_types = frozenset({"choice", "noul"})

    def __init__(self, text: SequenceText, entailment: int):
        self._text = text
        self._entailment = entailment

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        premise = self._text.content(text_of(subject.state), self._text.limit)
        left = MAX_HYPOTHESES
        plans: list[QuestionPlan | ItemFailure] = []
        for question in questions:
            hypotheses = _hypotheses(question)
            if not isinstance(hypotheses, ItemFailure):
                left -= len(hypotheses)
                if left < 0:
                    hypotheses = ItemFailure("invalid_question", f"the questions need more than {MAX_HYPOTHESES} hypotheses")
            plans.append(hypotheses if isinstance(hypotheses, ItemFailure) else self._plan(question, premise, hypotheses))
        return plans

    def _plan(self, question: Question, premise: Content, hypotheses: list[str]) -> QuestionPlan | ItemFailure:
        envelope, limit = self._text.pair, self._text.limit
        rows = []
        for second in self._text.bounded.read_all(hypotheses, limit):
            tokens = len(premise.ids) + len(second.ids) + envelope.size
            if tokens > limit:
                return too_long(tokens, limit, not (premise.complete and second.complete), "the state with the hypothesis")
            rows.append(self._text.pair_row(envelope, premise.ids, second.ids, READOUT))
        return QuestionPlan(tuple(rows), self._read_noul if question.type == "noul" else self._read_choice,
                            sum(row.cost for row in rows))  # fmt: skip

    def _read_choice(self, values: Sequence[Outcome]) -> Reading:
        return Reading(np.array([value[self._entailment] for value in values], dtype=np.float64))

    def _read_noul(self, values: Sequence[Outcome]) -> Reading:
        """The logits of all other labels together stand for false: the odds are those of the softmax over all."""
        logits = np.asarray(values[0], dtype=np.float64)
        others = np.delete(logits, self._entailment)
        top = others.max()
        return Reading(np.array([top + np.log(np.exp(others - top).sum()), logits[self._entailment]]))


def _hypotheses(question: Question) -> list[str] | ItemFailure:
    instructions = "" if question.instructions is None else text_of(question.instructions)
    if question.type == "noul":
        stated = {option.key: option.description for option in question.options}
        if stated.get("false") is not None:
            return ItemFailure("invalid_question", "this model weighs one hypothesis: a noul question cannot say what false means")
        criterion = stated.get("true")
        return [instructions if criterion is None else text_of(criterion)]
    if instructions.count(PLACEHOLDER) != 1:
        return ItemFailure("invalid_question", f"the instructions of a choice must hold {PLACEHOLDER} exactly once, "
                                               f"found it {instructions.count(PLACEHOLDER)} times")  # fmt: skip
    return [
        instructions.replace(PLACEHOLDER, option.key if option.description is None else text_of(option.description))
        for option in question.options
    ]
