"""JsonScanner: one JSON value, read as it arrives, without waiting for its end."""

from __future__ import annotations

import json
import re
from typing import Final

MAX_DEPTH: Final = 128
_MAX_ATOM: Final = 400  # characters of a number
_BLANK: Final = " \t\r\n"
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]+')
_ATOM: Final = re.compile(r"[-+.0-9A-Za-z]")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_NUMBER_BEGUN: Final = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]*)?)?")
_WORDS: Final = ("true", "false", "null")
_HEX: Final = frozenset("0123456789abcdefABCDEF")


class JsonScanner:
    """Strict but for one thing: control characters inside strings, which models write and JSON forbids, are escaped.

    `done`: the value is complete; `broken`: no text that goes on like this is JSON. `most` characters are read at the most.
    """

    def __init__(self, most: int | None = None):
        self.done = False
        self.broken = False
        self._room = most
        self._stack: list[str] = []  # what closes each open object and list
        self._expect = "value"
        self._in_text = False
        self._is_key = False
        self._escape = ""
        self._atom = ""

    def push(self, text: str, at: int) -> tuple[int, str]:
        """Read `text` from `at` on; returns where reading stopped and the value's text so far that is new."""
        begin, end = at, len(text)
        if self._room is not None:
            end = min(end, at + self._room)
        written: list[str] = []
        while at < end and not self.done and not self.broken:
            at = self._inside(text, at, end, written) if self._in_text else self._between(text, at, end, written)
        if self._room is not None:
            self._room -= at - begin
            if self._room == 0 and not self.done:
                self.broken = True
        return at, "".join(written)

    def close(self) -> None:
        """The text is over: a number that nothing followed is complete."""
        if not self.broken and self._expect == "atom" and not self._stack and _is_atom(self._atom):
            self.done = True

    def _inside(self, text: str, at: int, end: int, written: list[str]) -> int:
        """In a string."""
        plain = None if self._escape else _PLAIN.match(text, at, end)
        if plain is not None:
            written.append(plain[0])
            return plain.end()
        c = text[at]
        if self._escape:
            self.broken = not self._escape_takes(c)
        elif c == '"':
            self._in_text = False
            if self._is_key:
                self._expect = "colon"
            else:
                self._after_value()
        elif c == "\\":
            self._escape = c
        else:
            c = json.dumps(c)[1:-1]
        if not self.broken:
            written.append(c)
        return at + (not self.broken)

    def _escape_takes(self, c: str) -> bool:
        if self._escape == "\\":
            self._escape = "u" if c == "u" else ""
            return c in '"\\/bfnrtu'
        self._escape = "" if len(self._escape) == 4 else self._escape + c
        return c in _HEX

    def _between(self, text: str, at: int, end: int, written: list[str]) -> int:
        if self._expect == "atom":
            return self._number_or_word(text, at, written)
        c = text[at]
        if c in _BLANK:
            written.append(c)
            return at + 1
        if self._expect in ("value", "item") and _ATOM.match(c):
            self._expect = "atom"
            return at
        if not self._takes(c):
            self.broken = True
            return at
        written.append(c)
        return at + 1

    def _number_or_word(self, text: str, at: int, written: list[str]) -> int:
        c = text[at]
        if _ATOM.match(c):
            atom = self._atom + c
            self.broken = len(atom) > _MAX_ATOM or not _may_be_atom(atom)
            if not self.broken:
                self._atom = atom
                written.append(c)
                at += 1
        elif _is_atom(self._atom):
            self._atom = ""
            self._after_value()
        else:
            self.broken = True
        return at

    def _takes(self, c: str) -> bool:
        """A character with a meaning of its own. Returns whether it may stand here."""
        expect = self._expect
        if c == '"' and expect in ("value", "item", "key", "name"):
            self._in_text = True
            self._is_key = expect in ("key", "name")
        elif c in "{[" and expect in ("value", "item") and len(self._stack) < MAX_DEPTH:
            self._stack.append("}" if c == "{" else "]")
            self._expect = "name" if c == "{" else "item"
        elif c == ":" and expect == "colon":
            self._expect = "value"
        elif c == "," and expect == "after":
            self._expect = "key" if self._stack[-1] == "}" else "value"
        elif c in "}]" and expect in ("after", "name", "item") and c == self._stack[-1]:
            self._stack.pop()
            self._after_value()
        else:
            return False
        return True

    def _after_value(self) -> None:
        self.done = not self._stack
        self._expect = "after"


def _is_atom(text: str) -> bool:
    return text in _WORDS or _NUMBER.fullmatch(text) is not None


def _may_be_atom(text: str) -> bool:
    return any(word.startswith(text) for word in _WORDS) or _NUMBER_BEGUN.fullmatch(text) is not None
