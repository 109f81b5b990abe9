"""Text units: what stands for words in any script."""

from __future__ import annotations

import re
from collections.abc import Sequence

_IDEOGRAPHS = "\u3040-\u30ff\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
_UNIT = re.compile(rf"[{_IDEOGRAPHS}]|(?:(?![{_IDEOGRAPHS}])[^\W_])+")
_ASCII_UNIT = re.compile(r"[A-Za-z0-9]+")


def text_units(text: str) -> list[str]:
    """Each ideograph, kana or Hangul syllable is a unit, each run of other letters and digits is one; punctuation is none."""
    return (_ASCII_UNIT if text.isascii() else _UNIT).findall(text)


def different_phrases(units: Sequence[str], length: int, most: int) -> list[str]:
    """The first `most` different runs of `length` units, in their order."""
    found: dict[str, None] = {}
    for at in range(len(units) - length + 1):
        found[" ".join(units[at : at + length])] = None
        if len(found) == most:
            break
    return list(found)
