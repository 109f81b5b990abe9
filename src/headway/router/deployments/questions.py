"""The questions of a stage for one deployment as one body of `/v1/decisions`, and its answer taken apart again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from headway.router.deployments import outcome
from headway.router.deployments.calls import Answered, Unanswered
from headway.router.deployments.card import Card
from headway.router.deployments.plausibility import PLAUSIBLE

_SET_THRESHOLD = 0.5
_OPTION_FIELDS = ("criteria", "choices", "levels", "labels")
Answer = Answered[Mapping[str, Any]] | Unanswered


@dataclass(frozen=True, slots=True)
class Asked:
    """One question about one state. `full`: everything must be read."""

    question: Mapping[str, Any]
    state: Any
    full: bool = False


@dataclass(frozen=True, slots=True)
class _Placed:
    """Where the answer will be: `part` is the name of its state ("" = the body's own), `id` the question's there. `by_label` are the ids of the
    nouls that a set was made of."""

    asked: Asked
    part: str
    id: str
    keys: tuple[str, ...]
    by_label: Mapping[str, str]


class QuestionBody:
    """`fields` is the body without `model` and `options`. A set becomes one noul for each label when the model has no sets."""

    def __init__(self, questions: Sequence[Asked], card: Card) -> None:
        self._card = card
        self._states: dict[bytes, str] = {}
        self._parts: dict[str, dict[str, Any]] = {}
        self._placed = [self._place(asked, number) for number, asked in enumerate(questions)]

    @property
    def fields(self) -> dict[str, Any]:
        if len(self._parts) == 1:
            return next(iter(self._parts.values()))
        return {"states": self._parts}

    def answers(self, body: Mapping[str, Any], seconds: float) -> list[Answer]:
        """In the order of the questions."""
        parts = {"s0": body} if len(self._parts) == 1 else body.get("states")
        if not isinstance(parts, Mapping):
            return [Unanswered(outcome.MISSING_ANSWER) for _ in self._placed]
        return [self._answer(placed, parts.get(placed.part), seconds) for placed in self._placed]

    def _place(self, asked: Asked, number: int) -> _Placed:
        key = orjson.dumps(asked.state)
        part = self._states.setdefault(key, f"s{len(self._states)}")
        questions = self._parts.setdefault(part, {"state": asked.state, "questions": {}})["questions"]
        keys, name = option_keys(asked.question), f"q{number}"
        if asked.question.get("type") == "set" and "set" not in self._card.question_types and "noul" in self._card.question_types:
            by_label = {label: f"{name}n{place}" for place, label in enumerate(keys)}
            for label, each in by_label.items():
                questions[each] = self._sent(_as_noul(asked.question, label), asked.full)
            return _Placed(asked, part, name, keys, by_label)
        questions[name] = self._sent(asked.question, asked.full)
        return _Placed(asked, part, name, keys, {})

    def _sent(self, question: Mapping[str, Any], full: bool) -> dict[str, Any]:
        if full:
            return {**question, "require_full_input": True}
        return {**question, "overflow": "truncate"} if self._card.truncates else dict(question)

    def _answer(self, placed: _Placed, part: Any, seconds: float) -> Answer:
        if not isinstance(part, Mapping) or not isinstance(part.get("answers"), Mapping):
            code = part.get("error", {}).get("code") if isinstance(part, Mapping) and isinstance(part.get("error"), Mapping) else None
            return Unanswered(outcome.MISSING_ANSWER if code is None else outcome.of_item(str(code), placed.asked.full))
        kind = str(placed.asked.question.get("type"))
        found = _composed(placed, part) if placed.by_label else _taken(placed, kind, part)
        if isinstance(found, Unanswered):
            return found
        value, proofs = found
        if not PLAUSIBLE[kind](value, placed.keys, placed.asked.state):
            return Unanswered(outcome.INVALID_OUTPUT)
        if placed.asked.full and not all(proofs):
            return Unanswered(outcome.COVERAGE_UNKNOWN)
        return Answered(value, read_all=placed.asked.full or not self._card.truncates, seconds=seconds)


def option_keys(question: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys that an answer has to have, whatever form the options were given in; of a score the numbers of its levels."""
    given = next((question[name] for name in _OPTION_FIELDS if question.get(name) is not None), ())
    if question.get("type") == "score":
        return tuple(str(level) for level in range(len(given)))
    if isinstance(given, Mapping):
        return tuple(given)
    return tuple(option["key"] for option in given)


def _as_noul(question: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Whether one label of a set holds."""
    given = question.get("criteria") or question.get("labels") or ()
    pairs = given.items() if isinstance(given, Mapping) else ((option["key"], option.get("description")) for option in given)
    meaning = dict(pairs).get(label)
    about = label if meaning is None else f"{label}: {meaning}"
    return {"type": "noul", "instructions": f"{question.get('instructions') or ''}\nDoes this label apply? {about}".strip()}


def _taken(placed: _Placed, kind: str, part: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[bool]] | Unanswered:
    """The answer in one piece, and for each piece of the wire whether it proves that everything was read."""
    answers = part["answers"]
    own = answers.get(placed.id)
    if isinstance(own, Mapping) and "error" in own:
        return Unanswered(outcome.of_item(str(own["error"]), placed.asked.full))
    if kind == "set":
        chosen = (part.get("sets") or {}).get(placed.id)
        each = [answers.get(f"{placed.id}.{key}") for key in placed.keys]
        if not isinstance(chosen, Mapping):
            return Unanswered(outcome.MISSING_ANSWER)
        return {"type": "set", "probabilities": chosen.get("probabilities"), "selected": chosen.get("selected")}, [_covered(one) for one in each]
    if not isinstance(own, Mapping):
        return Unanswered(outcome.MISSING_ANSWER)
    if kind == "span":
        return {"type": "span", "spans": (part.get("spans") or {}).get(placed.id)}, [_covered(own)]
    return own, [_covered(own)]


def _composed(placed: _Placed, part: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[bool]] | Unanswered:
    answers = {label: part["answers"].get(each) for label, each in placed.by_label.items()}
    for answer in answers.values():
        if isinstance(answer, Mapping) and "error" in answer:
            return Unanswered(outcome.of_item(str(answer["error"]), placed.asked.full))
    if not all(isinstance(answer, Mapping) for answer in answers.values()):
        return Unanswered(outcome.INCOMPLETE_LABELS)
    chances = {label: answer.get("noul") for label, answer in answers.items()}
    threshold = placed.asked.question.get("threshold")
    least = _SET_THRESHOLD if threshold is None else threshold
    selected = [label for label, chance in chances.items() if isinstance(chance, int | float) and chance >= least]
    return {"type": "set", "probabilities": chances, "selected": selected}, [_covered(answer) for answer in answers.values()]


def _covered(answer: Any) -> bool:
    return isinstance(answer, Mapping) and answer.get("input_coverage") == "complete"
