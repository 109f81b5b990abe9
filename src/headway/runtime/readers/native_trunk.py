"""A decoder of our own with the face that a decoder of transformers has, for heads that take either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.runtime.decoder.trunk import DecoderTrunk
from headway.runtime.row import Outcome, Row


@dataclass(frozen=True, slots=True)
class NativeTrunk:
    trunk: DecoderTrunk

    @property
    def max_tokens(self) -> int:
        return self.trunk.max_tokens

    def read(self, rows: Sequence[Row]) -> list[Outcome]:
        return self.trunk.read(rows)

    def forget(self) -> None:
        self.trunk.forget()

    @property
    def nbytes(self) -> int:
        return self.trunk.memory_bytes

    @property
    def vocab_size(self) -> int:
        return self.trunk.model.config.vocab_size
