"""A log file as UTF-8 bytes, whatever it is packed in: gzip, xz, bzip2, UTF-16 (Windows), or standard input."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Protocol, cast

STDIN: Final = Path("-")


class Stream(Protocol):
    """Something to read bytes from."""

    def read(self, size: int, /) -> bytes: ...


class _Ahead(Stream, Protocol):
    """Bytes of which a few can be looked at before they are read."""

    def peek(self, size: int, /) -> bytes: ...


_PACKED: Final[tuple[tuple[bytes, Callable[[Path], object]], ...]] = (
    (b"\x1f\x8b", gzip.open),
    (b"\xfd7zXZ\x00", lzma.open),
    (b"BZh", bz2.open),
)
_WIDE: Final = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_PEEK: Final = 64


def names_of(paths: Sequence[Path]) -> list[str]:
    """What quotes call these files: their names, or their paths where two have one name."""
    names = [path.name for path in paths]
    return ["stdin" if path == STDIN else path.name if names.count(path.name) == 1 else str(path) for path in paths]


@contextmanager
def opened(path: Path) -> Iterator[Stream]:
    """Raises OSError, EOFError, LZMAError or zlib.error when it cannot be read; so may the stream."""
    if path == STDIN:
        yield _decoded(cast("_Ahead", sys.stdin.buffer))
        return
    with ExitStack() as stack:
        plain = stack.enter_context(path.open("rb"))
        start = plain.peek(_PEEK)
        for magic, unpack in _PACKED:
            if start.startswith(magic):
                yield _decoded(stack.enter_context(unpack(path)))  # type: ignore[arg-type]
                return
        yield _decoded(plain)


def _decoded(stream: _Ahead) -> Stream:
    """The stream as UTF-8 without a byte order mark."""
    start = stream.peek(_PEEK)[:_PEEK]
    for mark, encoding in _WIDE:
        if start.startswith(mark):
            stream.read(len(mark))
            return _Wide(stream, encoding)
    if start.startswith(codecs.BOM_UTF8):
        stream.read(len(codecs.BOM_UTF8))
    elif len(start) >= 4 and start[1::2].count(0) > len(start) / 6 and 0 not in start[0::2]:
        return _Wide(stream, "utf-16-le")  # no mark, but many a second byte is empty
    return stream


class _Wide:
    """UTF-16 read as UTF-8."""

    def __init__(self, stream: Stream, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")

    def read(self, size: int, /) -> bytes:
        """What `size` bytes of the file become, so more or fewer; empty only at the end."""
        while piece := self._stream.read(size):
            if text := self._decoder.decode(piece):
                return text.encode("utf-8", "replace")
        return self._decoder.decode(b"", final=True).encode("utf-8", "replace")
