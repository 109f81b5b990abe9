"""Cutting a document into overlapping pieces."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from html.parser import HTMLParser

import orjson

from headway.errors import RequestError

_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")
_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Chunking:
    """In tokens of about four bytes. An embedding model must be able to read a piece in full."""

    size: int = 200
    overlap: int = 40

    def __post_init__(self) -> None:
        if not 16 <= self.size <= 4096 or not 0 <= self.overlap <= self.size // 2:
            raise RequestError(
                f"pieces of {self.size} tokens with an overlap of {self.overlap} are not possible: expected 16 to 4096, and at most half of it",
                param="chunking_strategy",
            )


def text_of_file(name: str, content: bytes) -> str:
    """Plain text of a .txt, .md, .json, .csv or .html file. Raises RequestError for bytes that are no text of that kind."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestError(f"{name} is no UTF-8 text: byte {error.start} cannot be read", param="file") from error
    ending = name.rsplit(".", 1)[-1].lower()
    if ending in ("html", "htm"):
        parser = _Visible()
        parser.feed(text)
        parser.close()
        return parser.text
    if ending == "json":
        try:
            return "\n".join(_lines_of_json(orjson.loads(content)))
        except orjson.JSONDecodeError as error:
            raise RequestError(f"{name} is no JSON: {error}", param="file") from error
    if ending == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        return "\n".join("; ".join(f"{head}: {cell}" for head, cell in zip(rows[0], row, strict=False)) for row in rows[1:]) if len(rows) > 1 else text
    return text


def pieces(text: str, chunking: Chunking) -> list[str]:
    """Pieces of at most `size` tokens that begin and end between sentences where they can; each begins with about the last `overlap` tokens of the
    one before. Every character but blanks at the ends is in at least one piece."""
    most, shared = chunking.size * _BYTES_PER_TOKEN, chunking.overlap * _BYTES_PER_TOKEN
    sentences = [part for whole in _sentences(text) for part in _cut(whole, most - shared)]
    made: list[str] = []
    begin = 0
    while begin < len(sentences):
        end, size = begin, 0
        while end < len(sentences) and (end == begin or size + _bytes(sentences[end]) <= most):
            size += _bytes(sentences[end])
            end += 1
        piece = "".join(sentences[begin:end]).strip()
        if piece:
            made.append(piece)
        if end == len(sentences):
            break
        back, size = end, 0
        while back > begin + 1 and size + _bytes(sentences[back - 1]) <= shared:
            back -= 1
            size += _bytes(sentences[back])
        begin = back
    return made


def _sentences(text: str) -> list[str]:
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True) if start < end]


def _cut(text: str, most: int) -> list[str]:
    """Parts of at most `most` bytes, between words where there are blanks."""
    parts = []
    while _bytes(text) > most:
        place = len(text.encode()[:most].decode(errors="ignore"))
        blank = text.rfind(" ", place // 2, place)
        place = blank + 1 if blank > 0 else place
        parts.append(text[:place])
        text = text[place:]
    return [*parts, text]


def _bytes(text: str) -> int:
    return len(text.encode())


def _lines_of_json(value: object, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [line for key, item in value.items() for line in _lines_of_json(item, f"{path}.{key}" if path else str(key))]
    if isinstance(value, list):
        return [line for item in value for line in _lines_of_json(item, path)]
    return [f"{path}: {value}" if path else str(value)]


class _Visible(HTMLParser):
    """The text that a browser would show."""

    _HIDDEN = ("script", "style", "template", "noscript", "head")
    _BREAKS = ("p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "table")

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._said: list[str] = []
        self._hidden = 0

    @property
    def text(self) -> str:
        return re.sub(r"[ \t]*\n\s*", "\n", re.sub(r"[ \t]+", " ", "".join(self._said))).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in self._HIDDEN
        if tag in self._BREAKS:
            self._said.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in self._HIDDEN and self._hidden > 0
        if tag in self._BREAKS:
            self._said.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._said.append(data)
