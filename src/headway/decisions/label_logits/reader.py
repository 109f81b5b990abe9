"""LabelLogitsReader: prompts of a question, answered by the logits of the codes as the first token of the reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.content import text_of
from headway.decisions.label_logits.asked import Alphabet, asked
from headway.decisions.label_logits.codes import Code, digit_codes, first_tokens, option_codes, word_codes
from headway.decisions.label_logits.defused import defuser
from headway.decisions.label_logits.prompt import PromptIds, completion_frame, frame_of, state_text
from headway.decisions.label_logits.wanted import LabelLogits
from headway.decisions.question import Question, QuestionType, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.decisions.row import ItemFailure, Outcome, Row
from headway.decisions.text_only import refuse_media, too_long
from headway.errors import ArtifactError

READOUT: Final = "label_logits"
_WORDS: Final = ("No", "Yes")
_LEVELS: Final = 10
_BLANK_TEXTS: Final = ("N/A", "This is a text.")
_SMALL: Final = 1_000_000_000  # parameters up to which a model goes on with words better than it follows instructions about codes


@dataclass(frozen=True, slots=True)
class LabelLogitsOptions:
    """`rotations`: in how many orders the options of a choice are asked; their logarithms of probability are averaged, so
    that the place in the list weighs less. `comfortable_options`: above it a choice is asked in two rounds.

    `labels`: "codes" lists the options under codes in a chat. "words" lets the model go on with the name of an option
    after a plain text, and takes off how likely each name is anyhow (after texts that say nothing): what small models can
    do. Names are then all that it sees of options, descriptions are not read; options whose names begin alike get codes.
    """

    rotations: int = 1
    comfortable_options: int = 26
    labels: Literal["codes", "words"] = "codes"


def default_labels(parameters: int) -> Literal["codes", "words"]:
    """What suits a model of that size."""
    return "words" if parameters <= _SMALL else "codes"


class LabelLogitsReader(DecisionReader):
    """A choice has letters, a score digits, a noul the words No and Yes; a set is one noul for each label."""

    question_types: frozenset[QuestionType] = frozenset({"choice", "noul", "score", "set"})

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, options: LabelLogitsOptions = LabelLogitsOptions()):
        """Raises ArtifactError (`no_label_tokens`) for a vocabulary without enough one-token codes."""
        plain = options.labels == "words"
        frame = completion_frame(tokenizer) if plain else frame_of(tokenizer)
        self._prompts = PromptIds(tokenizer, frame)
        self._defused = defuser(tokenizer)
        self._max_tokens = max_tokens
        self._most_chars = max_tokens * max(len(tokenizer.token_bytes(i)) for i in range(tokenizer.vocab_size))
        self._rotations = options.rotations

        def encode(text: str) -> list[int]:
            return tokenizer.encode(text, add_special_tokens=False)

        leads = dict.fromkeys((frame.lead, ""))  # small vocabularies have letters, but none with a blank before it
        lead, codes = max(((lead, option_codes(encode, frame.after, lead)) for lead in leads), key=lambda found: min(len(found[1]), _LEVELS))
        self.alphabet = replace(
            _alphabet(codes, digit_codes(encode, frame.after, lead), word_codes(encode, frame.after, lead, _WORDS)),
            words=partial(first_tokens, encode, frame.after, lead) if plain else None,
            says_how=not plain,
        )
        self._blank_heads = [(head, self._prompts.head(head)) for head in map(state_text, _BLANK_TEXTS)]
        self.comfortable_options = min(len(self.alphabet.options), options.comfortable_options)

    def plan(self, subject: Subject, questions: Sequence[Question]) -> list[QuestionPlan | ItemFailure]:
        refused = refuse_media(subject)
        if refused is not None:
            return [refused] * len(questions)
        state = text_of(subject.state)
        if len(state) > self._most_chars:  # surely: no token has more characters than the longest
            return [too_long(None, self._max_tokens)] * len(questions)
        head = state_text(self._defused(state))
        head_ids = self._prompts.head(head)
        return [self._plan(head, head_ids, question) for question in questions]

    def _plan(self, head: str, head_ids: list[int], question: Question) -> QuestionPlan | ItemFailure:
        rows: list[Row] = []
        read = _read_sides if question.type == "set" else _read_turns
        for each in asked(question, self.alphabet, self._rotations):
            heads = [(head, head_ids)]
            if each.kind == "words":
                heads += self._blank_heads
                read = _read_beyond_prior
            for text, ids in heads:
                prompt = self._prompts.prompt(text, ids, self._defused(each.text))
                if len(prompt) > self._max_tokens:
                    return too_long(len(prompt), self._max_tokens)
                rows.append(Row(prompt, READOUT, LabelLogits(tuple(code.token_id for code in each.codes))))
        return QuestionPlan(tuple(rows), read, input_tokens=sum(row.cost for row in rows))


def _alphabet(options: tuple[Code, ...], digits: tuple[Code, ...], words: tuple[Code, ...]) -> Alphabet:
    if len(options) < _LEVELS:
        raise ArtifactError(
            f"the vocabulary has {len(options)} letters, pairs of letters or numbers that are one token; {_LEVELS} are needed",
            reason="no_label_tokens", fix="Use a model whose tokenizer has single letters.",
        )  # fmt: skip
    levels = digits if len(digits) == _LEVELS else options[:_LEVELS]
    no, yes = words if len(words) == len(_WORDS) else options[:2]
    return Alphabet(options, levels, (no, yes))


def _read_turns(outcomes: Sequence[Outcome]) -> Reading:
    """The same options in one or several orders: the mean of their logarithms of probability."""
    values = np.asarray(outcomes, dtype=np.float64)  # [turns, options + 2]
    return Reading((values[:, :-2] - values[:, -2:-1]).mean(0), extras=_extras(values))


def _read_beyond_prior(outcomes: Sequence[Outcome]) -> Reading:
    """The text, then texts that say nothing: by how much the text makes each option likelier."""
    values = np.asarray(outcomes, dtype=np.float64)
    found = values[:, :-2] - values[:, -2:-1]  # [1 + blank texts, options] logarithms of probability
    return Reading(found[0] - found[1:].mean(0), extras={**_extras(values[:1]), "labels": "words"})


def _read_sides(outcomes: Sequence[Outcome]) -> Reading:
    """No and yes for each label: how much likelier yes is."""
    values = np.asarray(outcomes, dtype=np.float64)  # [labels, 4]
    return Reading(values[:, 1] - values[:, 0], extras=_extras(values))


def _extras(values: npt.NDArray[np.float64]) -> dict[str, Any]:
    """`label_mass`: the probability that the reply begins with any code; `argmax_is_label`: whether the likeliest token is
    one. Of several prompts the mean mass, and whether it is so in all."""
    mass = np.exp(values[:, :-2] - values[:, -2:-1]).sum(1)
    return {"label_mass": float(min(mass.mean(), 1.0)), "argmax_is_label": bool((values[:, :-2].max(1) >= values[:, -1]).all())}
