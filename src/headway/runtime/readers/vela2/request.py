"""What both members of the family do with a request before they lay it out: parts, questions, tokens, budgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.question import Question, Subject
from headway.decisions.text_only import refuse_media
from headway.runtime.long_input.bounded_text import BoundedText
from headway.runtime.readers.vela2.budget import over_budget
from headway.runtime.readers.vela2.calibration import Calibration
from headway.runtime.readers.vela2.parts import PartTokens, part_tokens
from headway.runtime.readers.vela2.questions import VelaQuestion, read_question
from headway.runtime.readers.vela2.state import Role, State, read_state
from headway.runtime.row import ItemFailure

_CACHED_TEXTS: Final = 4096  # questions and options come again and again
_CACHED_CHARS: Final = 1024


@dataclass(frozen=True, slots=True)
class Prepared:
    """`questions` in the order asked; failures are settled. `parts` of the state: whole, or more of them than the budget."""

    state: State
    questions: tuple[VelaQuestion | ItemFailure, ...]
    parts: Mapping[Role, PartTokens]

    def parts_for(self, question: VelaQuestion, first_tokens: int) -> tuple[PartTokens, ...]:
        """All parts; of a question that reads the beginning alone, the first tokens of them."""
        parts = tuple(self.parts.values())
        return tuple(part.window(0, first_tokens) for part in parts) if question.truncate else parts


class RequestReader:
    """`plain` knows no markers, so no text can hold one."""

    def __init__(self, plain: Tokenizer, calibration: Calibration, budget: int, max_tokens: int, *, broad_loaded: bool):
        self._plain = plain
        self._bounded = BoundedText(plain)
        self._calibration = calibration
        self._budget = budget
        self._max_tokens = max_tokens
        self._broad_loaded = broad_loaded
        self._cached: Callable[[str], tuple[int, ...]] = lru_cache(_CACHED_TEXTS)(self._encode)

    def prepare(self, subject: Subject, questions: Sequence[Question]) -> Prepared | ItemFailure:
        """A failure is that of every question."""
        if (refused := refuse_media(subject)) is not None:
            return refused
        state = read_state(subject.state)
        if isinstance(state, ItemFailure):
            return state
        read = [self._question(question, state) for question in questions]
        searched = {each.roles[0] for each in read if isinstance(each, VelaQuestion) and each.kind == "span"}
        budget = self._budget if subject.max_tokens is None else max(subject.max_tokens, self._max_tokens)
        parts = {role: self._part(role, text, role in searched, budget) for role, text in state.parts.items()}
        settled = [each if isinstance(each, ItemFailure) else over_budget(each, parts, budget) or each for each in read]
        return Prepared(state, tuple(settled), parts)

    def _question(self, question: Question, state: State) -> VelaQuestion | ItemFailure:
        read = read_question(question, state, self._calibration)
        if isinstance(read, VelaQuestion) and read.head == "broad" and not self._broad_loaded:
            return ItemFailure("invalid_question", "this model has no broad span head")
        return read

    def _part(self, role: Role, text: str, searched: bool, budget: int) -> PartTokens:
        """Of a text far over the budget the beginning: no more than that is ever read."""
        content = self._bounded.read(text, budget + 1, offsets=searched)
        return part_tokens(role, text, content.ids, content.offsets if searched else None)

    def ids(self, text: str) -> tuple[int, ...]:
        """Tokens of a question, an option or a piece of the layout; short ones are remembered."""
        return self._cached(text) if len(text) <= _CACHED_CHARS else self._encode(text)

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._plain.encode(text, add_special_tokens=False))

