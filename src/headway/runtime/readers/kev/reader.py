"""KevReader: one row for each question, read at the end of each option and at the end of the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.question import Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.decisions.text_only import refuse_media, too_long
from headway.runtime.decoder.wanted import HiddenAt
from headway.runtime.readers.endpoints.reader import READOUT
from headway.runtime.readers.kev.prompt import PromptBuilder
from headway.runtime.row import ItemFailure, Outcome, Row

COMFORTABLE_OPTIONS: Final = 64  # about the 1,024 tokens of a question that the packages were trained with at most
TYPES: Final[tuple[QuestionType, ...]] = ("choice", "noul", "score")


class KevReader(DecisionReader):
    """Outcomes are logits, float32 [options]. The state comes first, so questions about it share what it costs."""

    question_types: frozenset[QuestionType] = frozenset(TYPES)
    comfortable_options = COMFORTABLE_OPTIONS

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, temperature: float):
        self._builder = PromptBuilder(tokenizer)
        self._max_tokens = max_tokens
        self._temperature = temperature

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        refused = refuse_media(subject)
        if refused is not None:
            return [refused] * len(questions)
        state = self._builder.state_ids(subject.state, self._max_tokens)
        return [self._plan(state, question) for question in questions]

    def temperature(self, kind: QuestionType, options: int) -> float:
        return self._temperature

    def _plan(self, state: Sequence[int], question: Question) -> QuestionPlan | ItemFailure:
        prompt = self._builder.prompt(state, question, self._max_tokens)
        length = len(prompt.token_ids)
        if length > self._max_tokens:
            return too_long(length, self._max_tokens)
        return QuestionPlan((Row(prompt.token_ids, READOUT, HiddenAt((*prompt.ends, length - 1))),), _read, length)


def _read(outcomes: Sequence[Outcome]) -> Reading:
    return Reading(np.asarray(outcomes[0], dtype=np.float64))
