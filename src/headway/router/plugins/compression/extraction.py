"""Shortening one text by leaving out the parts that matter least."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

BYTES_PER_TOKEN = 4
_CHUNK_TOKENS = 48
_MOST_CHUNKS = 512
_BREAK = re.compile(r"\n|(?<=[.!?])\s+|(?<=[。！？])")
_LEFT_OUT = "[... {count} parts left out ...]"


def token_estimate(text: str) -> int:
    """A quarter of the UTF-8 bytes, rounded up: on the safe side for one long line, for minified code, Chinese and emoji."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def chunks_of(text: str) -> list[str]:
    """Consecutive parts that together are the text: lines and sentences, joined up to about 48 tokens and cut where they are much longer; at most
    512 of them."""
    size = max(_CHUNK_TOKENS, -(-token_estimate(text) // _MOST_CHUNKS) * 2)
    parts: list[str] = []
    for piece in _pieces(text):
        for start in range(0, len(piece), size * BYTES_PER_TOKEN):
            part = piece[start : start + size * BYTES_PER_TOKEN]
            if parts and token_estimate(parts[-1]) + token_estimate(part) <= size:
                parts[-1] += part
            else:
                parts.append(part)
    return parts


@dataclass(frozen=True, slots=True)
class Extract:
    """`omitted` parts of the text are not in it."""

    text: str
    omitted: int


def extract(chunks: Sequence[str], scores: Sequence[float], target: int) -> Extract:
    """The first and the last chunk, then those with the highest scores until `target` tokens, in their own order; a mark stands where some are
    missing. The first and last alone may be more than the target: then the text stays as it is (`omitted` 0) unless that is shorter still."""
    if len(chunks) <= 2:
        return Extract("".join(chunks), 0)
    kept = {0, len(chunks) - 1}
    used = sum(token_estimate(chunks[at]) for at in kept) + 2 * token_estimate(_LEFT_OUT)
    for at in sorted(range(1, len(chunks) - 1), key=lambda at: (-scores[at], at)):
        size = token_estimate(chunks[at])
        if used + size <= target:
            kept.add(at)
            used += size
    text = _with_marks(chunks, kept)
    whole = "".join(chunks)
    if token_estimate(text) >= token_estimate(whole):
        return Extract(whole, 0)
    return Extract(text, len(chunks) - len(kept))


def middle_cut(text: str, target: int) -> str:
    """The beginning and the end of a text, together about `target` tokens."""
    room = max(0, target * BYTES_PER_TOKEN - len(_LEFT_OUT))
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= target * BYTES_PER_TOKEN:
        return text
    head, tail = data[: room * 2 // 3].decode(errors="ignore"), data[len(data) - room // 3 :].decode(errors="ignore")
    return f"{head}\n[... the middle was left out ...]\n{tail}"


def _pieces(text: str) -> list[str]:
    ends = [match.end() for match in _BREAK.finditer(text)]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True) if start < end]


def _with_marks(chunks: Sequence[str], kept: set[int]) -> str:
    said: list[str] = []
    missing = 0
    for at, chunk in enumerate(chunks):
        if at not in kept:
            missing += 1
            continue
        if missing:
            said.append(f"\n{_LEFT_OUT.format(count=missing)}\n")
            missing = 0
        said.append(chunk)
    return "".join(said)
