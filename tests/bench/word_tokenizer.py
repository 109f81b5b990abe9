"""A small tokenizer for tests whose tokens merge with their neighbours, as those of real ones do."""

from __future__ import annotations

from collections.abc import Set as AbstractSet


class WordTokenizer:
    """Ids 0-9 are special, 10-99 are the words " wN", 100-104 the letters a-e and 105-109 the pairs aa, bb, ... ee.

    Any other character is taken for one of the five letters.
    """

    vocab_size = 110
    special_ids: AbstractSet[int] = frozenset(range(10))

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        ids: list[int] = []
        while text:
            if text.startswith(" w"):
                ids.append(int(text[2:4]))
                text = text[4:]
            else:
                letter = (ord(text[0]) - ord("a")) % 5
                pair = text[:2] == text[0] * 2
                ids.append(105 + letter if pair else 100 + letter)
                text = text[2 if pair else 1 :]
        return ids

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        return "".join(self._text(i) for i in ids if i >= 10)

    def _text(self, token: int) -> str:
        if token < 100:
            return f" w{token}"
        return "abcde"[token - 100] if token < 105 else "abcde"[token - 105] * 2
