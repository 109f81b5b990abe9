"""Where keywords begin and end, in any script."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.router.truth import Truth
from tests.router.routed import route, signals_of
from tests.router.signals.keyword.boundary_rows import KEYWORDS

TABLE = [
    *KEYWORDS,
    ("cafe\u0301", "a caf\u00e9 nearby", "caf\u00e9"),
    ("caf\u00e9", "a cafe\u0301 nearby", "cafe\u0301"),
    ("สวัสดี", "ผมพูดสวัสดีครับ", "สวัสดี"),
    ("ありがとう", "本当にありがとうございます", "ありがとう"),
    ("привет", "приветствую всех", None),
    ("हिन्द", "हिन्दी में लिखो", None),  # the vowel sign belongs to the word
    ("python", "python3 is here", None),
    ("python", "my_python_code", "python"),  # an underscore is a symbol
    ("STRASSE", "die Straße hinunter", "Straße"),
    ("straße", "in der STRASSE", "STRASSE"),
    ("İstanbul", "istanbul, İSTANBUL!", "İSTANBUL"),
    ("ΟΔΟΣ", "η οδός εδώ", None),
    ("ΟΔΟΣ", "η οδος εδώ", "οδος"),  # the final sigma too
    ("move semantics", "Explain C++ move semantics", "move semantics"),
    ("a+b", "is a+b here, or xa+b?", "a+b"),
    ("가", "\u1100\u1161나다", "\u1100\u1161"),  # decomposed Hangul
    ("ab", "ab\u1100 is next to a consonant", "ab"),
    ("ab", "abกข and abลาว", "ab"),
    ("cat", "cats", None),
    ("cat", "scat", None),
    ("x", "", None),
]


@pytest.mark.parametrize(("keyword", "text", "found"), TABLE)
def test_a_keyword_in_a_text(keyword: str, text: str, found: str | None) -> None:
    seen = route(signals_of("keywords", "keyword", [{"name": "k", "operator": "OR", "keywords": [keyword]}]), text)["keyword:k"]
    assert seen.truth is Truth.of(found is not None)
    if found is not None:
        (shown,) = seen.evidence["keywords"]
        assert shown["keyword"] == keyword
        assert text[shown["start"] : shown["end"]] == found


def test_case_matters_when_a_rule_says_so() -> None:
    rules = [
        {"name": "exact", "operator": "OR", "keywords": ["API"], "case_sensitive": True},
        {"name": "any", "operator": "OR", "keywords": ["API"]},
    ]
    seen = route(signals_of("keywords", "keyword", rules), "my api is slow")
    assert (seen["keyword:exact"].truth, seen["keyword:any"].truth) == (Truth.FALSE, Truth.TRUE)


LETTERS = "abAB é9発ก안-+ "


def naive(keyword: str, text: str) -> list[int]:
    """Every occurrence in a text of the letters above, by looking at each place."""

    def fold(given: str) -> str:
        return unicodedata.normalize("NFC", given).lower()

    word = re.compile(r"[a-z0-9é]")
    keyword, text = fold(keyword.strip()), fold(text)
    places = []
    for at in range(len(text) - len(keyword) + 1):
        end = at + len(keyword)
        if not keyword or text[at:end] != keyword:
            continue
        left = at > 0 and word.match(text[at - 1]) and word.match(keyword[0])
        right = end < len(text) and word.match(text[end]) and word.match(keyword[-1])
        if not left and not right:
            places.append(at)
    return places


words = st.text(LETTERS, min_size=1, max_size=4).filter(lambda word: word.strip())


@settings(deadline=None)
@given(st.lists(words, min_size=1, max_size=6), st.text(LETTERS, max_size=40))
def test_many_keywords_at_once_are_what_each_alone_is(keywords: list[str], text: str) -> None:
    rules = [{"name": f"k{at}", "operator": "OR", "keywords": [keyword]} for at, keyword in enumerate(keywords)]
    seen = route(signals_of("keywords", "keyword", rules), text)
    for at, keyword in enumerate(keywords):
        places = naive(keyword, text)
        found = seen[f"keyword:k{at}"]
        assert found.truth is Truth.of(bool(places)), (keyword, text)
        if places:
            assert found.evidence["keywords"][0]["start"] == places[0]
