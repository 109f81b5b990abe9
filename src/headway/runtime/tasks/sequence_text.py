"""SequenceText: texts -> rows of one model, within its limits, whatever the policy for long ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from headway.artifacts.tokenizer import Tokenizer
from headway.runtime.long_input.bounded_text import BoundedText, Content
from headway.runtime.row import Row
from headway.runtime.tasks.envelope import Envelope, pair_envelope, single_envelope
from headway.runtime.tasks.task_model import RowDetail


class SequenceText:
    """One tokenizer and its envelopes. `limit`: the most tokens in a sequence, special ones included.

    `token_types`: whether the encoder tells first and second texts apart.
    """

    def __init__(self, tokenizer: Tokenizer, limit: int, token_types: bool):
        self.bounded = BoundedText(tokenizer)
        self.vocab_size = tokenizer.vocab_size
        self.limit = limit
        self.single = single_envelope(tokenizer)
        self._tokenizer = tokenizer
        self._token_types = token_types

    @cached_property
    def pair(self) -> Envelope:
        """Raises ArtifactError when the tokenizer has no template for pairs that can be read."""
        return pair_envelope(self._tokenizer)

    def content(self, text: str, allowed: int, offsets: bool = False) -> Content:
        """The tokens of `text`, to its end or to one token more than a sequence of `allowed` tokens holds."""
        return self.bounded.read(text, allowed - self.single.size + 1, offsets)

    def row(self, ids: Sequence[int], readout: str, layer: int | None = None) -> Row:
        return Row(self.single.wrap(ids), readout, RowDetail(layer=layer))

    def pair_row(self, envelope: Envelope, first: Sequence[int], second: Sequence[int], readout: str, layer: int | None = None) -> Row:
        start = envelope.second_start(first) if self._token_types and envelope.second_kind else None
        return Row(envelope.wrap(first, second), readout, RowDetail(start, layer))
