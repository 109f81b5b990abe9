"""The sequence of one question: [CLS] type and instructions [SEP] ([MASK] option)* [SEP] state [SEP], within its limits."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.content import text_of
from headway.decisions.question import Content, Option, Question
from headway.errors import PackageError
from headway.runtime.long_input.bounded_text import BoundedText
from headway.runtime.readers.laya.settings import LayaSettings

OPTION_TOKENS: Final = 48  # of an option, its marker not counted
LEAST_OPTION_TOKENS: Final = 4  # when many options share the head, marker counted
QUESTION_RESERVE: Final = 16  # tokens of the head that options leave to the question
LEAST_QUESTION_TOKENS: Final = 8
_NOUL_MEANINGS: Final = {"false": "no, the statement does not hold", "true": "yes, the statement holds"}


@dataclass(frozen=True, slots=True)
class Head:
    """The part before the state. `markers` are indices into `ids`, in the order of the options. `option_tokens`: what
    each option was cut to so that all fit, None when they were not; `distinct` options still differ after cuts."""

    ids: tuple[int, ...]
    markers: tuple[int, ...]
    distinct: int
    option_tokens: int | None
    instructions_cut: bool


class Sequences(abc.ABC):
    """Raises PackageError (`invalid_package`) for a tokenizer without the special tokens."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int):
        self.max_tokens = max_tokens
        self._text = BoundedText(tokenizer)
        self._mask = tokenizer.special_tokens.get("mask_token", "")
        self._sep_id, self._mask_id = (special_id(tokenizer, f"{name}_token") for name in ("sep", "mask"))

    @abc.abstractmethod
    def head(self, question: Question) -> Head:
        """Cut to the head's tokens as the published models were trained. Raises RequestError for what a template refuses."""

    def state_ids(self, state: Content, need: int | None) -> tuple[list[int], bool]:
        """Tokens of the state, and whether these are all; at least `need` of them where there are so many (None: all)."""
        text = self._plain(text_of(state))
        found = self._text.read(text, len(text) if need is None else need)
        return list(found.ids), found.complete

    def sequence(self, head: Head, state: Sequence[int]) -> tuple[int, ...]:
        return (*head.ids, *state, self._sep_id)

    def room(self, head: Head) -> int:
        """Tokens of the state that fit beside the head."""
        return self.max_tokens - len(head.ids) - 1

    def _plain(self, text: str) -> str:
        """Without the marker: a request must not add options."""
        return text.replace(self._mask, " ")


class LayaSequences(Sequences):
    """As the packages `laya` and `julia` write them."""

    def __init__(self, tokenizer: Tokenizer, settings: LayaSettings):
        super().__init__(tokenizer, settings.max_tokens)
        self._settings = settings
        self._cls_id = special_id(tokenizer, "cls_token")

    def head(self, question: Question) -> Head:
        budget = self._settings.head_tokens
        options = [[self._mask_id, *self._ids(f" {text}", OPTION_TOKENS)] for text in self._option_texts(question)]
        instructions = "" if question.instructions is None else text_of(question.instructions)
        asked = self._ids(f"{question.type} question: {self._plain(instructions)}", budget + 1)
        return fitted_head(self._cls_id, asked, options, self._sep_id, budget)

    def _option_texts(self, question: Question) -> list[str]:
        write = _WRITERS[self._settings.style]
        return [self._plain(write(question, option)) for option in question.options]

    def _ids(self, text: str, limit: int) -> list[int]:
        return list(self._text.read(text, limit).ids[:limit])


def fitted_head(first: int, asked: Sequence[int], options: Sequence[Sequence[int]], sep: int, budget: int) -> Head:
    """`options` begin with their markers. They and `asked` together are cut to about `budget` tokens: long options first, then,
    when many share it, all to the same length; the question gets what is left."""
    cut = [list(option[: OPTION_TOKENS + 1]) for option in options]
    each = None
    if budget - sum(map(len, cut)) < QUESTION_RESERVE:
        each = max(LEAST_OPTION_TOKENS, (budget - QUESTION_RESERVE) // len(cut))
        cut = [option[:each] for option in cut]
    room = max(LEAST_QUESTION_TOKENS, budget - sum(map(len, cut)))
    ids = [first, *asked[:room], sep]
    markers = []
    for option in cut:
        markers.append(len(ids))
        ids += option
    ids.append(sep)
    return Head(tuple(ids), tuple(markers), len(set(map(tuple, cut))), each, len(asked) > room)


def _laya_option(question: Question, option: Option) -> str:
    meaning = "" if option.description is None else text_of(option.description)
    if question.type == "choice":
        return f"{option.key}: {meaning}" if meaning else option.key
    if question.type == "score":
        return f"level {option.key}: {meaning}"
    return f"{option.key}: {meaning or _NOUL_MEANINGS[option.key]}"


def _julia_option(question: Question, option: Option) -> str:
    return option.key if option.description in (None, "") else text_of(option.description)


_WRITERS: Final[dict[Literal["laya", "julia"], Any]] = {"laya": _laya_option, "julia": _julia_option}


def special_id(tokenizer: Tokenizer, name: str) -> int:
    """Raises PackageError (`invalid_package`)."""
    token = tokenizer.special_tokens.get(name)
    found = None if token is None else tokenizer.backend.token_to_id(token)
    if found is None:
        raise PackageError(f"the tokenizer has no {name}, which option markers need", reason="invalid_package", param="tokenizer",
                            fix="Download the package again.")  # fmt: skip
    return int(found)
