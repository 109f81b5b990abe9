"""One question of a System One or runtime body -> Question, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn, cast

from headway.wire.decisions import QUESTION_TYPES, InvalidQuestion, Option, Question, QuestionType
from headway.wire.violations import Violation

ORDERED: Final[Mapping[QuestionType, str]] = {
    "choice": "choices", "noul": "choices", "score": "levels", "set": "labels", "span": "labels",
}  # fmt: skip
COUNTS: Final[Mapping[QuestionType, tuple[int, int]]] = {
    "choice": (2, 255), "noul": (0, 2), "score": (2, 10), "set": (1, 255), "span": (1, 255),
}  # fmt: skip
RUNTIME_TYPES: Final = frozenset({"set", "span"})
_SHARED_FIELDS: Final = frozenset({"type", "instructions", "criteria"})
_RUNTIME_FIELDS: Final = frozenset({"over", "preset", "overflow", "require_full_input"})
_OWN_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "set": frozenset({"threshold"}), "span": frozenset({"threshold", "head"}),
}  # fmt: skip
RUNTIME_FIELDS: Final = _RUNTIME_FIELDS | {"threshold", "head"} | set(ORDERED.values())
"""Fields of a question that System One does not know."""
_SIDES: Final = ("false", "true")


class _Wrong(Exception):
    """Stops the reading of a question."""

    def __init__(self, violation: Violation):
        self.violation = violation


def _refuse(message: str, kind: str, *loc: str | int) -> NoReturn:
    raise _Wrong(Violation(loc, message, kind))


def read_question(given: Any, *, strict: bool) -> Question | InvalidQuestion:
    """`strict`: instructions are required unless there is a preset, and unknown fields are refused. Locations of violations
    are relative to the question."""
    kind = given.get("type") if isinstance(given, dict) else None
    try:
        if not isinstance(given, dict):
            _refuse("a question must be an object with a type", "model_attributes_type")
        return _read(given, strict)
    except _Wrong as wrong:
        return InvalidQuestion(kind if kind in QUESTION_TYPES else None, (wrong.violation,))


def _read(given: Mapping[str, Any], strict: bool) -> Question:
    kind = _type(given)
    _check_fields(given, kind, strict)
    preset = _text_field(given, "preset")
    options = _options(given, kind, preset is not None)
    instructions = _instructions(given, strict)
    if instructions is None and preset is None:
        if strict:
            _refuse("instructions are required unless there is a preset", "missing", "instructions")
        if kind == "noul" and all(option.description is None for option in options):
            _refuse("a noul needs instructions, or a description of true or of false", "missing", "instructions")
    full = _flag(given, "require_full_input")
    truncate = _one_of(given, "overflow", ("truncate",)) is not None
    if full and truncate:
        _refuse("require_full_input and overflow: truncate contradict each other", "value_error", "overflow")
    return Question(
        kind, instructions, options, over=_over(given), preset=preset, threshold=_threshold(given),
        head=cast(Any, _one_of(given, "head", ("router", "broad"))), truncate=truncate, require_full_input=full,
    )  # fmt: skip


def _type(given: Mapping[str, Any]) -> QuestionType:
    kind = given.get("type")
    known = ", ".join(QUESTION_TYPES)
    if kind is None:
        _refuse(f"type is missing, expected one of {known}", "missing", "type")
    if kind == "box":
        _refuse("box questions need a model that reads images; the models served here read text", "union_tag_invalid", "type")
    if kind not in QUESTION_TYPES:
        _refuse(f"type is not one of {known}", "union_tag_invalid", "type")
    return cast(QuestionType, kind)


def _check_fields(given: Mapping[str, Any], kind: QuestionType, strict: bool) -> None:
    taken = _SHARED_FIELDS | _RUNTIME_FIELDS | _OWN_FIELDS.get(kind, frozenset()) | {ORDERED[kind]}
    wrong = [name for name in given if name not in taken and (name in RUNTIME_FIELDS or (strict and not name.startswith("x_")))]
    if wrong:
        shown = sorted(name[:40] for name in wrong)[:10]
        _refuse(f"{kind} questions do not take {shown}", "extra_forbidden", wrong[0][:40])
    if given.get("criteria") is not None and given.get(ORDERED[kind]) is not None:
        _refuse(f"criteria and {ORDERED[kind]} are two forms of the same; give one of them", "value_error", ORDERED[kind])


def _instructions(given: Mapping[str, Any], strict: bool) -> Any:
    value = given.get("instructions")
    _check_content(value, "instructions")
    if isinstance(value, str) and not value.strip():
        if strict:
            _refuse("instructions are blank", "string_too_short", "instructions")
        return None
    return value


def _check_content(value: Any, *loc: str | int) -> None:
    if value is not None and not isinstance(value, str | dict | list):
        _refuse("expected a text, an object or an array", "string_type", *loc)


def _options(given: Mapping[str, Any], kind: QuestionType, has_preset: bool) -> tuple[Option, ...]:
    ordered = ORDERED[kind]
    field = ordered if given.get(ordered) is not None else "criteria"
    value = given.get(field)
    if value is None:
        if kind == "noul":
            return tuple(Option(side) for side in _SIDES)
        if has_preset:
            return ()
        _refuse(f"{kind} questions need criteria or {ordered}", "missing", "criteria")
    read = _levels if kind == "score" else _keyed if field == ordered else _mapping
    options = read(value, field)
    least, most = COUNTS[kind]
    if len(options) < least:
        _refuse(f"{len(options)} entries, expected {least} to {most}", "too_short", field)
    if len(options) > most:
        _refuse(f"{len(options)} entries, expected {least} to {most}", "too_long", field)
    return _sides(options, field) if kind == "noul" else options


def _mapping(value: Any, field: str) -> tuple[Option, ...]:
    if not isinstance(value, dict):
        _refuse("expected an object that maps names to descriptions", "dict_type", field)
    for key, description in value.items():
        _check_content(description, field, key)
    return tuple(Option(key, description) for key, description in value.items())


def _keyed(value: Any, field: str) -> tuple[Option, ...]:
    """`[{"key": ..., "description"?: ...}]`."""
    if not isinstance(value, list):
        _refuse("expected an array of objects with key and description", "list_type", field)
    options: dict[str, Option] = {}
    for i, entry in enumerate(value):
        if not isinstance(entry, dict) or not isinstance(entry.get("key"), str) or entry.keys() - {"key", "description"}:
            _refuse("expected an object with key and, if there is one, description", "dict_type", field, i)
        if entry["key"] in options:
            _refuse("this key is there twice", "value_error", field, i, "key")
        _check_content(entry.get("description"), field, i, "description")
        options[entry["key"]] = Option(entry["key"], entry.get("description"))
    return tuple(options.values())


def _levels(value: Any, field: str) -> tuple[Option, ...]:
    if not isinstance(value, list):
        _refuse("expected an array of levels, the lowest first", "list_type", field)
    for i, level in enumerate(value):
        if level is None:
            _refuse("a level must be a text, an object or an array, not null", "string_type", field, i)
        _check_content(level, field, i)
    return tuple(Option(str(i), level) for i, level in enumerate(value))


def _sides(options: tuple[Option, ...], field: str) -> tuple[Option, ...]:
    described = {option.key: option.description for option in options}
    if described.keys() - set(_SIDES):
        _refuse("the sides of a noul are called true and false", "extra_forbidden", field)
    return tuple(Option(side, described.get(side)) for side in _SIDES)


def _text_field(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not (isinstance(value, str) and value.strip()):
        _refuse("expected a name", "string_type", name)
    return value


def _flag(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name)
    if value is not None and not isinstance(value, bool):
        _refuse("expected true or false", "bool_type", name)
    return bool(value)


def _one_of(given: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str | None:
    value = given.get(name)
    if value is not None and value not in known:
        _refuse(f"expected {' or '.join(known)}", "literal_error", name)
    return cast("str | None", value)


def _threshold(given: Mapping[str, Any]) -> float | None:
    value = given.get("threshold")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        _refuse("expected a number from 0 to 1", "float_type", "threshold")
    return float(value)


def _over(given: Mapping[str, Any]) -> Any:
    """A key of the state, an index into it, or a list of them."""
    value = given.get("over")
    several = value if isinstance(value, list) else [value]
    if value is not None and not (several and all(_is_name(each) for each in several)):
        _refuse("expected the name of a part of the state, or an array of names", "string_type", "over")
    return value


def _is_name(value: Any) -> bool:
    return (isinstance(value, str) and bool(value.strip())) or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)
