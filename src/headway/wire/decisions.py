"""The body of `POST /v1/decisions` and `/v1/systemone`, checked: questions about a state, whatever form they came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from headway.wire.classify import CommonOptions
from headway.wire.violations import Violation

Content: TypeAlias = Any  # text, or any JSON value that stands for text
QuestionType: TypeAlias = Literal["choice", "noul", "score", "set", "span"]
QUESTION_TYPES: tuple[QuestionType, ...] = ("choice", "noul", "score", "set", "span")

DECISION_ALIASES: Final = ("jev-latest", "jev-preview")
"""Names that System One clients give when they mean whatever decides."""
Dialect: TypeAlias = Literal["system_one", "runtime", "openai"]
"""`runtime`: a System One body that uses anything of the model runtime's own (`options`, `states`, `set`, `over`, ...).
It is checked more strictly: instructions are required, unknown fields of questions refused, and errors are 400, not 422."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option, level or label. For a noul the keys are "false" and "true", for a score "0", "1", ..."""

    key: str
    description: Content | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """`options` in the order given; both sides of a noul are always there, false first. The id is not here: it must not
    influence the answer. With a `preset` the options may be empty: the model knows them."""

    type: QuestionType
    instructions: Content | None
    options: tuple[Option, ...]
    over: Any | None = None
    preset: str | None = None
    threshold: float | None = None
    head: Literal["router", "broad"] | None = None
    truncate: bool = False
    require_full_input: bool = False


@dataclass(frozen=True, slots=True)
class InvalidQuestion:
    """A question that cannot be asked; its siblings go on. `type` as given, if it is one."""

    type: str | None
    violations: tuple[Violation, ...]

    @property
    def message(self) -> str:
        return "; ".join(violation.message for violation in self.violations)


@dataclass(frozen=True, slots=True)
class DecisionMedia:
    """One image or video, decoded."""

    modality: Literal["image", "video"]
    data: bytes


@dataclass(frozen=True, slots=True)
class DecisionPart:
    """A state and what is asked about it, by id, in the order of the request."""

    state: Content
    questions: Mapping[str, Question | InvalidQuestion]


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """`main` is None when all is in `states`. Each state is answered as if it were a request of its own."""

    main: DecisionPart | None
    dialect: Dialect
    states: Mapping[str, DecisionPart] = field(default_factory=dict)
    media: tuple[DecisionMedia, ...] = ()
    max_tokens: int | None = None
    options: CommonOptions = field(default_factory=CommonOptions)
