r"""A regular expression as xgrammar is to get it.

xgrammar 0.2.9 reads some of the language in a way of its own, without a word: `.` is any character with line ends, anchors in the middle and unknown escapes are
dropped, and a `pattern` of a schema is compared with the raw text of a JSON string, not with what the string says. So an expression is read here, by
Python's own parser, and written again in the few signs that mean the same everywhere. The language is that of ECMA-262 without flags, as
JSON Schema has it: \d and \w are ASCII.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

_parser: Final[Any] = importlib.import_module("re._parser")  # what `re` itself parses with
_op: Final[Any] = importlib.import_module("re._constants")

MOST_NESTED: Final = 100  # groups inside one another: the parser, and what follows here, call themselves for each
_TOP: Final = 0x10FFFF
_LINE_ENDS: Final = [(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)]
_SPACES: Final = [(9, 13), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)]
_DIGITS: Final = [(0x30, 0x39)]
_WORD: Final = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_CATEGORIES: Final[Mapping[Any, list[tuple[int, int]]]] = {_op.CATEGORY_DIGIT: _DIGITS, _op.CATEGORY_SPACE: _SPACES, _op.CATEGORY_WORD: _WORD}
_NOT_CATEGORIES: Final[Mapping[Any, list[tuple[int, int]]]] = {
    _op.CATEGORY_NOT_DIGIT: _DIGITS,
    _op.CATEGORY_NOT_SPACE: [*_SPACES, (0x1C, 0x1F), (0x85, 0x85), (0xFEFF, 0xFEFF)],  # what some languages count as blank, and others do not
    _op.CATEGORY_NOT_WORD: _WORD,
}
_NEVER: Final = [(0, 0), (0xD800, 0xDFFF)]  # NUL, and halves of pairs
_NOT_IN_JSON: Final = [(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0xD800, 0xDFFF)]  # as themselves
_SHORT: Final[Mapping[int, str]] = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 0x22: '"', 0x5C: "\\"}  # escapes of JSON
_NAMES: Final[Mapping[Any, str]] = {
    _op.ASSERT: "lookahead or lookbehind", _op.ASSERT_NOT: "lookahead or lookbehind", _op.GROUPREF: "a backreference", _op.GROUPREF_EXISTS: "a condition",
    _op.POSSESSIVE_REPEAT: "a possessive repetition", _op.ATOMIC_GROUP: "an atomic group",
}  # fmt: skip
_ESCAPE: Final = re.compile(r"\\u\{(?P<code>[0-9A-Fa-f]{1,6})\}|\\(?P<letter>[A-Za-z])|\\.|(?P<bracket>\[)", re.DOTALL)
_PIECE: Final = re.compile(
    r"\\u\{(?P<code>[0-9A-Fa-f]{1,6})\}|\\(?P<letter>[A-Za-z])|\\.|(?P<empty>\[\^?\])|\[\^?(?P<set>(?:\\.|[^\]\\])*)\]"
    r"|\(\?<(?P<named>(?=[A-Za-z_$]))|(?P<foreign>\(\?[P#]|\{,\d*\})",
    re.DOTALL,
)
_LETTERS: Final = frozenset("dDwWsSnrtfvbBxu")

Ranges = Iterable[tuple[int, int]]


class UnsupportedExpressionError(Exception):
    """An expression that has something which cannot be kept to. The text names it."""


def for_text(expression: str) -> str:
    """For texts as they are. Raises UnsupportedExpressionError; ValueError when it is no expression."""
    return _Writer(expression, in_json=False).written()


def for_json_string(expression: str) -> str:
    r"""For what stands between the quotes of a JSON string whose value matches. Characters that JSON escapes are part of it where the
    expression names them, and not where it leaves the choice (`.`, `[^x]`, `\D`). Raises as `for_text`."""
    return _Writer(expression, in_json=True).written()


class _NeedsEscapeError(Exception):
    """All that fits a part has a character that JSON escapes."""


class _Writer:
    """Where the text can do without escapes of JSON, it does (`_bare`): xgrammar then leaves them out, but not the ways that end before one. Otherwise it
    takes them as they are written."""

    def __init__(self, expression: str, *, in_json: bool):
        self._expression = expression
        self._in_json = self._bare = in_json
        self._out: Final = _NOT_IN_JSON if in_json else _NEVER

    def written(self) -> str:
        self._check_depth()
        try:
            tree = _parser.parse(_PIECE.sub(self._as_python, self._expression))
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{self._shown()} is no regular expression: {error}") from None
        if tree.state.flags & ~re.UNICODE.value:
            raise self._refused("flags")
        try:
            return self._sequence(list(tree), True, True)
        except _NeedsEscapeError:
            self._bare = False
            return self._sequence(list(tree), True, True)

    def _shown(self) -> str:
        return f"{self._expression[:200]!r}"

    def _refused(self, what: str) -> UnsupportedExpressionError:
        return UnsupportedExpressionError(f"the expression {self._shown()} has {what}, which is not supported")

    def _check_depth(self) -> None:
        depth = 0
        for sign in re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "", self._expression, flags=re.DOTALL):
            depth += (sign == "(") - (sign == ")")
            if depth > MOST_NESTED:
                raise ValueError(f"an expression has groups nested deeper than {MOST_NESTED}")

    def _as_python(self, piece: re.Match[str]) -> str:
        """Where the languages differ."""
        found = piece.groupdict()
        if found["code"]:
            return f"\\U{int(found['code'], 16):08x}"
        if found["letter"] and found["letter"] not in _LETTERS:
            raise self._refused(f"\\{found['letter']}")
        if found.get("empty") or found.get("foreign"):
            raise self._refused(piece.group())
        if found.get("bracket"):
            return "\\["
        if found.get("named") is not None:
            return "(?P<"
        if found.get("set") is not None:
            start = piece.start("set") - piece.start()
            return piece.group()[:start] + _ESCAPE.sub(self._as_python, found["set"]) + "]"
        return piece.group()

    def _sequence(self, items: list[Any], first: bool, last: bool) -> str:
        """`first`, `last`: whether nothing comes before, behind it; anchors may stand there."""
        out, begun = "", False
        for i, (kind, value) in enumerate(items):
            if kind is _op.AT:
                self._check_anchor(value, first and not begun, last and all(item == (_op.AT, _op.AT_END) for item in items[i:]))
                continue
            out += self._item(kind, value, first and not begun, last and i == len(items) - 1)
            begun = True
        return out

    def _check_anchor(self, where: Any, first: bool, last: bool) -> None:
        if where in (_op.AT_BOUNDARY, _op.AT_NON_BOUNDARY):
            raise self._refused("a word boundary")
        if not (first if where is _op.AT_BEGINNING else last):
            raise self._refused("^ or $ in the middle")

    def _item(self, kind: Any, value: Any, first: bool, last: bool) -> str:
        if kind is _op.LITERAL:
            return self._literal(value)
        if kind is _op.NOT_LITERAL:
            return self._set([(_op.NEGATE, None), (_op.LITERAL, value)])
        if kind is _op.ANY:
            return self._class(_complement(_LINE_ENDS))
        if kind is _op.IN:
            return self._set(value)
        if kind is _op.BRANCH:
            parts = self._branches(value[1], first, last)
            full = "|".join(part for part in parts if part)
            return f"(?:{full}){'' if all(parts) else '?'}" if full else ""
        if kind is _op.SUBPATTERN:
            _, added, removed, part = value
            if added or removed:
                raise self._refused("flags")
            inside = self._sequence(list(part), first, last)
            return f"(?:{inside})" if inside else ""
        if kind in (_op.MAX_REPEAT, _op.MIN_REPEAT):
            least, most, part = value
            return self._repeated(least, most, part, first, last)
        raise self._refused(_NAMES.get(kind, str(kind).lower()))

    def _branches(self, branches: list[Any], first: bool, last: bool) -> list[str]:
        parts = []
        for branch in branches:
            try:
                parts.append(self._sequence(list(branch), first, last))
            except _NeedsEscapeError:
                continue
        if not parts:
            raise _NeedsEscapeError
        return parts

    def _repeated(self, least: int, most: Any, part: Any, first: bool, last: bool) -> str:
        once = most == 1
        try:
            inside = self._sequence(list(part), first and once, last and once)
        except _NeedsEscapeError:
            if least:
                raise
            inside = ""
        if not inside or most == 0:
            return ""
        return f"(?:{inside}){{{least},{'' if most is _op.MAXREPEAT else int(most)}}}"

    def _literal(self, code: int) -> str:
        if 0xD800 <= code <= 0xDFFF:
            raise self._refused("half of a character pair")
        if self._in_json and _within(code, _NOT_IN_JSON):
            return self._escape(code)
        if code == 0:
            raise self._refused("the character NUL")
        return _sign(code)

    def _set(self, items: list[Any]) -> str:
        negated = items[0][0] is _op.NEGATE
        named: list[tuple[int, int]] = []
        classes: list[tuple[int, int]] = []
        for kind, value in items[1:] if negated else items:
            if kind is _op.LITERAL:
                named.append((value, value))
            elif kind is _op.RANGE:
                named.append(value)
            else:
                classes += _CATEGORIES[value] if value in _CATEGORIES else _complement(_NOT_CATEGORIES[value])
        if negated:
            return self._class(_complement([*named, *classes]))
        escaped = [c for c in (*range(32), 0x22, 0x5C) if self._in_json and _within(c, named)]
        if self._bare and escaped:
            kept = _complement([*_complement([*named, *classes]), *self._out])
            if not kept:
                raise _NeedsEscapeError
            return self._class(kept)
        return self._class([*named, *classes], [self._escape(c) for c in escaped])

    def _escape(self, code: int) -> str:
        if self._bare:
            raise _NeedsEscapeError
        return _escaped_in_json(code)

    def _class(self, ranges: Ranges, others: Iterable[str] = ()) -> str:
        kept = _complement([*_complement(ranges), *self._out])
        inside = "".join(_sign(low) if low == high else f"{_sign(low)}-{_sign(high)}" for low, high in kept)
        parts = [*([f"[{inside}]"] if inside else []), *others]
        if not parts:
            raise self._refused("a class that no character which may stand there is in")
        return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def _complement(ranges: Ranges) -> list[tuple[int, int]]:
    out, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            out.append((start, low - 1))
        start = max(start, high + 1)
    return [*out, (start, _TOP)] if start <= _TOP else out


def _within(code: int, ranges: Ranges) -> bool:
    return any(low <= code <= high for low, high in ranges)


def _sign(code: int) -> str:
    """One character, in a class or outside of one."""
    if 0x20 < code < 0x7F and not chr(code).isalnum() and chr(code) in r".^$*+?()[]{}|\/-":
        return "\\" + chr(code)
    return chr(code) if 0x20 <= code < 0x7F else f"\\u{{{code:X}}}"


def _escaped_in_json(code: int) -> str:
    return "\\\\" + (_sign(ord(_SHORT[code])) if code in _SHORT else f"u{code:04x}")
