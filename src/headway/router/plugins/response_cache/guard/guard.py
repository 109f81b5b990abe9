"""The guard: may the answer to one text be given to another that a model finds similar?"""

from __future__ import annotations

from difflib import SequenceMatcher

from headway.router.plugins.response_cache.guard import words
from headway.router.plugins.response_cache.guard.features import Features, features

_LONG = 5  # content words from which on a text can be reworded freely
_OVERLAP = 0.5  # of the content: texts that share more are variants of each other, and every word counts


def difference(one: str, other: str) -> str | None:
    """In what two texts differ, as a word for logs and tests: numbers, identifiers, symbols, negation, opposite, language, names, wording.
    None when the guard has no objection. Symmetric; strict, since a missed hit costs an answer and a wrong one costs trust.

    Texts that share most of their content may differ in words without weight only, and in nothing's order; texts that are worded quite
    differently are left to their similarity, if they are long enough for that to mean something.
    """
    if one == other:
        return None
    first, second = features(one), features(other)
    if first.script != second.script or (first.language and second.language and first.language != second.language):
        return "language"
    if first.numbers != second.numbers:
        return "numbers"
    if first.identifiers != second.identifiers:
        return "identifiers"
    if first.symbols != second.symbols:
        return "symbols"
    if first.negations != second.negations:
        return "negation"
    if _opposed(first, second):
        return "opposite"
    if not (first.names <= set(second.content) | second.words and second.names <= set(first.content) | first.words):
        return "names"
    return None if first.content == second.content or _reworded(first, second) else "wording"


def _opposed(first: Features, second: Features) -> bool:
    for left, right in words.OPPOSITES:
        one = left in first.words, right in first.words
        other = left in second.words, right in second.words
        if {one, other} == {(True, False), (False, True)}:
            return True
    for left, right in words.CHINESE_OPPOSITES:
        one = left in first.chinese, right in first.chinese
        other = left in second.chinese, right in second.chinese
        if {one, other} == {(True, False), (False, True)}:
            return True
    return False


def _reworded(first: Features, second: Features) -> bool:
    shorter, longer = sorted((len(first.content), len(second.content)))
    if shorter < _LONG:
        return False
    one, other = sorted((first.content, second.content))  # SequenceMatcher depends on the order of its texts
    shared = sum(block.size for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks())
    return shared / longer < _OVERLAP
