"""EndpointReader: one row for each question, read at the end of each option and at the end of the prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.question import Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.decisions.text_only import refuse_media, too_long
from headway.runtime.decoder.wanted import HiddenAt
from headway.runtime.readers.endpoints.prompt import described_options, endpoint_prompt, option_text
from headway.runtime.readers.group_size import fitting_options
from headway.runtime.readers.plain_text import plain_encode
from headway.runtime.row import ItemFailure, Outcome, Row

READOUT = "candidates"


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """What differs between packages. `temperatures` by type; `score_offsets`: number of levels -> what is added to the
    logits of each level, before the temperature."""

    max_tokens: int
    noul_sides: Mapping[str, str]
    temperatures: Mapping[str, float]
    score_offsets: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    null_as_key: bool = False


class EndpointReader(DecisionReader):
    """Outcomes are logits, float32 [options]."""

    question_types: frozenset[QuestionType] = frozenset({"choice", "noul", "score"})

    def __init__(self, tokenizer: Tokenizer, settings: EndpointSettings, presets: Mapping[str, Question] | None = None):
        self._encode = plain_encode(tokenizer)
        self._settings = settings
        self.presets = presets or {}

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        refused = refuse_media(subject)
        return [refused or self._plan(subject, question) for question in questions]

    def temperature(self, kind: QuestionType, options: int) -> float:
        return self._settings.temperatures.get(kind, 1.0)

    def group_size(self, subject: Subject, question: Question) -> int:
        options = described_options(question, self._settings.noul_sides, self._settings.null_as_key)
        return fitting_options(
            len(options), self.comfortable_options,
            lambda: self._settings.max_tokens - len(endpoint_prompt(subject.state, question, (), self._encode).token_ids),
            lambda: [len(self._encode(option_text(*option))) for option in options],
        )  # fmt: skip

    def _plan(self, subject: Subject, question: Question) -> QuestionPlan | ItemFailure:
        options = described_options(question, self._settings.noul_sides, self._settings.null_as_key)
        prompt = endpoint_prompt(subject.state, question, options, self._encode)
        length = len(prompt.token_ids)
        if length > self._settings.max_tokens:
            return too_long(length, self._settings.max_tokens)
        row = Row(prompt.token_ids, READOUT, HiddenAt((*prompt.ends, length - 1)))
        offsets = self._settings.score_offsets.get(len(options)) if question.type == "score" else None

        def read(outcomes: Sequence[Outcome]) -> Reading:
            scores = np.asarray(outcomes[0], dtype=np.float64)
            return Reading(scores if offsets is None else scores + np.asarray(offsets))

        return QuestionPlan((row,), read, length)
