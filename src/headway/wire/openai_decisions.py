"""`POST /v1/decisions` in OpenAI's form: `input` and an array of questions, answered in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from headway.wire.decision_body import LIMITS, DecisionLimits
from headway.wire.decision_questions import COUNTS
from headway.wire.decisions import DecisionPart, DecisionRequest, Option, Question
from headway.wire.openai_input import PARTS_OF_ROLE, read_input, read_parts
from headway.wire.violations import Location, SchemaError, Violation

Value: TypeAlias = str | bool
_FIELDS: Final = frozenset({"model", "input", "questions", "safety_identifier", "prompt_cache_key", "prompt_cache_options"})
_MAX_IDENTIFIER: Final = 128
_INSTRUCTION_PARTS: Final = PARTS_OF_ROLE["user"]


@dataclass(frozen=True, slots=True)
class Named:
    """What the answer to one question repeats of it: `values` of a choice, `labels` of a score, in order."""

    type: str
    name: str | None
    values: tuple[Value, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenAIDecisions:
    """`request` asks the questions as "0", "1", ..."""

    request: DecisionRequest
    questions: tuple[Named, ...]


def is_openai(fields: Mapping[str, Any]) -> bool:
    """System One bodies have a `state` and an object of questions."""
    return "state" not in fields and ("input" in fields or isinstance(fields.get("questions"), list))


def read_openai_decisions(fields: Mapping[str, Any], limits: DecisionLimits = LIMITS) -> OpenAIDecisions:
    """Raises SchemaError: for parameters that decisions do not have, and for any question that cannot be asked."""
    for name in fields:
        if name not in _FIELDS and not name.startswith("x_"):
            _refuse("unknown parameter", "extra_forbidden", ("body", name[:80]))
    _check_identifier(fields.get("safety_identifier"))
    _check_cache(fields)
    questions = fields.get("questions")
    if not isinstance(questions, list):
        _refuse("expected an array of questions", "missing" if questions is None else "list_type", ("body", "questions"))
    if not 1 <= len(questions) <= limits.questions:
        kind = "too_long" if questions else "too_short"
        _refuse(f"{len(questions)} questions, expected 1 to {limits.questions}", kind, ("body", "questions"))
    if fields.get("input") is None:
        _refuse("input is missing", "missing", ("body", "input"))
    state = read_input(fields["input"], ("body", "input"))
    read = [_question(each, ("body", "questions", i)) for i, each in enumerate(questions)]
    part = DecisionPart(state, {str(i): question for i, (question, _) in enumerate(read)})
    return OpenAIDecisions(DecisionRequest(part, "openai"), tuple(named for _, named in read))


def _check_identifier(given: Any) -> None:
    if given is not None and not (isinstance(given, str) and len(given) <= _MAX_IDENTIFIER):
        _refuse(f"expected a text of at most {_MAX_IDENTIFIER} characters", "string_type", ("body", "safety_identifier"))


def _check_cache(fields: Mapping[str, Any]) -> None:
    """Prefixes are shared without being asked, so these say nothing new; they are still checked."""
    key, options = fields.get("prompt_cache_key"), fields.get("prompt_cache_options")
    if key is not None and not isinstance(key, str):
        _refuse("expected a text", "string_type", ("body", "prompt_cache_key"))
    if options is not None and not (
        isinstance(options, dict) and options.keys() <= {"mode", "ttl"}
        and options.get("mode") in (None, "implicit", "explicit") and options.get("ttl") in (None, "30m")
    ):  # fmt: skip
        _refuse("expected mode implicit or explicit, and ttl 30m", "value_error", ("body", "prompt_cache_options"))


def _question(given: Any, where: Location) -> tuple[Question, Named]:
    kind = given.get("type") if isinstance(given, dict) else None
    read = {"predicate": _predicate, "choice": _choice, "score": _score}.get(kind) if isinstance(kind, str) else None
    if read is None:
        _refuse("expected predicate, choice or score", "union_tag_invalid", (*where, "type"))
    name = given.get("name")
    if name is not None and not isinstance(name, str):
        _refuse("expected a text", "string_type", (*where, "name"))
    instructions = read_parts(given.get("instructions"), _INSTRUCTION_PARTS, (*where, "instructions"))
    if not instructions.strip():
        _refuse("instructions are blank", "string_too_short", (*where, "instructions"))
    return read(given, instructions, name, where)


def _predicate(given: Mapping[str, Any], instructions: str, name: str | None, where: Location) -> tuple[Question, Named]:
    return Question("noul", instructions, (Option("false"), Option("true"))), Named("predicate", name)


def _choice(given: Mapping[str, Any], instructions: str, name: str | None, where: Location) -> tuple[Question, Named]:
    entries = _entries(given, "choices", "value", (str, bool), "choice", where)
    values = [value for value, _ in entries]
    if len(set(values)) < len(values):
        _refuse("a value is there twice", "value_error", (*where, "choices"))
    texts = [value for value in values if isinstance(value, str)]
    options = tuple(Option(_key(value, texts), description) for value, description in entries)
    return Question("choice", instructions, options), Named("choice", name, values=tuple(values))


def _key(value: Value, texts: list[str]) -> str:
    """A boolean is called true or false, unless a text of that name is there as well: values are typed."""
    if isinstance(value, str):
        return value
    key = "true" if value else "false"
    while key in texts:
        key += " (boolean)"
    return key


def _score(given: Mapping[str, Any], instructions: str, name: str | None, where: Location) -> tuple[Question, Named]:
    entries = _entries(given, "levels", "label", (str,), "score", where)
    labels = tuple(str(label) for label, _ in entries)
    texts = [label if description is None else f"{label}: {description}" for label, description in entries]
    options = tuple(Option(str(i), text) for i, text in enumerate(texts))
    return Question("score", instructions, options), Named("score", name, labels=labels)


def _entries(
    given: Mapping[str, Any], field: str, key: str, kinds: tuple[type, ...], question: Any, where: Location
) -> list[tuple[Value, str | None]]:
    """`[{key: ..., "description"?: text}]`."""
    at = (*where, field)
    value = given.get(field)
    least, most = COUNTS[question]
    if not isinstance(value, list):
        _refuse("expected an array", "missing" if value is None else "list_type", at)
    if not least <= len(value) <= most:
        _refuse(f"{len(value)} entries, expected {least} to {most}", "too_long" if len(value) > most else "too_short", at)
    for i, entry in enumerate(value):
        if not isinstance(entry, dict) or not isinstance(entry.get(key), kinds):
            _refuse(f"expected an object with {key}", "dict_type", (*at, i))
        if not isinstance(entry.get("description"), str | None):
            _refuse("expected a text", "string_type", (*at, i, "description"))
    return [(entry[key], entry.get("description")) for entry in value]


def _refuse(message: str, kind: str, where: Location) -> NoReturn:
    raise SchemaError([Violation(where, message, kind)])
