"""Tags: what the labels of a token classifier mean for spans (BIO, BIOES, BILOU, or plain names beside O)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headway.errors import ArtifactError

OUTSIDE: Final = "O"


@dataclass(frozen=True, slots=True)
class Tag:
    """`entity` None is O. `opens`: always begins a span. `closes`: the span ends with this token."""

    entity: str | None
    opens: bool = False
    closes: bool = False


_PREFIXES: Final[Mapping[str, tuple[bool, bool]]] = {
    "B": (True, False), "I": (False, False), "E": (False, True), "L": (False, True), "S": (True, True), "U": (True, True),
}  # fmt: skip


def tags_of(labels: Sequence[str]) -> tuple[Tag, ...]:
    """The tag of each label. Names without a prefix continue a span of their name, or open one.

    Raises ArtifactError (`labels_not_understood`) for labels that have neither prefixes nor an O.
    """
    tags = tuple(_tag(label) for label in labels)
    if not any(tag.entity is None for tag in tags) or all(tag.entity is None for tag in tags):
        raise ArtifactError(
            f"a token classifier needs the label O and names of entities, with or without B- and I-; found {', '.join(labels[:12])}",
            reason="labels_not_understood", param="id2label",
            fix="A head that marks unsupported answers needs an operating_point.json with input_pair.",
        )  # fmt: skip
    return tags


def _tag(label: str) -> Tag:
    if label == OUTSIDE:
        return Tag(None)
    prefix, dash, entity = label.partition("-")
    if dash and entity and prefix in _PREFIXES:
        opens, closes = _PREFIXES[prefix]
        return Tag(entity, opens, closes)
    return Tag(label)
