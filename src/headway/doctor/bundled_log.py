"""A log as it may be given away: its beginning and its end, without the users' words unless they are wanted, masked."""

from __future__ import annotations

import re
import zlib
from lzma import LZMAError
from pathlib import Path
from typing import Final

from headway.doctor.evidence.log.dress import undress
from headway.doctor.evidence.log.opening import STDIN, Stream, opened
from headway.doctor.evidence.log.request_text import CUT, opens_request_text, without_request_text
from headway.doctor.evidence.masking import mask
from headway.errors import DoctorError

HEAD_BYTES: Final = 2 << 20
TAIL_BYTES: Final = 18 << 20
_PIECE: Final = 1 << 20
# token ids are the words in another writing
_IDS: Final = re.compile(r"(\b(?:\w*token_ids|input_ids|prompt|input)\\?[\"']?\s?[:=]\s?)\[[\d,\s]*+\]?")


def bundled_log(path: Path, request_text: bool, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> str:
    """Raises DoctorError (`log_unreadable`)."""
    if path == STDIN:
        raise DoctorError("standard input is read once only", reason="log_unreadable", fix="Write the log into a file and give its path.")
    try:
        with opened(path) as stream:
            text = _both_ends(stream, head_bytes, tail_bytes)
    except (OSError, EOFError, LZMAError, zlib.error) as error:
        raise DoctorError(f"the log {path} cannot be read: {error}", reason="log_unreadable", fix="Give the path of a text file.") from error
    return mask(text if request_text else without_users_words(text))


def _both_ends(stream: Stream, head_bytes: int, tail_bytes: int) -> str:
    """All of it, or whole lines of its beginning and its end when it is large."""
    head, tail, nbytes = bytearray(), bytearray(), 0
    while piece := stream.read(_PIECE):
        nbytes += len(piece)
        room = head_bytes - len(head)
        head += piece[:room]
        tail += piece[room:]
        if len(tail) > 2 * tail_bytes:
            del tail[:-tail_bytes]
    if nbytes == len(head) + len(tail) and len(tail) <= tail_bytes:
        return (head + tail).decode("utf-8", "replace")
    tail = tail[-tail_bytes:]
    head, tail = head[: head.rfind(b"\n") + 1], tail[tail.find(b"\n") + 1 :]
    return head.decode("utf-8", "replace") + f"[... {nbytes - len(head) - len(tail)} bytes left out ...]\n" + tail.decode("utf-8", "replace")


def without_users_words(text: str) -> str:
    """Prompts and answers taken out. Words that go over several lines end where a logger or a traceback begins; rather a line
    too many is taken out than one too few."""
    kept: list[str] = []
    inside = False
    for raw in text.split("\n"):
        inside = inside and not _begins(raw)
        if inside:
            kept.append(CUT if raw.strip() else raw)
            continue
        inside = opens_request_text(undress("", 0, raw).text) or opens_request_text(raw)
        kept.append(_IDS.sub(rf"\1[{CUT}]", without_request_text(raw)))
    return "\n".join(kept)


def _begins(raw: str) -> bool:
    line = undress("", 0, raw)
    return line.starts_a_record or line.text.startswith("Traceback (most recent call last)")
