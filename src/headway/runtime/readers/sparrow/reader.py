"""How questions are put to a static package: every text is tokenized by itself, nothing is rendered around it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from tokenizers import Tokenizer as Backend
from tokenizers import models, normalizers, pre_tokenizers

from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.question import Content, Option, Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.decisions.text_only import refuse_media
from headway.runtime.long_input.bounded_text import BoundedText
from headway.runtime.readers.sparrow.archive import SparrowArchive
from headway.runtime.readers.sparrow.number_pairs import number_pairs
from headway.runtime.readers.sparrow.scorer import KINDS, SparrowQuestion
from headway.runtime.row import ItemFailure, Outcome, Row

READOUT: Final = "options"
# What the two sides of a noul mean when the question does not say.
NOUL_MEANINGS: Final = {
    "false": "the statement does not hold for this state",
    "true": "the statement holds for this state",
}
_NO_WORDS: Final = (0,)  # a text without any token is read as the padding token


class SparrowReader(DecisionReader):
    """A text above `max_tokens` fails the question, unless the question allows to cut it: the package was made for texts
    cut there, and what is beyond is not read."""

    question_types: frozenset[QuestionType] = frozenset({"choice", "noul", "score"})

    def __init__(self, archive: SparrowArchive):
        self._config = archive.config
        self._text = BoundedText(Tokenizer(word_pieces(dict(archive.vocabulary))))

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        refused = refuse_media(subject)
        if refused is not None:
            return [refused] * len(questions)
        state = as_text(subject.state)
        ids = self._ids(state)
        pairs = self._pairs(state) if self._config.numbers else ()
        return [self._plan(ids, pairs, question) for question in questions]

    def _plan(self, state: tuple[int, ...], pairs: tuple[Any, ...], question: Question) -> QuestionPlan | ItemFailure:
        limit = self._config.max_tokens
        options = tuple(self._ids(option_text(question, option)) for option in question.options)
        instructions = self._ids(as_text(question.instructions))
        named = [("state", state), ("instructions", instructions), *(("option", option) for option in options)]
        over = [name for name, ids in named if len(ids) > limit]
        if over and not question.truncate:
            return ItemFailure("max_length_exceeded", f"the {over[0]} has more than {limit} tokens; nothing was truncated")
        asked = SparrowQuestion(question.type, instructions[:limit], tuple(option[:limit] for option in options), pairs)
        row = Row(state[:limit], READOUT, asked, extra_cost=asked.tokens)
        return QuestionPlan((row,), _read, input_tokens=row.cost, complete=not over)

    def _ids(self, text: str) -> tuple[int, ...]:
        """At most one more than `max_tokens`, which is enough to know that there are too many."""
        limit = self._config.max_tokens
        return tuple(self._text.read(text, limit + 1).ids[: limit + 1]) or _NO_WORDS

    def _pairs(self, state: str) -> tuple[Any, ...]:
        return tuple((self._ids(pair.key), self._ids(pair.line), pair.value) for pair in number_pairs(state))

    def temperature(self, kind: QuestionType, options: int) -> float:
        return float(self._config.temperatures.get(kind, 1.0)) if kind in KINDS else 1.0


def _read(outcomes: Sequence[Outcome]) -> Reading:
    return Reading(outcomes[0])


def as_text(content: Content | None) -> str:
    """Text without surrounding white space; other JSON values indented by 2."""
    if content is None:
        return ""
    return content.strip() if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False)


def option_text(question: Question, option: Option) -> str:
    """The key, a space, and what it means."""
    meaning = option.description
    if question.type == "noul" and meaning is None:
        meaning = NOUL_MEANINGS[option.key]
    return f"{option.key} {as_text(meaning)}"


def word_pieces(vocabulary: dict[str, int]) -> Backend:
    """Lower-cased word pieces without accents, as BERT's, over `vocabulary` (token -> id, with [UNK]).

    Characters younger than the Unicode tables of `tokenizers` may be cut otherwise than by the package's own code.
    """
    backend = Backend(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return backend
