"""Long lines that a container runtime cut into several, put together again.

The CRI log format marks a part that is not the last one with P, and the last one with F; Docker's json-file driver cuts at
16 KiB and leaves the line feed out of all parts but the last. Parts of stdout and stderr may stand between each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_CRI: Final = re.compile(r"\d{4}-\S+ (?P<stream>stdout|stderr) (?P<tag>[PF]) ?")
_CRI_PARTS: Final = ("stdout P ", "stderr P ")
_DOCKER: Final = '{"log":"'
_DOCKER_END: Final = '","stream":"'
_DOCKER_CUTS_AT: Final = 16_000  # bytes of a part; what is shorter ended without a line feed for another reason
_PARTS_AT_MOST: Final = 256
_HELD_AT_MOST: Final = 1024


@dataclass(frozen=True, slots=True)
class Rejoined:
    """`raws`: the lines of `text`, with the parts of a line in the place of its first one, and "" in the places of the others.
    `parts`: index of the first part -> (index, raw line) of each. `held`: so many lines at the end wait for a last part."""

    text: str
    raws: list[str]
    parts: Mapping[int, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    held: int = 0


def rejoined(text: str, raws: list[str]) -> Rejoined:
    """`raws` are the lines of `text`. Lines without parts are returned as they are."""
    if not any(sign in text for sign in _CRI_PARTS) and not (_DOCKER in text and any(_is_docker_part(raw) for raw in raws)):
        return Rejoined(text, raws)
    whole = list(raws)
    parts: dict[int, list[int]] = {}
    unfinished: dict[str, int] = {}  # stream -> index of its first part
    for index, raw in enumerate(raws):
        stream, is_part = _stream_of(raw)
        first = unfinished.get(stream)
        if first is not None:
            parts[first].append(index)
            whole[first], whole[index] = _joined(whole[first], raw), ""
            if not is_part or len(parts[first]) >= _PARTS_AT_MOST:
                del unfinished[stream]
        elif is_part:
            unfinished[stream], parts[index] = index, [index]
    held = len(raws) - min(unfinished.values()) if unfinished else 0
    if 0 < held <= _HELD_AT_MOST:
        rest = rejoined("\n".join((*raws[:-held], "")), raws[:-held])
        return Rejoined(rest.text, rest.raws, rest.parts, held + rest.held)
    return Rejoined("\n".join((*whole, "")), whole, {first: tuple((index, raws[index]) for index in indices) for first, indices in parts.items()})


def _stream_of(raw: str) -> tuple[str, bool]:
    """Which stream a line belongs to ("" when no runtime wrote it), and whether its rest follows."""
    if found := _CRI.match(raw):
        return found["stream"], found["tag"] == "P"
    if raw.startswith(_DOCKER) and (end := raw.rfind(_DOCKER_END)) > 0:
        return raw[end + len(_DOCKER_END) :].partition('"')[0], _is_docker_part(raw)
    return "", False


def _is_docker_part(raw: str) -> bool:
    return len(raw) > _DOCKER_CUTS_AT and raw.startswith(_DOCKER) and (end := raw.rfind(_DOCKER_END)) > 0 and not raw.endswith("\\n", 0, end)


def _joined(before: str, part: str) -> str:
    if found := _CRI.match(part):
        return before + part[found.end() :]
    return before[: before.rfind(_DOCKER_END)] + part[len(_DOCKER) :]


def numbered(parts: Sequence[tuple[int, str]], first: int) -> tuple[tuple[int, str], ...]:
    """Indices as line numbers, `first` being that of index 0."""
    return tuple((first + index, raw) for index, raw in parts)
