"""Kinds that read one logit for each label token at the end of the prompt: OpenJev, Lev, Nimble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from string import ascii_lowercase, ascii_uppercase
from typing import Final

import numpy as np
import numpy.typing as npt

from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.answers import softmax
from headway.decisions.label_logits.defused import defuser
from headway.decisions.label_logits.reader import READOUT
from headway.decisions.question import Option, Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.decisions.text_only import refuse_media, too_long
from headway.errors import PackageError, RequestError
from headway.runtime.decoder.wanted import LabelLogits
from headway.runtime.readers.gguf_decision.metadata import DecisionMetadata
from headway.runtime.readers.gguf_decision.rendering import render
from headway.runtime.row import ItemFailure, Outcome, Row

RATINGS: Final = 9  # Lev's scale for a noul, from certainly no to certainly yes
MOST_LABELS: Final = 255
_TINY: Final = 1e-30


@dataclass(frozen=True, slots=True)
class Label:
    text: str
    token_id: int


class GgufLabelReader(DecisionReader):
    """Raises PackageError (`no_label_tokens`) for a vocabulary without enough labels that are one token."""

    question_types: frozenset[QuestionType] = frozenset({"choice", "noul", "score"})

    def __init__(self, found: DecisionMetadata, tokenizer: Tokenizer, max_tokens: int):
        self._found = found
        self._tokenizer = tokenizer
        self._clean = defuser(tokenizer)
        self._max_tokens = max_tokens
        self._most_chars = max_tokens * max(len(tokenizer.token_bytes(i)) for i in range(tokenizer.vocab_size))
        self.labels = _labels(found.kind, tokenizer)
        self.comfortable_options = len(self.labels)

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        refused = refuse_media(subject)
        return [refused or self._plan(subject, question) for question in questions]

    def temperature(self, kind: QuestionType, options: int) -> float:
        """Lev averages probabilities and ratings, so its temperatures are applied where logits are read."""
        return 1.0 if self._found.kind == "lev" else self._found.temperature(kind, options)

    def _plan(self, subject: Subject, question: Question) -> QuestionPlan | ItemFailure:
        lev = self._found.kind == "lev"
        shown = question.options[::-1] if question.type == "noul" and self._found.kind == "openjev" else question.options
        orders = [shown, shown[::-1]] if lev and question.type == "choice" and len(shown) > 1 else [shown]
        count = RATINGS if lev and question.type == "noul" else len(shown)
        rows = []
        for order in orders:
            ids = self._ids(subject, question, order)
            if isinstance(ids, ItemFailure):
                return ids
            rows.append(Row(tuple(ids), READOUT, LabelLogits(tuple(label.token_id for label in self.labels[:count]))))
        read = _Read(self._found.kind, question.type, self._found.temperature(question.type, len(shown)))
        return QuestionPlan(tuple(rows), read, sum(row.cost for row in rows))

    def _ids(self, subject: Subject, question: Question, options: Sequence[Option]) -> list[int] | ItemFailure:
        labels = [] if self._found.kind == "openjev" else [label.text for label in self.labels[: len(options)]]
        try:
            text = render(self._found.template, self._found.kind, subject.state, question, options, labels, self._clean)
        except RequestError as error:
            return ItemFailure("invalid_question", error.message)
        if len(text) > self._most_chars:  # surely: no token has more characters than the longest
            return too_long(None, self._max_tokens)
        ids = self._tokenizer.encode(text, add_special_tokens=False)
        return ids if len(ids) <= self._max_tokens else too_long(len(ids), self._max_tokens)


@dataclass(frozen=True, slots=True)
class _Read:
    """Outcomes are those of `LabelLogits`: the labels' logits, the logarithm of the sum over the vocabulary, the largest."""

    kind: str
    type: QuestionType
    temperature: float

    def __call__(self, outcomes: Sequence[Outcome]) -> Reading:
        values = np.asarray(outcomes, dtype=np.float64)  # [orders, labels + 2]
        logits = values[:, :-2]
        extras = _label_mass(values)
        if self.kind != "lev":
            scores = logits[0][::-1] if self.kind == "openjev" and self.type == "noul" else logits[0]
            return Reading(scores, extras=extras)
        chances = [softmax(each / self.temperature) for each in logits]
        if self.type == "noul":
            yes = float(chances[0] @ np.arange(RATINGS)) / (RATINGS - 1)
            return Reading(np.log(np.clip([1.0 - yes, yes], _TINY, None)), extras=extras)
        mean = chances[0] if len(chances) == 1 else (chances[0] + chances[1][::-1]) / 2
        return Reading(np.log(np.clip(mean, _TINY, None)), extras=extras)


def _label_mass(values: npt.NDArray[np.float64]) -> dict[str, float]:
    mass = np.exp(values[:, :-2] - values[:, -2:-1]).sum(1)
    return {"label_mass": float(min(mass.mean(), 1.0))}


def _labels(kind: str, tokenizer: Tokenizer) -> tuple[Label, ...]:
    """OpenJev: all 52 letters. Lev and Nimble: A to Z and AA to ZZ, those that are one token each."""
    openjev = kind == "openjev"
    texts = [*ascii_uppercase, *(ascii_lowercase if openjev else map("".join, product(ascii_uppercase, repeat=2)))]
    encoded = {text: tokenizer.encode(text, add_special_tokens=False) for text in texts}
    single = [Label(text, ids[0]) for text, ids in encoded.items() if len(ids) == 1][:MOST_LABELS]
    least = len(texts) if openjev else 10
    if len(single) < least:
        raise PackageError(f"the vocabulary has {len(single)} labels that are one token, {least} are needed", reason="no_label_tokens",
                           param="tokenizer", fix="Convert the model again.")  # fmt: skip
    return tuple(single)
