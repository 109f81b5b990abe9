"""Questions in the form that Vela 2.0 models know: named options, the parts they read, the entry of the calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.decisions.question import Option, Question, QuestionType
from headway.runtime.readers.canonical_text import canonical_text, instructions_text
from headway.runtime.readers.vela2.calibration import Calibration
from headway.runtime.readers.vela2.state import KEY_ROLES, Field, Role, State
from headway.runtime.row import ItemFailure

_NOUL_SIDES: Final = {
    "false": ("no", "No. The statement or question is not satisfied."), "true": ("yes", "Yes. The statement or question is satisfied."),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class VelaQuestion:
    """`options`: names and descriptions ("" for none), in order; labels of a span. `roles` are the parts that it reads.
    `clip`: the code points of the part that a span question is about, when they are not all. `key`: its entry in the
    calibration, the name of the preset. `abstain`: "none of these" is shown too."""

    kind: QuestionType
    text: str
    roles: tuple[Role, ...]
    options: tuple[tuple[str, str], ...]
    key: str
    abstain: bool
    threshold: float | None
    head: str | None
    clip: tuple[int, int] | None
    truncate: bool

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.options]

    @property
    def model_kind(self) -> str:
        """What the model calls the type: nouls are choices."""
        return "choice" if self.kind == "noul" else self.kind


def read_question(question: Question, state: State, calibration: Calibration) -> VelaQuestion | ItemFailure:
    """The parts default to all of them, for spans to the answer, else what the user said."""
    found = _parts(question, state)
    if isinstance(found, ItemFailure):
        return found
    roles, field = found
    if question.type == "span" and len(roles) > 1:
        return ItemFailure("invalid_question", "a span question reads one part, over names several")
    clip = (field.start, field.end) if field is not None and question.type == "span" else None
    if clip == (0, len(state.parts[roles[0]])):
        clip = None
    return VelaQuestion(
        question.type, instructions_text(question.instructions), roles, tuple(_options(question, calibration)), question.preset or "",
        question.type in ("choice", "noul"), question.threshold, question.head, clip, question.truncate,
    )  # fmt: skip


def _options(question: Question, calibration: Calibration) -> list[tuple[str, str]]:
    if question.type == "noul":
        return [(_NOUL_SIDES[option.key][0], _text(option.description, _NOUL_SIDES[option.key][1])) for option in question.options]
    if question.type == "score":
        names = calibration.level_names(question.preset)
        if names is not None:
            return list(zip(names, (_text(option.description) for option in question.options), strict=True))
        return [(_text(option.description), "") for option in question.options]
    return [(option.key, _text(option.description)) for option in question.options]


def _text(value: Any, default: str = "") -> str:
    return default if value is None else canonical_text(value)


def _parts(question: Question, state: State) -> tuple[tuple[Role, ...], Field | None] | ItemFailure:
    if question.over is None:
        if question.type != "span":
            return state.roles, None
        return (next((role for role in ("answer", "user") if role in state.parts), state.roles[0]),), None
    several = isinstance(question.over, list)
    roles: set[Role] = set()
    field: Field | None = None
    for name in question.over if several else [question.over]:
        named = state.fields.get(name) if isinstance(name, str) else None
        known: Any = name if name in state.parts else KEY_ROLES.get(name) if isinstance(name, str) else None
        role: Role | None = known if named is None else named.role
        if role is None or role not in state.parts:
            return ItemFailure("invalid_question", f"over names {str(name)[:80]!r}, which is no part of the state")
        roles.add(role)
        field = named
    return tuple(role for role in state.roles if role in roles), None if several else field


def read_presets(calibration: Calibration) -> dict[str, Question]:
    """The questions that the package was trained on: pii and halu (spans), relevance (score)."""
    presets: dict[str, Question] = {}
    for name in ("pii", "halu"):
        if (schema := calibration.schema(name)) is not None:
            presets[name] = Question("span", schema["text"], _listed(schema["labels"]))
    if (schema := calibration.schema("relevance")) is not None:
        texts = schema["levels"].values()
        presets["relevance"] = Question("score", schema["text"], tuple(Option(str(i), text) for i, text in enumerate(texts)))
    return presets


def _listed(labels: Mapping[str, str]) -> tuple[Option, ...]:
    return tuple(Option(key, text) for key, text in labels.items())
