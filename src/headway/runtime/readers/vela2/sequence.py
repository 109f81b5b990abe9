"""The one sequence that a Vela 2.0 encoder reads: questions, labels, parts, with markers put in as token ids.

`<bos> ([Q] question ([O] option)* [ABS]?)* ([E] label)* [SEP_SCHEMA] ([SEG_role] part)* <eos>`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.runtime.readers.unpublished import not_of_the_format
from headway.runtime.readers.vela2.parts import PartTokens
from headway.runtime.readers.vela2.questions import VelaQuestion
from headway.runtime.readers.vela2.state import Role
from headway.runtime.row import Row

MARKERS: Final = ("[Q]", "[O]", "[ABS]", "[SEP_SCHEMA]", "[SEG_user]", "[SEG_answer]", "[E]", "[SEG_context]")
READOUT: Final = "markers"
_ENVELOPE: Final = 3  # bos, [SEP_SCHEMA], eos


@dataclass(frozen=True, slots=True)
class Asked:
    """Where one question stands: its [Q], its options, and the tokens [start, end) of the parts that it reads."""

    query: int
    options: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Marks:
    """`Row.detail`: what is read of the hidden states. `labels` are the [E], `words` the first tokens of words."""

    asked: tuple[Asked, ...]
    labels: tuple[int, ...] = ()
    words: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaTokens:
    """One question as tokens: its text (empty for spans), its options or labels."""

    question: VelaQuestion
    text: tuple[int, ...]
    options: tuple[tuple[int, ...], ...]

    @property
    def length(self) -> int:
        """Tokens in the sequence, markers included."""
        own = sum(1 + len(option) for option in self.options)
        return own if self.question.kind == "span" else own + 1 + len(self.text) + self.question.abstain


@dataclass(frozen=True, slots=True)
class SequenceForm:
    """Special tokens and markers by id, from config.json."""

    bos: int
    eos: int
    markers: Mapping[str, int]

    def overhead(self, parts: int) -> int:
        """Tokens around questions and parts."""
        return _ENVELOPE + parts

    def row(self, schema: Sequence[SchemaTokens], parts: Sequence[PartTokens]) -> Row:
        """All of `parts`, which are cut already. At most one question is a span."""
        ids = [self.bos]
        placed: list[tuple[int, tuple[int, ...], tuple[Role, ...]]] = []
        for each in (one for one in schema if one.question.kind != "span"):
            query = len(ids)
            ids += [self.markers["[Q]"], *each.text]
            options = self._options(ids, "[O]", each.options)
            if each.question.abstain:
                options.append(len(ids))
                ids.append(self.markers["[ABS]"])
            placed.append((query, tuple(options), each.question.roles))
        span = next((one for one in schema if one.question.kind == "span"), None)
        labels = [] if span is None else self._options(ids, "[E]", span.options)
        ids.append(self.markers["[SEP_SCHEMA]"])
        starts: dict[Role, int] = {}
        ends: dict[Role, int] = {}
        words: tuple[int, ...] = ()
        for part in parts:
            starts[part.role] = len(ids)
            ids.append(self.markers[f"[SEG_{part.role}]"])
            if span is not None and span.question.roles == (part.role,):
                words = tuple(len(ids) + word.token for word in part.words)
            ids += part.ids
            ends[part.role] = len(ids)
        ids.append(self.eos)
        asked = tuple(Asked(query, options, starts[roles[0]], ends[roles[-1]]) for query, options, roles in placed)
        return Row(tuple(ids), READOUT, Marks(asked, tuple(labels), words))

    def _options(self, ids: list[int], marker: str, options: Sequence[Sequence[int]]) -> list[int]:
        """Append them, each behind its marker; where the markers are."""
        places = []
        for option in options:
            places.append(len(ids))
            ids += [self.markers[marker], *option]
        return places


def sequence_form(config: Mapping[str, Any]) -> SequenceForm:
    """Raises PackageError (`invalid_package`)."""
    markers = config.get("marker_ids")
    if not isinstance(markers, dict) or set(markers) != set(MARKERS) or not all(type(value) is int for value in markers.values()):
        raise not_of_the_format("config.json", f"marker_ids for {', '.join(MARKERS)}", markers)
    if len(set(markers.values())) != len(MARKERS):
        raise not_of_the_format("config.json", "different marker_ids", markers)
    for name in ("bos_token_id", "eos_token_id"):
        if type(config.get(name)) is not int:
            raise not_of_the_format("config.json", f"{name}, an integer", config.get(name))
    return SequenceForm(config["bos_token_id"], config["eos_token_id"], dict(markers))
