"""Walk: the rows of one forward pass, step by step through the model, each on keys and values that earlier rows left.

A step is one ForwardBatch of at most `step_tokens` new tokens. Rows go one after the other; a row that does not fit what is
left of a step goes on in the next. Full blocks are offered to later rows as soon as they are planned: also within one
step, since a layer stores the keys and values of the whole batch before it attends. So the state that many questions
share is computed by the first of them, and each other one computes its own tokens and at most a block of shared ones.

There is no least amount of sharing within a pass, since one block between two rows already pays: two rows of 36 tokens of which 16
are shared took 157 against 187 ms (float32) and 127 against 130 ms (bfloat16), ten rows with 64 shared tokens of 84 took 665 against
2,048 and 365 against 1,042 ms (CPU time of one EPYC core, SmolLM2 135M). Hashing costs a few microseconds a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from headway.kernels.paged_kv import PagedKV
from headway.kvcache.block_hash import BlockHash
from headway.kvcache.manager import BlockTable, KVCacheManager
from headway.kvcache.runs import Run
from headway.runtime.decoder.wanted import first_wanted
from headway.runtime.row import Row

# What an earlier forward pass left is taken only when it is at least this long. A shorter row is then computed the same way
# every time it comes, to the last bit, and what is lost is a few milliseconds.
LEAST_REUSED: Final = 256


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens [start, start + count) of row `row` of the forward pass."""

    row: int
    run: Run


class Walk:
    """Use as a context manager: whatever happens, all blocks are given back at the end, and what a failed pass wrote is
    neither found by anybody nor left where padding could read it."""

    def __init__(self, rows: Sequence[Row], manager: KVCacheManager, kv: PagedKV, step_tokens: int):
        self._rows = rows
        self._manager = manager
        self._kv = kv
        self._step_tokens = step_tokens
        self._tables: dict[int, BlockTable] = {}
        self._written: set[int] = set()
        self.shared_tokens = 0  # taken over from other rows, of this pass or of an earlier one

    def __enter__(self) -> Walk:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for row in list(self._tables):
            self._finish(row)
        if kind is not None:
            self._manager.retract(self._written)
            self._kv.clear(sorted(self._written))

    def steps(self) -> Iterator[list[Piece]]:
        """Pieces of the next step. What a step wrote must be there when the next one is asked for."""
        pieces: list[Piece] = []
        left = self._step_tokens
        for row in range(len(self._rows)):
            tokens = self._rows[row].token_ids
            begun = self._begin(row)
            if begun is None and pieces:
                yield pieces
                self._finish_complete(pieces)
                pieces, left = [], self._step_tokens
                begun = self._begin(row)
            if begun is None:
                raise RuntimeError(f"a row of {len(tokens)} tokens does not fit a cache of {self._manager.pool.num_blocks} blocks")
            table, hashes, start = begun
            while start < len(tokens):
                if left == 0:
                    yield pieces
                    self._finish_complete(pieces)
                    pieces, left = [], self._step_tokens
                count = min(len(tokens) - start, left)
                pieces.append(Piece(row, Run(tokens, table.blocks, start, count)))
                start += count
                left -= count
                self._manager.publish(table, hashes, start)
        if pieces:
            yield pieces
            self._finish_complete(pieces)

    def spoil(self, rows: Sequence[int]) -> None:
        """These rows came out as no numbers: nobody shall find their blocks, and nobody read NaN where padding is read."""
        holders = Counter(block for row in rows for block in self._tables[row].blocks)
        self._manager.retract(holders)
        self._kv.clear([block for block, count in holders.items() if self._manager.pool.references(block) == count])

    def _begin(self, row: int) -> tuple[BlockTable, list[BlockHash], int] | None:
        """Blocks for a whole row, and how many of its tokens they already hold. None, and no change, if there are too few."""
        tokens = self._rows[row].token_ids
        manager = self._manager
        table = manager.new_table()
        hashes = manager.hashes(table, [], tokens)
        found = manager.find_prefix(hashes, first_wanted(self._rows[row]) + 1)
        if found and found[0] not in self._written and len(found) * manager.block_size < LEAST_REUSED:
            manager.retract(found)  # so that the rows of this pass share what the first of them computes
            found = []
        if not manager.can_start(found, len(tokens)):
            return None
        manager.adopt(table, found)
        manager.grow(table, len(tokens))
        self._tables[row] = table
        self._written.update(table.blocks[len(found) :])
        shared = len(found) * manager.block_size
        self.shared_tokens += shared
        return table, hashes, shared

    def _finish_complete(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if piece.run.start + piece.run.count == len(piece.run.tokens):
                self._finish(piece.row)

    def _finish(self, row: int) -> None:
        self._manager.free(self._tables.pop(row))
