"""Secrets taken out of text, in time that grows with its length, whatever the text is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from headway.telemetry.secret_forms import FORMS, KEY, KEY_KINDS, MODEL_WORDS, PLAIN, WORD, SecretForm

_AHEAD: Final = 48  # characters before a hint that are looked at
_ITEM: Final = re.compile(r"[^\s\"'\[\](),]+")
_PLAIN: Final = re.compile(PLAIN, re.IGNORECASE)
_MODEL_ENDS: Final = tuple(word + end for word in MODEL_WORDS for end in "_ ")
_MODEL_TOKEN: Final = re.compile(rf"(?<![a-z])(?:{'|'.join(MODEL_WORDS)})[_ ]\Z", re.IGNORECASE)
_SECRET_NAME: Final = re.compile(rf"(?i)^(?:.*[^a-z0-9])?(?:{KEY_KINDS}{KEY}|{WORD}|authorization|cookie)$")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def without_secrets(text: str, mark: str) -> str:
    """`text` with `mark` in the place of every value that stands as a key, token or password does."""
    small = text.replace("\u0130", "i").lower()  # the one letter that is two when it is small
    spans = sorted(span for form in FORMS if not form.beside or form.beside in small for span in _spans(form, text, small))
    if not spans:
        return text
    pieces: list[str] = []
    end = 0
    for start, stop in spans:
        if start >= end:
            pieces += (text[end:start], mark)
        end = max(end, stop)
    return "".join((*pieces, text[end:]))


def _spans(form: SecretForm, text: str, small: str) -> Iterator[tuple[int, int]]:
    opening, secret = _compiled(form.opening, form.exact), _compiled(form.secret, form.exact)
    for hint in form.hints:
        at, after = small.find(hint), 0
        while at >= 0:
            if at >= after and (opened := opening.match(text, at)) and _fits(form, text, small, at) and (found := secret.match(text, opened.end())):
                after = found.end()
                yield from _values(text, found)
            at = small.find(hint, at + 1)


def _fits(form: SecretForm, text: str, small: str, at: int) -> bool:
    """Whether the right words stand before."""
    start = max(0, at - _AHEAD)
    if form.before and not _compiled(f"(?:{form.before})\\Z", form.exact).search(text[start:at]):
        return False
    return not (small.startswith("token", at) and small.endswith(_MODEL_ENDS, start, at) and _MODEL_TOKEN.search(text[start:at]))


def _values(text: str, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    group = found.lastgroup or 0
    start, stop = found.span(group)
    value = text[start:stop]
    if _PLAIN.fullmatch(value.strip()):
        return
    if group == "items":
        yield from (item.span() for item in _ITEM.finditer(text, start, stop) if not _PLAIN.fullmatch(item[0]))
    else:
        yield start + len(value) - len(value.lstrip()), stop - (len(value) - len(value.rstrip()))


@cache
def _compiled(pattern: str, exact: bool) -> re.Pattern[str]:
    """When the first hint of its form is met."""
    return re.compile(pattern, 0 if exact else re.IGNORECASE)


def names_a_secret(name: str) -> bool:
    """Whether the value behind this name (of a variable, a member, a header) is a secret."""
    name = _CAMEL.sub("_", name)
    return bool(_SECRET_NAME.match(name)) and not _MODEL_TOKEN.search(name.lower().removesuffix("token"))
