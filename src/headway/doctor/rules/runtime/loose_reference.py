"""A name that a refused configuration uses and nobody declares, in whatever words it is told.

Programs word this in many ways. Common to all: a phrase that says that something is not there, the name in quotes or behind
the word for its kind, and often the list of the names that are there.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Final

from headway.doctor.evidence.sight import sight

REFUSED: Final = sight(
    "configuration refused",
    "CONFIG_VALIDATION_ERROR",
    "invalid configuration",
    "config is invalid",
    "modelRefs",
    "modelCards",
    pattern=r"configuration refused|CONFIG_VALIDATION_ERROR|invalid configuration|config is invalid|modelRefs|modelCards",
)
LISTED: Final = re.compile(
    r"(?:(?<!not )(?<!never )\b(?:declared|known|available|defined|existing)(?: [a-z]+){0,2}|\b(?:models|model cards|cards|deployments|entries|signals|decisions|recipes|aliases|names))"
    r"(?: are|:| ?=) ?\[?(?P<list>[\w./:@\-'\"`]+(?:, ?[\w./:@\-'\"`]+)*)\]?"
)
_KIND: Final = r"(?P<kind>model card|model|card|deployment|signal|recipe|alias|decision|entrypoint|backend)"
_ABSENT: Final = re.compile(
    r"\bnot (?:an? )?(?:declared|defined|found|known|listed|among)|\bundeclared\b|\bundefined\b|\bunknown (?!field|key|option|propert|param|member)|\bdoes not exist|\bno such\b"
    r"|\bno (?:entry|card|model card|model|deployment|signal|recipe)s? (?:for|named|called|declares|defines|with|is)|\bis missing from\b|[Dd]id you mean"
)
_TOKEN: Final = re.compile(
    r"[\"'`](?P<quoted>[A-Za-z0-9][\w./:@\-]{0,120})[\"'`]"
    r"|\b(?:model card|model|card|deployment|alias|recipe|signal)s?(?: reference)?(?: not (?:found|declared))?:? (?P<bare>(?=\S*[\d\-_/:.])[A-Za-z0-9][\w./:@\-]{0,120}\w)"
)
_KIND_BEFORE: Final = re.compile(_KIND + r"s?\b(?![\w\[.])")


@dataclass(frozen=True, slots=True)
class LooseReference:
    """`name` is used and not declared; `kind`: model | card | ..., "name" when it is not told; `known`: the names that the text lists as declared."""

    name: str
    kind: str
    known: tuple[str, ...]


def listed_names(text: str) -> tuple[str, ...]:
    """Of the last list of declared names in a text, () when there is none."""
    found = list(LISTED.finditer(text))
    return tuple(part.strip(" '\"`") for part in found[-1]["list"].split(",")) if found else ()


def loose_reference(text: str) -> LooseReference | None:
    """The name that is most like a listed one, else the one next to the phrase; None when the text tells of nothing absent."""
    absent = _ABSENT.search(text)
    if absent is None:
        return None
    known = listed_names(text)
    end = list(LISTED.finditer(text))[-1].start("list") if known else len(text)
    tokens = [(m["quoted"] or m["bare"], m.start(m.lastgroup or 0)) for m in _TOKEN.finditer(text) if m.start() < end]
    tokens = [(name, at) for name, at in tokens if name not in known and not re.match(r"(?:routing|global|providers|recipes|listeners)[.\[]", name)]
    if not tokens:
        return None
    name, at = min(tokens, key=lambda token: (-_likeness(token[0], known), abs(token[1] - absent.start())))
    before = [found["kind"] for found in _KIND_BEFORE.finditer(text, max(0, at - 40), at + 1)]
    return LooseReference(name.rstrip("."), before[-1] if before else _kind_in(text), known)


def _likeness(name: str, known: tuple[str, ...]) -> float:
    """0 to 1, in steps, so that names about equally like leave the choice to their place."""
    return round(max((difflib.SequenceMatcher(None, name.lower(), each.lower()).ratio() for each in known), default=0.0), 1)


def _kind_in(text: str) -> str:
    found = _KIND_BEFORE.search(text)
    return found["kind"] if found else "name"
