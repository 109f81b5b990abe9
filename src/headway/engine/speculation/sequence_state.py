"""SequenceState: what speculation keeps for a sequence while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.engine.sequence import Sequence
from headway.engine.speculation.acceptance import Acceptance
from headway.engine.speculation.draft_rows import DraftRows
from headway.engine.speculation.token_text import TokenText
from headway.kvcache.manager import BlockTable


@dataclass(slots=True)
class DraftCache:
    """A sequence in the cache of a draft model: of its tokens and the `guesses` behind the first `known`, `computed` are in the cache."""

    table: BlockTable
    known: int = 0
    guesses: list[int] = field(default_factory=list)
    computed: int = 0


@dataclass(slots=True)
class SequenceState:
    rows: DraftRows = field(default_factory=DraftRows)
    text: TokenText = field(default_factory=TokenText)
    acceptance: Acceptance | None = None  # None until the first choice of a length
    passed_over: int = 0  # steps since the last draft in which none was expected to pay
    cache: DraftCache | None = None  # with a draft model


def state_of(sequence: Sequence) -> SequenceState:
    """Of a sequence that speculates, made when first asked for."""
    if sequence.speculation is None:
        sequence.speculation = SequenceState()
    return sequence.speculation
