"""Envelope: the special tokens around one text or two, found by asking the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.artifacts.tokenizer import Tokenizer
from headway.errors import ArtifactError


@dataclass(frozen=True, slots=True)
class Envelope:
    """`before`, then the first text, then `between` and the second text if there are two, then `after`.

    `second_kind`: whether tokens from the second text on are of kind 1 (BERT's token types).
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    second_kind: bool = False

    @property
    def size(self) -> int:
        """Special tokens in all."""
        return len(self.before) + len(self.between) + len(self.after)

    def wrap(self, first: Sequence[int], second: Sequence[int] = ()) -> tuple[int, ...]:
        return (*self.before, *first, *self.between, *second, *self.after)

    def second_start(self, first: Sequence[int]) -> int:
        """Where the second text begins in what `wrap` returns."""
        return len(self.before) + len(first) + len(self.between)


def single_envelope(tokenizer: Tokenizer) -> Envelope:
    """Around one text. Raises ArtifactError (`tokenizer_invalid`) for a template that puts the text twice or nowhere."""
    encoding = tokenizer.backend.encode("a")
    content = tokenizer.backend.encode("a", add_special_tokens=False).ids
    place = _only_place(encoding.ids, content)
    return Envelope(tuple(encoding.ids[:place]), (), tuple(encoding.ids[place + len(content) :]))


def pair_envelope(tokenizer: Tokenizer) -> Envelope:
    """Around two texts. Raises ArtifactError (`tokenizer_invalid`)."""
    encoding = tokenizer.backend.encode("a", "b")
    first = tokenizer.backend.encode("a", add_special_tokens=False).ids
    second = tokenizer.backend.encode("b", add_special_tokens=False).ids
    place = _only_place(encoding.ids, first)
    other = _only_place(encoding.ids, second, place + len(first))
    kinds = encoding.type_ids
    second_kind = kinds[other] == 1
    if kinds[: place + 1] != [0] * (place + 1) or any(kind != int(second_kind) for kind in kinds[other:]):
        raise ArtifactError(f"the tokenizer gives pairs of texts the token types {kinds}, expected 0 and then 0 or 1",
                            reason="tokenizer_invalid", fix="Download tokenizer.json again.")  # fmt: skip
    return Envelope(tuple(encoding.ids[:place]), tuple(encoding.ids[place + len(first) : other]),
                    tuple(encoding.ids[other + len(second) :]), second_kind)  # fmt: skip


def _only_place(ids: Sequence[int], part: Sequence[int], start: int = 0) -> int:
    size = len(part)
    for place in range(start, len(ids) - size + 1):
        if size and list(ids[place : place + size]) == list(part):
            return place
    raise ArtifactError("the tokenizer's template does not hold the text between its special tokens",
                        reason="tokenizer_invalid", fix="Download tokenizer.json again.")  # fmt: skip
