"""TransformersTrunk: rows through a decoder of transformers, and the hidden states that they want.

Rows of different length stand side by side with padding behind them. Layers that look back only never see it; where full
attention looks in both directions, a mask hides it. So a row's numbers are those that it has alone, up to rounding.

A start that many rows share can be computed once: keys, values and the states of linear attention are kept for the rest of
the rows. Numbers then differ by rounding only; it is off unless the operator wants it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from headway.runtime.decoder.wanted import HiddenAt, first_wanted, wanted_of
from headway.runtime.row import ItemFailure, Outcome, Row

PADDED_TOKENS: Final = 8192  # in one pass: bounds what intermediate results take
LEAST_SAVED: Final = 512  # tokens of shared start times rows that need not compute it; below, one pass over whole rows is faster
_BUCKET: Final = 64  # rows that agree in so many first tokens may share a start


@dataclass(slots=True)
class TrunkCounts:
    """`computed_tokens` went through the layers, padding included; `shared_tokens` were computed once for several rows."""

    passes: int = 0
    computed_tokens: int = 0
    shared_tokens: int = 0


class TransformersTrunk:
    """One thread at a time calls `read`.

    `bidirectional`: layers of full attention see the whole row (layers of linear attention always look back only). Nothing
    can be shared then, since the start of a row depends on its end.
    """

    def __init__(self, model: Any, *, max_tokens: int, share: bool, bidirectional: bool = False):
        self.model = model
        self.max_tokens = max_tokens
        self.counts = TrunkCounts()
        self._share = share and not bidirectional
        self._bidirectional = bidirectional

    @property
    def nbytes(self) -> int:
        return sum(parameter.nbytes for parameter in self.model.parameters())

    @property
    def vocab_size(self) -> int:
        return int(self.model.config.vocab_size)

    def forget(self) -> None:
        """There is nothing to forget: what rows share is kept for one call."""

    @torch.inference_mode()
    def read(self, rows: Sequence[Row]) -> list[Outcome]:
        """float32 [positions, hidden] for each row, whose detail is `HiddenAt`: final norm applied, in the order asked.

        Raises ValueError for rows that are empty, longer than `max_tokens`, or of another detail.
        """
        for row in rows:
            if not isinstance(wanted_of(row), HiddenAt) or not 1 <= len(row.token_ids) <= self.max_tokens:
                raise ValueError(f"a row of {len(row.token_ids)} tokens and detail {row.detail!r:.80}, expected HiddenAt and 1 to {self.max_tokens}")
        outcomes: dict[int, Outcome] = {}
        alone = list(range(len(rows)))
        if self._share:
            for members, shared in _sharing(rows):
                self._continue(rows, members, shared, outcomes)
            alone = [index for index in alone if index not in outcomes]
        for group in _groups(alone, [len(row.token_ids) for row in rows], PADDED_TOKENS):
            self._pass(rows, group, 0, None, outcomes)
        return [outcomes[index] for index in range(len(rows))]

    def _continue(self, rows: Sequence[Row], members: list[int], shared: int, outcomes: dict[int, Outcome]) -> None:
        """The first `shared` tokens once, then the rest of each member."""
        import copy

        start = torch.tensor([rows[members[0]].token_ids[:shared]], device=self.model.device)
        kept = self.model(input_ids=start, use_cache=True).cache
        self._count(start)
        self.counts.shared_tokens += shared * (len(members) - 1)
        budget = max(PADDED_TOKENS // 4, 1)  # each row of the batch also holds the shared keys and values
        for group in _groups(members, [len(row.token_ids) - shared for row in rows], budget):
            cache = copy.deepcopy(kept)
            cache.reorder_cache(torch.zeros(len(group), dtype=torch.long))
            self._pass(rows, group, shared, cache, outcomes)

    def _pass(self, rows: Sequence[Row], group: list[int], start: int, cache: Any, outcomes: dict[int, Outcome]) -> None:
        lengths = [len(rows[index].token_ids) - start for index in group]
        ids = torch.zeros((len(group), max(lengths)), dtype=torch.long)
        for line, index in enumerate(group):
            ids[line, : lengths[line]] = torch.tensor(rows[index].token_ids[start:])
        ids = ids.to(self.model.device)
        options = {} if cache is None else {"cache": cache}
        hidden = self.model(input_ids=ids, attention_mask=self._mask(lengths), use_cache=cache is not None, **options).last_hidden_state
        self._count(ids)
        for line, index in enumerate(group):
            wanted = rows[index].detail
            assert isinstance(wanted, HiddenAt)
            places = torch.tensor(wanted.positions, device=hidden.device) - start
            values = hidden[line, places].float().cpu().numpy()
            outcomes[index] = values if np.isfinite(values).all() else ItemFailure("invalid_model_output", "the model's numbers are not finite")

    def _mask(self, lengths: list[int]) -> dict[str, torch.Tensor | None] | None:
        """None: transformers' own, which looks back only."""
        if not self._bidirectional:
            return None
        width = max(lengths)
        seen = torch.arange(width)[None, :] < torch.tensor(lengths)[:, None]
        full = seen[:, None, None, :].expand(len(lengths), 1, width, width).to(self.model.device)
        return {"full_attention": full, "linear_attention": None}

    def _count(self, ids: torch.Tensor) -> None:
        self.counts.passes += 1
        self.counts.computed_tokens += ids.numel()


def _groups(members: Sequence[int], lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Members by length, cut so that each group's padded size stays within the budget. A row over it goes alone."""
    groups: list[list[int]] = []
    for index in sorted(members, key=lambda index: lengths[index]):
        if groups and (len(groups[-1]) + 1) * lengths[index] <= budget:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _sharing(rows: Sequence[Row]) -> list[tuple[list[int], int]]:
    """Rows whose common start is worth computing once, and its length: before anything that is read, and one token is left."""
    buckets: dict[tuple[int, ...], list[int]] = {}
    for index, row in enumerate(rows):
        buckets.setdefault(row.token_ids[:_BUCKET], []).append(index)
    found = []
    for members in buckets.values():
        first = rows[members[0]].token_ids
        shared = min(first_wanted(rows[index]) for index in members)
        for index in members[1:]:
            shared = _common(first, rows[index].token_ids, shared)
        if len(members) > 1 and shared * (len(members) - 1) >= LEAST_SAVED:
            found.append((members, shared))
    return found


def _common(first: Sequence[int], second: Sequence[int], most: int) -> int:
    limit = min(most, len(first), len(second))
    return next((place for place in range(limit) if first[place] != second[place]), limit)
