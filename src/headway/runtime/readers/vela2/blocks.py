"""What a Vela 2.0 decoder reads: the parts, then the block of one question. Each piece is tokenized by itself.

A block sees the parts and itself, so a question's answer does not depend on what else is asked. Text: docs/families.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from headway.runtime.decoder.wanted import HiddenAt
from headway.runtime.readers.endpoints.prompt import SUFFIX, option_text
from headway.runtime.readers.vela2.parts import PartTokens
from headway.runtime.readers.vela2.questions import VelaQuestion
from headway.runtime.readers.vela2.state import Role
from headway.runtime.row import Row

Ids: TypeAlias = Callable[[str], tuple[int, ...]]

OPTIONS: Final = "options"  # the readouts; a span's is "span:<head>"
SET: Final = "set"
SPAN: Final = "span:"
_SUFFIXES: Final = {
    "choice": SUFFIX, "score": SUFFIX, "set": "\n\nSelect every option supported by the context and instructions.\nDecision:",
    "span": "\n\nMark every span of the target text that carries one of the labels.\nSpans:",
}  # fmt: skip
_ABSTAIN: Final = ("[ABS]", "None of the shown options applies.")
_PARTS: Final = "Context:\n"
_CLOSE: Final = "\n</segment>\n"
_TEXT: Final = "\n\nText:\n"


def _open(role: Role) -> str:
    return f'<segment role="{role}">\n'


def _head(question: VelaQuestion) -> str:
    listed = "Labels:" if question.kind == "span" else "Options:"
    return f"\n\nTask type: {question.model_kind}\nTarget: {', '.join(question.roles)}\nQuestion:\n{question.text}\n{listed}"


@dataclass(frozen=True, slots=True)
class SpanAt(HiddenAt):
    """`positions`: all tokens of the labels, then the first token of each word. `labels`: how many tokens each label has."""

    labels: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """One question without the parts. `ends`: the last token of each option ("none of these" last); of each label with
    `starts`, the first."""

    head: tuple[int, ...]
    options: tuple[tuple[int, ...], ...]
    suffix: tuple[int, ...]


class BlockForm:
    """Renders with the tokens of one package."""

    def __init__(self, ids: Ids):
        self._ids = ids

    def block(self, question: VelaQuestion) -> Block:
        """The pieces of a question's block."""
        tag = "label" if question.kind == "span" else "option"
        shown = [*question.options, *([_ABSTAIN] if question.abstain else [])]
        options = tuple(self._ids(option_text(name, text, tag)) for name, text in shown)
        return Block(self._ids(_head(question)), options, self._ids(_SUFFIXES[question.model_kind]))

    def around_parts(self, roles: Sequence[Role]) -> int:
        """Tokens that stand around the parts."""
        return len(self._ids(_PARTS)) + sum(len(self._ids(_open(role))) + len(self._ids(_CLOSE)) for role in roles)

    def around_repeat(self, role: Role) -> int:
        """Tokens that stand around the text that a span's block repeats."""
        return len(self._ids(_TEXT)) + len(self._ids(_open(role))) + len(self._ids(_CLOSE))

    def _prefix(self, parts: Sequence[PartTokens]) -> list[int]:
        ids = list(self._ids(_PARTS))
        for part in parts:
            ids += [*self._ids(_open(part.role)), *part.ids, *self._ids(_CLOSE)]
        return ids

    def options_row(self, question: VelaQuestion, block: Block, parts: Sequence[PartTokens]) -> Row:
        """Read at the end of each option and at the end."""
        ids = [*self._prefix(parts), *block.head]
        ends = []
        for option in block.options:
            ids += option
            ends.append(len(ids) - 1)
        ids += block.suffix
        return Row(tuple(ids), SET if question.kind == "set" else OPTIONS, HiddenAt((*ends, len(ids) - 1)))

    def span_row(self, head: str, role: Role, block: Block, parts: Sequence[PartTokens]) -> Row:
        """The block repeats the part; labels are read where they are listed, words where the part is repeated."""
        ids = [*self._prefix(parts), *block.head]
        first = len(ids)
        for label in block.options:
            ids += label
        listed = range(first, len(ids))
        ids += [*self._ids(_TEXT), *self._ids(_open(role))]
        part = next(each for each in parts if each.role == role)
        words = tuple(len(ids) + word.token for word in part.words)
        ids += [*part.ids, *self._ids(_CLOSE), *block.suffix]
        return Row(tuple(ids), SPAN + head, SpanAt((*listed, *words), tuple(len(label) for label in block.options)))
