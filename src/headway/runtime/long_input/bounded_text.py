"""Reading as much of a text as decides the answer: the tokens of a beginning, exactly as in the whole text.

A text of 10 MB over a limit of 512 tokens need not be tokenized. The tokens of a beginning equal those of the whole text up
to some place before the cut; how near to it depends on the tokenizer, so each way to choose that place is tried on
texts first, and a way that fails on one of them is not used.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.artifacts.tokenizer import Tokenizer
from headway.errors import RequestError

CHARS_PER_TOKEN: Final = 6  # of the first try: more than most texts need
FIRST_CHARS: Final = 1024
_WORD_MARGIN: Final = 16  # code points before the cut that a following character may still change
_RUN_MARGIN: Final = 1024  # the same within a run without a break
_SEARCH: Final = 1024  # how far back a break is looked for
_LONG_TEXT: Final = 8192  # from here on the tokenizer runs without Python's lock

Offset = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Content:
    """Tokens of a text without special ones. `offsets` are code points [start, end) of the text, empty when not asked
    for. Not `complete`: the text goes on, and has more tokens than these."""

    ids: Sequence[int]
    offsets: Sequence[Offset] = ()
    complete: bool = True


class BoundedText:
    """One tokenizer, read within bounds. Safe to use from several threads."""

    def __init__(self, tokenizer: Tokenizer):
        self._backend = tokenizer.backend
        longest = max((len(t.content) for t in self._backend.get_added_tokens_decoder().values()), default=0)
        self._margin = max(_WORD_MARGIN, longest)
        self._breaks = self._exact_breaks()

    def read(self, text: str, need: int, offsets: bool = False) -> Content:
        """All tokens of `text`, or the first ones, at least `need` of them, if that spares reading the whole text.

        Raises RequestError for text that is not valid Unicode.
        """
        size = need * CHARS_PER_TOKEN + FIRST_CHARS
        while size < len(text) and self._breaks:
            found = self._beginning(text, size)
            if found is not None and len(found.ids) >= need:
                return found
            size *= 2
        return self._whole(text, offsets)

    def read_all(self, texts: Sequence[str], need: int) -> list[Content]:
        """`read` of each text, without offsets; short texts are tokenized together."""
        short = [i for i, text in enumerate(texts) if len(text) <= need * CHARS_PER_TOKEN + FIRST_CHARS]
        done: dict[int, Content] = {}
        if len(short) > 1:
            encodings = _checked(lambda: self._backend.encode_batch_fast([texts[i] for i in short], add_special_tokens=False))
            done = {i: Content(encoding.ids) for i, encoding in zip(short, encodings, strict=True)}
        return [done[i] if i in done else self.read(text, need) for i, text in enumerate(texts)]

    def _whole(self, text: str, offsets: bool) -> Content:
        encoding = self._encode(text, offsets)
        return Content(encoding.ids, encoding.offsets if offsets else ())

    def _encode(self, text: str, offsets: bool) -> Any:
        if len(text) <= _LONG_TEXT:
            return _checked(lambda: self._backend.encode(text, add_special_tokens=False))
        batch = self._backend.encode_batch if offsets else self._backend.encode_batch_fast
        return _checked(lambda: batch([text], add_special_tokens=False))[0]

    def _beginning(self, text: str, size: int) -> Content | None:
        for find in self._breaks:
            found = self._up_to_break(text, size, find)
            if found is not None:
                return found
        return None

    def _up_to_break(self, text: str, size: int, find: Break) -> Content | None:
        """The tokens of text[:size] that end at or before a break of that kind; None when there is no such break."""
        size = _between_letters(text, size)
        end = find(text, size, self._margin)
        if end is None:
            return None
        encoding = self._encode(text[:size], offsets=True)
        kept = _ending_before(encoding.offsets, end)
        return Content(encoding.ids[:kept], encoding.offsets[:kept], complete=False)

    def _exact_breaks(self) -> tuple[Break, ...]:
        """The ways to find a place that this tokenizer respects in all probe texts."""
        exact: list[Break] = [whitespace_break, symbol_break, run_break]
        for text in probe_texts():
            whole = self._encode(text, offsets=True)
            for place in range(len(text) // 2, len(text), len(text) // 8):
                size = _between_letters(text, place)
                part = self._encode(text[:size], offsets=True)
                for find in tuple(exact):
                    end = find(text, size, self._margin)
                    kept = 0 if end is None else _ending_before(part.offsets, end)
                    if part.ids[:kept] != whole.ids[:kept] or part.offsets[:kept] != whole.offsets[:kept]:
                        exact.remove(find)
        return tuple(exact)


def _ending_before(offsets: Sequence[Offset], end: int) -> int:
    """How many tokens end at or before `end`."""
    return next((number for number, (_, stop) in enumerate(offsets) if stop > end), len(offsets))


Break = Callable[[str, int, int], int | None]
"""text, cut, margin -> a place at or before cut - margin where the tokens of text[:cut] are final, or None."""

_SPACE: Final = re.compile(r"\s+")


def whitespace_break(text: str, cut: int, margin: int) -> int | None:
    """The start of the last run of white space that begins before cut - margin."""
    first = max(0, cut - margin - _SEARCH)
    starts = [found.start() for found in _SPACE.finditer(text, first, cut - margin)]
    # A run that begins where the search does may have begun before it.
    return next((start for start in reversed(starts) if start > first), None)


def symbol_break(text: str, cut: int, margin: int) -> int | None:
    """After the last punctuation mark, symbol or CJK character before cut - margin."""
    for place in range(cut - margin - 1, max(0, cut - margin - _SEARCH), -1):
        if unicodedata.category(text[place])[0] in "PS" or "\u4e00" <= text[place] <= "\u9fff":
            return place + 1
    return None


def run_break(text: str, cut: int, margin: int) -> int | None:
    """Far before the cut, whatever stands there."""
    end = cut - max(margin, _RUN_MARGIN)
    return end if end > 0 else None


def _between_letters(text: str, cut: int) -> int:
    """The nearest place at or before `cut` at which no normalization joins the neighbours."""
    while cut > 1 and not _apart(text[cut - 1], text[cut]):
        cut -= 1
    return cut


def _apart(left: str, right: str) -> bool:
    normal = unicodedata.normalize("NFKC", left) + unicodedata.normalize("NFKC", right)
    return unicodedata.combining(right) == 0 and unicodedata.normalize("NFKC", left + right) == normal


def probe_texts() -> list[str]:
    """Texts of every kind that the ways to break are tried on, the same ones always."""
    chance = random.Random(5)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(chance.choices(letters, k=chance.randint(1, 12))) for _ in range(60)]
    english = " ".join(chance.choices(["the", "of", "ing", "don't", "re-read,", "U.S.", "(see", "e.g.)", *words], k=400))
    run = "".join(chance.choices(letters + "0123456789", k=2600))
    digits = "".join(chance.choices("0123456789", k=2600))  # some tokenizers group them from the right
    chinese = "".join(chance.choices("的一是不了人我在有他这中大来上国，。、", k=2600))
    emoji = "".join(chance.choices(["🙂", "👩‍👩‍👧", "é", "é", "ا", "ب", "-", "!?", "7"], k=1400))
    spaced = "".join(chance.choices(["a", " ", "  ", "\n", "\r\n", "\t", "word", "...", "\u3000"], k=1400))
    return [english, run, digits, "a" * 2600, chinese, emoji, spaced]


def _checked(encode: Callable[[], Any]) -> Any:
    try:
        return encode()
    except TypeError:
        raise RequestError("The text holds a lone surrogate, which is no character; it cannot be encoded",
                           fix="Send valid Unicode: surrogates only in pairs.") from None  # fmt: skip
