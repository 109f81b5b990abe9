"""A body with `state` and an object of questions -> DecisionRequest: System One, and the model runtime's additions to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from headway.wire.classify import CommonOptions
from headway.wire.decision_media import MEDIA_FIELDS, read_media
from headway.wire.decision_questions import RUNTIME_FIELDS, RUNTIME_TYPES, read_question
from headway.wire.decisions import DecisionPart, DecisionRequest, Dialect, InvalidQuestion, Question
from headway.wire.limits import MAX_SCAN_TOKENS
from headway.wire.removed import PROFILE, PROFILE_REMOVED
from headway.wire.violations import Location, SchemaError, Violation

_RUNTIME_MEMBERS: Final = frozenset({"options", "states", *MEDIA_FIELDS})
_OPTIONS: Final = frozenset({"deadline_ms", "return_meta", "max_tokens"})
_OTHER_MEDIA: Final = ("assets", "audio")
_IMAGE_PARTS: Final = frozenset({"image_url", "input_image", "image", "input_audio", "audio_url", "video_url"})


@dataclass(frozen=True, slots=True)
class DecisionLimits:
    """`questions` about one state, and `states` of one request."""

    questions: int = 400
    states: int = 64


LIMITS: Final = DecisionLimits()


def is_runtime(fields: Mapping[str, Any]) -> bool:
    """Whether a body uses anything that System One does not have."""
    if any(fields.get(name) is not None for name in _RUNTIME_MEMBERS):
        return True
    questions = fields.get("questions")
    if not isinstance(questions, dict):
        return False
    return any(isinstance(question, dict) and _is_runtime_question(question) for question in questions.values())


def _is_runtime_question(question: Mapping[str, Any]) -> bool:
    kind = question.get("type")
    return (isinstance(kind, str) and kind in RUNTIME_TYPES) or not question.keys().isdisjoint(RUNTIME_FIELDS)


def read_decision_body(fields: Mapping[str, Any], limits: DecisionLimits = LIMITS) -> DecisionRequest:
    """`fields` is the decoded body. Fields that neither protocol knows are ignored; questions that cannot be asked become
    InvalidQuestion. Raises SchemaError."""
    strict = is_runtime(fields)
    dialect: Dialect = "runtime" if strict else "system_one"
    for name in _OTHER_MEDIA:
        if fields.get(name) is not None:
            _refuse(f"{name} need a model that takes images or sound; the models served here read text", "value_error", name)
    if fields.get("stream") is True:
        _refuse("decisions are not streamed", "value_error", "stream")
    states = _states(fields.get("states"), strict, limits)
    alone = not states or fields.get("state") is not None or fields.get("questions") is not None
    deadline, return_meta, max_tokens = _read_options(fields.get("options"))
    return DecisionRequest(
        main=_part(fields, ("body",), strict, limits) if alone else None,
        dialect=dialect, states=states, media=read_media(fields), max_tokens=max_tokens,
        options=CommonOptions(deadline, return_meta),
    )  # fmt: skip


def _part(fields: Mapping[str, Any], where: Location, strict: bool, limits: DecisionLimits) -> DecisionPart:
    wrong: list[Violation] = []
    state = fields.get("state")
    if "state" not in fields:
        wrong.append(Violation((*where, "state"), "state is missing", "missing"))
    elif (problem := state_problem(state)) is not None:
        wrong.append(Violation((*where, "state"), *problem))
    wrong += questions_problem(fields, where, limits)
    if wrong:
        raise SchemaError(wrong)
    return DecisionPart(state, read_questions(fields["questions"], strict=strict))


def state_problem(state: Any) -> tuple[str, str] | None:
    """What is wrong with a state, and the code of it."""
    if not isinstance(state, str | dict | list):
        return "expected a text, an object or an array", "string_type"
    if not state or (isinstance(state, str) and not state.strip()):
        return "the state is empty: there is nothing to decide on", "too_short"
    if _holds_media(state):
        return "the state holds images or sound; the models served here read text", "value_error"
    return None


def _holds_media(state: Any) -> bool:
    """Chat messages with parts that are no text: as text they would be meaningless base64."""
    messages = state.get("messages") if isinstance(state, dict) else state
    if not isinstance(messages, list):
        return False
    said = [each for each in messages if isinstance(each, dict) and isinstance(each.get("role"), str)]
    parts = [part for each in said if isinstance(each.get("content"), list) for part in each["content"] if isinstance(part, dict)]
    return any(isinstance(part.get("type"), str) and part["type"] in _IMAGE_PARTS for part in parts)


def questions_problem(fields: Mapping[str, Any], where: Location, limits: DecisionLimits) -> list[Violation]:
    """What is wrong with `questions` as a whole."""
    questions = fields.get("questions")
    at = (*where, "questions")
    if "questions" not in fields:
        return [Violation(at, "questions are missing", "missing")]
    if not isinstance(questions, dict):
        return [Violation(at, "expected an object that maps ids to questions", "dict_type")]
    if not questions:
        return [Violation(at, "there are no questions, expected at least one", "too_short")]
    if len(questions) > limits.questions:
        return [Violation(at, f"{len(questions)} questions, the limit is {limits.questions}", "too_long")]
    return []


def read_questions(given: Mapping[str, Any], *, strict: bool) -> dict[str, Question | InvalidQuestion]:
    """Each question by itself, then the ids against each other: labels of a set are answered as `<id>.<label>`."""
    read: dict[str, Question | InvalidQuestion] = {}
    taken = set(given)
    for name, each in given.items():
        question = read_question(each, strict=strict) if name else _unusable(None, "the id is empty", "string_too_short")
        if isinstance(question, Question) and question.type == "set":
            answered = {f"{name}.{option.key}" for option in question.options}
            if clashes := sorted(taken & answered):
                question = _unusable("set", f"a label is answered as {clashes[0][:80]!r}, which is an id of this request", "value_error")
            taken |= answered
        read[name] = question
    return read


def _unusable(kind: str | None, message: str, code: str) -> InvalidQuestion:
    return InvalidQuestion(kind, (Violation((), message, code),))


def _states(given: Any, strict: bool, limits: DecisionLimits) -> dict[str, DecisionPart]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not given:
        _refuse("expected an object that maps names to {state, questions}", "dict_type", "states")
    if len(given) > limits.states:
        _refuse(f"{len(given)} states, the limit is {limits.states}", "too_long", "states")
    parts: dict[str, DecisionPart] = {}
    for name, each in given.items():
        if not isinstance(each, dict) or each.keys() != {"state", "questions"}:
            _refuse("expected an object with exactly state and questions", "dict_type", "states", name)
        parts[name] = _part(each, ("body", "states", name), strict, limits)
    return parts


def _read_options(given: Any) -> tuple[float | None, bool, int | None]:
    """`deadline_ms`, `return_meta`, `max_tokens`."""
    if given is None:
        return None, False, None
    if not isinstance(given, dict):
        _refuse("expected an object", "dict_type", "options")
    for name in given:
        if name not in _OPTIONS:
            known = f"unknown option, known are {', '.join(sorted(_OPTIONS))}"
            _refuse(PROFILE_REMOVED if name == PROFILE else known, "extra_forbidden", "options", name[:40])
    deadline, meta, budget = given.get("deadline_ms"), given.get("return_meta"), given.get("max_tokens")
    if deadline is not None and not (_is_number(deadline) and math.isfinite(deadline) and deadline > 0):
        _refuse("expected a number of milliseconds above 0", "greater_than", "options", "deadline_ms")
    if meta is not None and not isinstance(meta, bool):
        _refuse("expected true or false", "bool_type", "options", "return_meta")
    if budget is not None and not (isinstance(budget, int) and not isinstance(budget, bool) and budget > 0):
        _refuse("expected a number of tokens above 0", "greater_than", "options", "max_tokens")
    if budget is not None and budget > MAX_SCAN_TOKENS:
        _refuse(f"expected at most {MAX_SCAN_TOKENS} tokens", "less_than_equal", "options", "max_tokens")
    return None if deadline is None else float(deadline), bool(meta), budget


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse(message: str, kind: str, *loc: str | int) -> NoReturn:
    raise SchemaError([Violation(("body", *loc), message, kind)])
