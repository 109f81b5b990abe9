"""Single tokens as texts and bytes, and where they lie in the text of an answer."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from headway.server.engine_port import TokenizerPort


class TokenPieces:
    """A cache in front of the tokenizer, at most one entry for each token of the vocabulary."""

    def __init__(self, tokenizer: TokenizerPort):
        self._tokenizer = tokenizer
        self._special = tokenizer.special_ids
        self._known: dict[int, tuple[str, list[int]]] = {}
        self._longest: int | None = None

    def text(self, token_id: int) -> str:
        """The token's own piece of text; bytes that are no full character show as U+FFFD."""
        return self._piece(token_id)[0]

    def bytes(self, token_id: int) -> list[int]:
        return self._piece(token_id)[1]

    def is_special(self, token_id: int) -> bool:
        return token_id in self._special

    @property
    def longest(self) -> int:
        """Bytes of the longest token: a text of more than n times as many bytes has more than n tokens."""
        if self._longest is None:
            ids = range(self._tokenizer.vocab_size)
            self._longest = max((len(self._tokenizer.token_bytes(i)) for i in ids), default=1)
        return self._longest

    def _piece(self, token_id: int) -> tuple[str, list[int]]:
        known = self._known.get(token_id)
        if known is None:
            raw = self._tokenizer.token_bytes(token_id)
            known = self._known[token_id] = raw.decode("utf-8", "replace"), list(raw)
        return known


class TextOffsets:
    """Code point offsets of tokens that follow each other in one text.

    A token that continues a character begun by an earlier one has the offset of that character. Special tokens that the
    text leaves out take no room.
    """

    def __init__(self, pieces: TokenPieces, skip_special: bool, start: int = 0):
        self._pieces = pieces
        self._skip_special = skip_special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.position = start

    def next(self, token_ids: Iterable[int]) -> list[int]:
        offsets = []
        for token_id in token_ids:
            offsets.append(self.position)
            if not (self._skip_special and self._pieces.is_special(token_id)):
                self.position += len(self._decoder.decode(bytes(self._pieces.bytes(token_id))))
        return offsets
