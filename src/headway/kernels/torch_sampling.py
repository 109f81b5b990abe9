"""Sampling with torch operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from headway.kernels.sampling import Choices, Ranked, SamplingKernels

_NEVER: Final = float("-inf")
_CANDIDATES: Final = 512  # a full sort of a 49k row takes milliseconds; nearly always the head of the order is enough


def argmax(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    best = logits.argmax(-1)
    return best, logits.gather(1, best.unsqueeze(1)).squeeze(1)


def draw(logits: torch.Tensor, choices: Choices, numbers: torch.Tensor, best: torch.Tensor, keep: bool) -> torch.Tensor:
    """Changes logits in any case. In float64, so that rare tokens keep their share."""
    logits.div_(choices.temperature.unsqueeze(1))
    narrow(logits, choices)
    probs = logits.softmax(-1)
    cumulative = probs.cumsum(-1, dtype=torch.float64)
    targets = numbers * cumulative[:, -1]
    at = torch.searchsorted(cumulative, targets.unsqueeze(1), right=True).clamp_max_(logits.shape[1] - 1)
    # The number may round up to the total, and the search then runs past the last token that can be drawn.
    at = torch.where(probs.gather(1, at) > 0, at, best.unsqueeze(1)).squeeze(1)
    return torch.where(choices.drawn, at, best)


def narrow(logits: torch.Tensor, choices: Choices) -> None:
    """min_p, then top-k, then top-p, in place, on logits already divided by the temperature."""
    if choices.has_min_p:
        # p < min_p * p_max  <=>  logit < logit_max + log(min_p)
        floor = logits.amax(-1, keepdim=True) + choices.min_p.log().unsqueeze(1)
        logits.masked_fill_(logits < floor, _NEVER)
    filtered = torch.nonzero(choices.drawn & ((choices.top_k < logits.shape[1]) | (choices.top_p < 1))).flatten()
    if len(filtered) == logits.shape[0]:
        _top_k_top_p(logits, choices.top_k, choices.top_p.unsqueeze(1))
    elif len(filtered):
        rows = logits[filtered]
        _top_k_top_p(rows, choices.top_k[filtered], choices.top_p[filtered].unsqueeze(1))
        logits[filtered] = rows


def _top_k_top_p(logits: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor) -> None:
    """Keep per row the top_k largest, then of those the smallest set whose probability reaches top_p.

    `top_k` [N], the vocabulary size where off; `top_p` [N, 1]. Works on the largest `width` logits; rows for which
    these may not reach top_p are done again on the whole order.
    """
    vocab = logits.shape[1]
    width = min(vocab, max(_CANDIDATES, int(top_k.where(top_k < vocab, 0).max())))
    inside = (top_k <= width).unsqueeze(1)
    values, order = logits.topk(width, dim=1)
    values = values.masked_fill(torch.arange(width) >= top_k.unsqueeze(1), _NEVER)
    # What top_k left is renormalised; without top_k the probabilities are those of the whole vocabulary.
    total = torch.where(inside, values.logsumexp(1, keepdim=True), logits.logsumexp(1, keepdim=True))
    probs = (values - total).exp()
    before = probs.cumsum(1) - probs
    drop = (before >= top_p) & (top_p < 1)
    drop[:, 0] = False
    reached = inside | (before[:, -1:] + probs[:, -1:] >= top_p)
    open_rows = torch.nonzero(~reached.squeeze(1)).flatten()
    wide = _top_p_by_full_sort(logits[open_rows], top_p[open_rows]) if len(open_rows) else None
    logits.fill_(_NEVER).scatter_(1, order, values.masked_fill(drop, _NEVER))
    if wide is not None:
        logits[open_rows] = wide


def _top_p_by_full_sort(logits: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    values, order = logits.sort(dim=1, descending=True)
    probs = values.softmax(1)
    drop = (probs.cumsum(1) - probs) >= p
    drop[:, 0] = False
    return torch.full_like(logits, _NEVER).scatter_(1, order, values.masked_fill(drop, _NEVER))


def rank(logits: torch.Tensor, tokens: Sequence[Sequence[int]], count: int, normalised: bool) -> Ranked:
    table = logits.log_softmax(-1) if normalised else logits
    rows = torch.tensor([row for row, asked in enumerate(tokens) for _ in asked], dtype=torch.int64)
    own = table[rows, torch.tensor([token for asked in tokens for token in asked], dtype=torch.int64)]
    # One token of every row is the common case, for which rows need no copies.
    theirs = table if len(rows) == len(table) and all(len(asked) == 1 for asked in tokens) else table[rows]
    ranks = torch.count_nonzero(theirs >= own.unsqueeze(1), dim=1)
    values, best = table.topk(count, dim=1)
    return Ranked(own.tolist(), ranks.tolist(), best.tolist(), values.tolist())


def forbid(logits: torch.Tensor, masks: torch.Tensor, rows: Sequence[int]) -> None:
    index = torch.tensor(rows, dtype=torch.int64)
    bits = (masks[index].unsqueeze(2) >> torch.arange(32, dtype=torch.int32)) & 1
    allowed = bits.view(len(rows), -1)[:, : logits.shape[1]].bool()
    logits[index] = logits[index].masked_fill(~allowed, _NEVER)


TORCH_SAMPLING: Final = SamplingKernels(argmax=argmax, draw=draw, rank=rank, forbid=forbid)
