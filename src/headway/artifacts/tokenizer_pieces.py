"""The exact bytes that a token adds to running text, worked out from the decoder of a `tokenizers` tokenizer.

Two families of tokenizers spell bytes: byte-level BPE (every byte is one letter of an alphabet of 256) and
SentencePiece style (a word start is U+2581, bytes outside the vocabulary are tokens `<0xAB>`). For them the text of a
sequence is the concatenation of its pieces, decoded as UTF-8; only the start of a text is special, where the decoder
drops a leading space. Other decoders (WordPiece, suffix BPE, CTC) put spaces between tokens and have no exact pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tokenizers import Tokenizer as Backend

_BYTE_TOKEN: Final = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_alphabet() -> dict[str, int]:
    """Letter -> byte of byte-level BPE (GPT-2): printable Latin-1 stands for itself, the rest follows from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_ALPHABET: Final = byte_alphabet()


@dataclass(frozen=True, slots=True)
class ByteDecoder:
    """A decoder as a function of one token.

    `dropped_in_first` vanishes from the first token of a text; `strip_count` copies of `strip` are then removed from
    the very start of the text. Both are empty for decoders that treat all tokens alike.
    """

    byte_level: bool = False
    replaced: tuple[tuple[str, str], ...] = ()
    byte_fallback: bool = False
    dropped_in_first: str = ""
    strip: bytes = b""
    strip_count: int = 0

    def piece(self, token: str, *, first: bool = False) -> bytes:
        """Bytes of `token` in running text, or as the first token of a text (before `strip`)."""
        if self.byte_level:
            try:
                return bytes([_ALPHABET[letter] for letter in token])
            except KeyError:  # an added token, spelled as itself
                return token.encode()
        if first and self.dropped_in_first:
            token = token.replace(self.dropped_in_first, "")
        for old, new in self.replaced:
            token = token.replace(old, new)
        if self.byte_fallback and (spelled := _BYTE_TOKEN.fullmatch(token)):
            return bytes([int(spelled[1], 16)])
        return token.encode()


def byte_decoder(backend: Backend) -> ByteDecoder | None:
    """The decoder of `backend` as a ByteDecoder; None when tokens have no exact bytes of their own."""
    if backend.decoder is None:
        return None
    state = json.loads(backend.decoder.__getstate__())
    steps = state["decoders"] if state["type"] == "Sequence" else [state]
    built = ByteDecoder()
    fused = False
    for step in steps:
        if step["type"] == "Fuse":
            fused = True
            continue
        after = _with_step(built, step, fused)
        if after is None:
            return None
        built = after
    return None if built == ByteDecoder() else built


def _with_step(built: ByteDecoder, step: Mapping[str, Any], fused: bool) -> ByteDecoder | None:
    """`built` followed by one more step, or None when the two together are no function of single tokens."""
    kind = step["type"]
    if kind == "Strip":
        if not fused or built.byte_level or built.strip or step["stop"]:
            return None
        return replace(built, strip=step["content"].encode(), strip_count=step["start"])
    if fused or built.byte_level or built.byte_fallback:
        return None
    if kind == "ByteLevel":
        return None if built.replaced else replace(built, byte_level=True)
    if kind == "ByteFallback":
        return replace(built, byte_fallback=True)
    if kind == "Replace":
        old = step["pattern"].get("String")
        return None if not old else replace(built, replaced=(*built.replaced, (old, step["content"])))
    if kind == "Metaspace":
        if built.replaced:
            return None
        mark = step["replacement"]
        dropped = "" if step["prepend_scheme"] == "never" else mark
        return replace(built, replaced=((mark, " "),), dropped_in_first=dropped)
    return None


class TextStart:
    """Turns the first tokens of a text into bytes, dropping what the decoder drops there. One per sequence."""

    __slots__ = ("_decoder", "_first", "_to_strip")

    def __init__(self, decoder: ByteDecoder):
        self._decoder = decoder
        self._first = bool(decoder.dropped_in_first)
        self._to_strip = decoder.strip_count

    @property
    def settled(self) -> bool:
        """True when every further token is simply its running piece."""
        return not self._first and not self._to_strip

    def piece(self, token: str) -> bytes:
        out = self._decoder.piece(token, first=self._first)
        self._first = False
        while self._to_strip and out:
            if not out.startswith(self._decoder.strip):
                self._to_strip = 0
                break
            out = out[len(self._decoder.strip) :]
            self._to_strip -= 1
        return out
