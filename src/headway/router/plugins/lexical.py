"""Words of a text for ranking: of any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+|[^\W_]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_WEIGHTLESS = frozenset(
    """a an and are as at be by can could do does for from have how i in is it me my of on or please that the this to was what when where which who
    why will with would you your""".split()  # noqa: SIM905
)


def words(text: str) -> list[str]:
    """In lower case, without words that every text has; a run of Chinese, Japanese or Korean letters as its overlapping pairs."""
    found: list[str] = []
    for match in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _WIDE.match(match):
            found += [match[at : at + 2] for at in range(max(1, len(match) - 1))]
        elif match not in _WEIGHTLESS:
            found.append(match)
    return found


def bm25_scores(query: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """One number per text, 0 and up (bm25s: Lucene's form of BM25)."""
    asked = words(query)
    corpus = [words(text) for text in texts]
    if not asked or not any(corpus):
        return np.zeros(len(texts), np.float32)
    import bm25s

    ranker = bm25s.BM25()
    ranker.index(corpus, show_progress=False)
    known = [word for word in dict.fromkeys(asked) if word in ranker.vocab_dict]
    return np.asarray(ranker.get_scores(known), np.float32) if known else np.zeros(len(texts), np.float32)
