"""EncoderQuestionReader: `[bos] question [sep] ([mask] candidate [sep])* state [sep]`, read at the masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.question import Option, Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.decisions.text_only import refuse_media, too_long
from headway.runtime.readers.canonical_text import canonical_text, instructions_text
from headway.runtime.readers.group_size import fitting_options
from headway.runtime.readers.plain_text import plain_encode
from headway.runtime.readers.unpublished import not_of_the_format
from headway.runtime.row import ItemFailure, Outcome, Row

NOUL_SIDES: Final = {
    "false": "No. The statement or question is not satisfied.", "true": "Yes. The statement or question is satisfied.",
}  # fmt: skip
_ROLES: Final = {"bos": ("cls_token", "bos_token"), "sep": ("sep_token", "eos_token"), "mask": ("mask_token",)}


@dataclass(frozen=True, slots=True)
class SpecialIds:
    bos: int
    sep: int
    mask: int


def special_ids(tokenizer: Tokenizer) -> SpecialIds:
    """Raises PackageError (`invalid_package`)."""
    found = {}
    for role, names in _ROLES.items():
        ids = [tokenizer.backend.token_to_id(tokenizer.special_tokens[name]) for name in names if name in tokenizer.special_tokens]
        known = [each for each in ids if each is not None]
        if not known:
            raise not_of_the_format("tokenizer_config.json", f"one of {' and '.join(names)}", dict(tokenizer.special_tokens))
        found[role] = int(known[0])
    return SpecialIds(**found)


def candidate_text(kind: QuestionType, index: int, option: Option) -> str:
    """`key: description` of a choice, the side of a noul, `level i: text` of a score."""
    described: Any = option.description
    if described is None:
        described = NOUL_SIDES[option.key] if kind == "noul" else option.key
        return f"level {index}: {described}" if kind == "score" else described
    text = canonical_text(described)
    return f"level {index}: {text}" if kind == "score" else f"{option.key}: {text}" if kind == "choice" else text


class EncoderQuestionReader(DecisionReader):
    """Rows of the readout `choice`, `noul` or `score`, whose detail are the places of the masks; outcomes are logits."""

    question_types: frozenset[QuestionType] = frozenset({"choice", "noul", "score"})

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, presets: Mapping[str, Question]):
        self._encode: Callable[[str], list[int]] = plain_encode(tokenizer)
        self._special = special_ids(tokenizer)
        self._max_tokens = max_tokens
        self.presets = presets

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        refused = refuse_media(subject)
        if refused is not None:
            return [refused] * len(questions)
        state = self._encode(canonical_text(subject.state))  # once for all questions
        return [self._plan(state, question) for question in questions]

    def group_size(self, subject: Subject, question: Question) -> int:
        def room() -> int:
            texts = canonical_text(subject.state), f"{question.type} question: {instructions_text(question.instructions)}"
            return self._max_tokens - 3 - sum(len(self._encode(text)) for text in texts)

        def lengths() -> list[int]:
            return [2 + len(self._encode(candidate_text(question.type, index, option))) for index, option in enumerate(question.options)]

        return fitting_options(len(question.options), self.comfortable_options, room, lengths)

    def _plan(self, state: list[int], question: Question) -> QuestionPlan | ItemFailure:
        special = self._special
        ids = [special.bos, *self._encode(f"{question.type} question: {instructions_text(question.instructions)}"), special.sep]
        marks = []
        for index, option in enumerate(question.options):
            marks.append(len(ids))
            ids += [special.mask, *self._encode(candidate_text(question.type, index, option)), special.sep]
        ids += [*state, special.sep]
        if len(ids) > self._max_tokens:
            return too_long(len(ids), self._max_tokens)

        def read(outcomes: Sequence[Outcome]) -> Reading:
            return Reading(np.asarray(outcomes[0], dtype=np.float64))

        return QuestionPlan((Row(tuple(ids), question.type, tuple(marks)),), read, len(ids))
