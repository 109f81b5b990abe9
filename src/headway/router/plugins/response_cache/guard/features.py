"""What the guard reads of a text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from headway.router.plugins.response_cache.guard import words

_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|「([^」]+)」|`([^`]+)`|(?<!\w)'([^']+)'(?!\w)")
_IDENTIFIER = re.compile(r"[^\s，。？！；、：“”「」]*(?:[a-z][^\sa-z]*\d|\d[^\sa-z]*[a-z]|[a-z0-9][_@/\\#$&=+][a-z0-9]|://|[a-z]\.[a-z])[^\s，。？！；、：“”「」]*", re.I)
_SYMBOLS = re.compile(r"[+\-*/=<>%^|&$€£¥#]+")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")
_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_CHINESE_FILLER = re.compile("|".join(sorted(map(re.escape, words.CHINESE_FILLERS), key=len, reverse=True)))
_CHINESE_QUESTION = re.compile(words.CHINESE_QUESTIONS)
_SHORTEST_STEM = 5


@dataclass(frozen=True, slots=True)
class Features:
    """`content` is what is left, in order, when words that may come and go are taken out: words (a plural as its singular) and single Chinese
    characters. `names` are words with a capital letter where none is needed, in lower case."""

    script: str
    numbers: tuple[str, ...]
    identifiers: Counter[str]
    symbols: tuple[str, ...]
    negations: int
    words: frozenset[str]
    chinese: str
    names: frozenset[str]
    content: tuple[str, ...]
    language: str | None


def features(text: str) -> Features:
    text = unicodedata.normalize("NFKC", text).replace("’", "'")
    folded = text.casefold()
    found = [_plain(match[0]) for match in _WORD.finditer(_spaced(folded))]
    quoted = ["".join(part or "" for part in groups) for groups in _QUOTED.findall(folded)]
    chinese = "".join(_CHINESE.findall(folded))
    return Features(
        script=_script(folded),
        numbers=tuple(_NUMBER.findall(folded)),
        identifiers=Counter([*quoted, *(match.strip(".,;:!?()") for match in _IDENTIFIER.findall(folded))]),
        symbols=tuple(_SYMBOLS.findall(folded)),
        negations=_negations(found, chinese),
        words=frozenset(found),
        chinese=chinese,
        names=_names(text),
        content=_content(folded),
        language=_language(found),
    )


def _spaced(text: str) -> str:
    return _CHINESE.sub(lambda match: f" {match[0]} ", text)


def _plain(word: str) -> str:
    return word.replace("'", "")


def _negations(found: Sequence[str], chinese: str) -> int:
    asked = _CHINESE_QUESTION.sub("", chinese)
    return sum(word in words.NEGATIONS for word in found) + sum(asked.count(sign) for sign in words.CHINESE_NEGATIONS)


def _content(folded: str) -> tuple[str, ...]:
    """A word of order (from, to, than) counts only before something that does: `explain it to me` is `explain it`."""
    kept: list[str] = []
    order: str | None = None
    for match in _WORD.finditer(_spaced(_CHINESE_FILLER.sub(" ", folded))):
        word = _plain(match[0])
        if word in words.ORDER_WORDS:
            order = word
        elif word in words.FILLERS or word in words.DENIALS:
            order = order if word in words.ARTICLES else None
        else:
            kept += [order, _stem(word)] if order else [_stem(word)]
            order = None
    return tuple(kept)


def _stem(word: str) -> str:
    return word[:-1] if len(word) >= _SHORTEST_STEM and word.endswith("s") and not word.endswith("ss") and word.isascii() else word


def _names(text: str) -> frozenset[str]:
    found = set()
    for sentence in re.split(r"[.!?。？！\n]+", text):
        for at, match in enumerate(_WORD.finditer(sentence)):
            word = match[0]
            acronym = len(word) > 1 and word.isupper()
            if (at and word[:1].isupper() and word not in ("I", "I'm", "I've", "I'd", "I'll")) or acronym:
                found.add(_stem(_plain(word.casefold().removesuffix("'s"))))
    return frozenset(found)


def _script(text: str) -> str:
    """The script of most letters: the first word of a letter's name in Unicode (LATIN, CJK, HIRAGANA, ...)."""
    counted = Counter(unicodedata.name(letter, "").split(" ")[0] for letter in text[:4000] if letter.isalpha())
    if counted.get("HIRAGANA", 0) + counted.get("KATAKANA", 0) > 0.2 * sum(counted.values()):
        return "KANA"
    return counted.most_common(1)[0][0] if counted else ""


def _language(found: Sequence[str]) -> str | None:
    """The language whose function words stand in the text most often; None when none of them does, or two do equally often."""
    counted = sorted(((sum(word in known for word in found), code) for code, known in words.FUNCTION_WORDS.items()), reverse=True)
    (most, code), (second, _) = counted[:2]
    return code if most > second else None
