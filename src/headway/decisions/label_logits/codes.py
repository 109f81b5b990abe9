"""The labels of a model: short codes that are one token each, right where the reply begins; or first tokens of names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from string import ascii_lowercase, ascii_uppercase
from typing import Final

MOST_CODES: Final = 255
Encode = Callable[[str], Sequence[int]]
"""Text -> ids, with the reply's surroundings."""


@dataclass(frozen=True, slots=True)
class Code:
    """What stands for an option in the prompt, and the token that says so in the reply."""

    text: str
    token_id: int


def option_codes(encode: Encode, before: str, lead: str) -> tuple[Code, ...]:
    """A, B, ... Z, then pairs of capitals, then small letters, then numbers, as far as the vocabulary has them."""
    return _one_token_each(encode, before, lead, _candidates(), MOST_CODES)


def digit_codes(encode: Encode, before: str, lead: str) -> tuple[Code, ...]:
    """0 to 9, or fewer."""
    return _one_token_each(encode, before, lead, (str(i) for i in range(10)), 10)


def word_codes(encode: Encode, before: str, lead: str, words: Sequence[str]) -> tuple[Code, ...]:
    """Those of `words` that are one token."""
    return _one_token_each(encode, before, lead, iter(words), len(words))


def first_tokens(encode: Encode, before: str, lead: str, texts: Sequence[str]) -> tuple[Code, ...] | None:
    """The first token of each text as a reply; None when two texts begin alike, or one changes how `before` is tokenized."""
    start = list(encode(before))
    found: dict[int, str] = {}
    for text in texts:
        ids = list(encode(before + lead + text))
        if len(ids) <= len(start) or ids[: len(start)] != start or ids[len(start)] in found:
            return None
        found[ids[len(start)]] = text
    return tuple(Code(text, token_id) for token_id, text in found.items())


def _candidates() -> Iterator[str]:
    yield from ascii_uppercase
    yield from ("".join(pair) for pair in product(ascii_uppercase, repeat=2))
    yield from ascii_lowercase
    yield from ("".join(pair) for pair in product(ascii_lowercase, repeat=2))
    yield from map(str, range(1000))


def _one_token_each(encode: Encode, before: str, lead: str, candidates: Iterator[str], most: int) -> tuple[Code, ...]:
    """`before` is how the prompt ends and `lead` what comes between it and the code. A code counts when its text adds exactly
    one token there, a different one from those of the codes before it."""
    start = list(encode(before))
    found: list[Code] = []
    taken: set[int] = set()
    for text in candidates:
        ids = list(encode(before + lead + text))
        if len(ids) == len(start) + 1 and ids[:-1] == start and ids[-1] not in taken:
            taken.add(ids[-1])
            found.append(Code(text, ids[-1]))
            if len(found) == most:
                break
    return tuple(found)
