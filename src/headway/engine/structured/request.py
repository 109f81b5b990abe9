"""StructuredOutputs: what form an answer must have, as a request says it. The names are those of vLLM's StructuredOutputsParams."""

from __future__ import annotations

import json as json_text
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from headway.errors import NotBuiltError, RequestError

PARAM: Final = "structured_outputs"
INVALID: Final = "structured_outputs_invalid"
TOO_LARGE: Final = "structured_outputs_too_large"
UNSUPPORTED: Final = "structured_outputs_unsupported"
KINDS: Final = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")
MAX_CHARACTERS: Final = 262_144  # of the constraint as text: 500 properties are about 15,000
MAX_DEPTH: Final = 64  # objects and lists of a schema or structural tag inside one another
MAX_CHOICES: Final = 8192
_OUTSIDE: Final = frozenset({*KINDS, "disable_any_whitespace", "disable_additional_properties", "whitespace_pattern"})


class Constraint(NamedTuple):
    """A constraint as one text, and so the key of its compiled form: for `choice` the text is a JSON list."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class StructuredOutputs:
    """Exactly one of `json` (a schema, or its text), `json_object` (any object), `regex` (the whole answer), `choice`, `grammar` (GBNF
    with `::=`, else Lark) and `structural_tag`.

    `disable_any_whitespace` leaves no blanks between the parts of JSON (otherwise a few are allowed). `starts_after` are the token ids after which the form
    begins: empty = at the first token of the answer; otherwise the answer is free until these ids stand in it, one after the other. It is
    for the server (the end marker of a reasoning parser) and not readable from a request; so is `param`, what errors call the field that asked.

    Raises RequestError with reason `structured_outputs_invalid` or `structured_outputs_too_large`; NotBuiltError for options that only other
    grammar libraries have. Whether a grammar can be compiled is not known here.
    """

    json: Any = field(default=None, hash=False)
    regex: str | None = None
    choice: list[str] | None = field(default=None, hash=False)
    grammar: str | None = None
    json_object: bool | None = None
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: str | None = None
    structural_tag: Any = field(default=None, hash=False)
    starts_after: tuple[int, ...] = ()
    param: str = PARAM
    constraint: Constraint = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise invalid(f"exactly one of {', '.join(KINDS)} is needed, got {' and '.join(given) or 'none'}")
        if not isinstance(self.disable_any_whitespace, bool):
            raise invalid("disable_any_whitespace must be true or false")
        self._refuse_foreign()
        constraint = Constraint(given[0], _TEXTS[given[0]](getattr(self, given[0])))
        if len(constraint.text) > MAX_CHARACTERS:
            raise too_large(f"{given[0]} has {len(constraint.text)} characters, the limit is {MAX_CHARACTERS}")
        object.__setattr__(self, "constraint", constraint)

    @classmethod
    def of(cls, given: object, param: str = PARAM) -> Self:
        """From an object of this class, or a mapping of a request body. Unknown names are refused. `param`: as the field of that name."""
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise invalid(f"expected an object with one of {', '.join(KINDS)}, got {type(given).__name__}")
        unknown = [str(name)[:40] for name in given if name not in _OUTSIDE]
        if unknown:
            raise invalid(f"there is no option {unknown[0]!r}; known are {', '.join(sorted(_OUTSIDE))}")
        return cls(**{name: value for name, value in given.items() if value is not None}, param=param)

    def _refuse_foreign(self) -> None:
        if self.disable_additional_properties:
            raise NotBuiltError(
                "disable_additional_properties belongs to the backend guidance, this server has xgrammar", param=PARAM,
                fix="Write additionalProperties: false in the schema.",
            )  # fmt: skip
        if self.whitespace_pattern is not None:
            raise NotBuiltError(
                "whitespace_pattern belongs to the backend outlines, this server has xgrammar", param=PARAM, fix="Use disable_any_whitespace."
            )


def invalid(message: str) -> RequestError:
    return RequestError(f"{PARAM}: {message}", reason=INVALID, param=PARAM)


def too_large(message: str) -> RequestError:
    return RequestError(f"{PARAM}: {message}", reason=TOO_LARGE, param=PARAM)


def _words(kind: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise invalid(f"{kind} must be a non-empty string")
    return _encodable(kind, value)


def _encodable(kind: str, text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise invalid(f"{kind} holds half of a character pair (a lone surrogate)") from None
    if "\0" in text:
        raise invalid(f"{kind} holds the character NUL")
    return text


def _document(kind: str, value: object, *, plain: type | tuple[type, ...] = dict) -> str:
    """A JSON object, or its text, as compact text whose order is that of the author: properties come in that order."""
    if isinstance(value, str):
        if len(value) > MAX_CHARACTERS:
            raise too_large(f"{kind} has {len(value)} characters, the limit is {MAX_CHARACTERS}")
        try:
            value = json_text.loads(value)
        except RecursionError:
            raise too_large(f"{kind} is nested deeper than {MAX_DEPTH}") from None
        except ValueError as error:
            raise invalid(f"{kind} is not valid JSON: {error}") from None
    if not isinstance(value, plain):
        raise invalid(f"{kind} must be a JSON object or its text, got {type(value).__name__}")
    _check_depth(kind, value)
    try:
        return _encodable(kind, json_text.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError) as error:
        raise invalid(f"{kind} cannot be written as JSON: {error}") from None


def _check_depth(kind: str, value: object) -> None:
    """Level by level, so that depth costs no stack. An object that holds itself is as deep as the limit and ends there."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[object] = []
        for item in level:
            if isinstance(item, Mapping):
                below += item.values()
            elif isinstance(item, list | tuple):
                below += item
            if len(below) > MAX_CHARACTERS:
                raise too_large(f"{kind} has more than {MAX_CHARACTERS} values")
        level = [item for item in below if isinstance(item, Mapping | list | tuple)]
        if not level:
            return
    raise too_large(f"{kind} is nested deeper than {MAX_DEPTH}")


def _choices(value: object) -> str:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise invalid("choice must be a list of strings")
    items = list(value)
    if not items or any(not isinstance(item, str) for item in items):
        raise invalid("choice must be a non-empty list of strings")
    if len(items) > MAX_CHOICES:
        raise too_large(f"choice has {len(items)} entries, the limit is {MAX_CHOICES}")
    return _document("choice", items, plain=list)


def _any_object(value: object) -> str:
    if value is not True:
        raise invalid("json_object must be true, or absent")
    return '{"type":"object"}'


_TEXTS: Final[Mapping[str, Callable[[Any], str]]] = {
    "json": lambda v: _document("json", v, plain=(dict, bool)),
    "json_object": _any_object,
    "regex": lambda v: _words("regex", v),
    "choice": _choices,
    "grammar": lambda v: _words("grammar", v),
    "structural_tag": lambda v: _document("structural_tag", v),
}
