"""CodeReader: one row for each question; the codes of its options are scored at the row's last token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headway.decisions.question import Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.decisions.text_only import refuse_media, too_long
from headway.runtime.decoder.wanted import HiddenAt
from headway.runtime.readers.decision3.prompt import PromptTokens, option_lines, user_text
from headway.runtime.readers.group_size import fitting_options
from headway.runtime.row import ItemFailure, Outcome, Row

READOUT = "codes"


class CodeReader(DecisionReader):
    """Outcomes are logits of all codes, float32 [255]; a question uses the first ones."""

    question_types: frozenset[QuestionType] = frozenset({"choice", "noul", "score"})

    def __init__(self, tokens: PromptTokens, codes: Sequence[str], max_tokens: int, temperature: float):
        self._tokens = tokens
        self._codes = tuple(codes)
        self._max_tokens = max_tokens
        self._temperature = temperature

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        refused = refuse_media(subject)
        return [refused or self._plan(subject, question) for question in questions]

    def temperature(self, kind: QuestionType, options: int) -> float:
        return self._temperature

    def group_size(self, subject: Subject, question: Question) -> int:
        bare = replace(question, options=())
        return fitting_options(
            len(question.options), self.comfortable_options,
            lambda: self._max_tokens - len(self._tokens.encode(user_text(subject.state, bare, ()))),
            # Each line by itself has at least as many tokens as in the text, but for the line break.
            lambda: [1 + self._tokens.length(f"{code}: {line}") for code, line in zip(self._codes, option_lines(question), strict=False)],
        )  # fmt: skip

    def _plan(self, subject: Subject, question: Question) -> QuestionPlan | ItemFailure:
        ids = self._tokens.encode(user_text(subject.state, question, self._codes))
        if len(ids) > self._max_tokens:
            return too_long(len(ids), self._max_tokens)
        count = len(question.options)

        def read(outcomes: Sequence[Outcome]) -> Reading:
            return Reading(np.asarray(outcomes[0], dtype=np.float64)[:count])

        return QuestionPlan((Row(ids, READOUT, HiddenAt((len(ids) - 1,))),), read, len(ids))
