"""What changes the logits before a token is drawn, in the order of vLLM's sampler (contract: order decides the result).

All functions work in place on [N, V] float32 logits.
"""

from __future__ import annotations

import torch

from headway.engine.sampling_batch import SamplingBatch, SparseRows
from headway.engine.sequence import Sequence

_NEVER = float("-inf")


def restrict(logits: torch.Tensor, batch: SamplingBatch) -> None:
    """allowed_token_ids, bad_words, min_tokens, logit_bias."""
    if batch.banned is not None and batch.banned_rows is not None:
        logits[batch.banned_rows] = logits[batch.banned_rows].masked_fill_(batch.banned, _NEVER)
    if batch.bad_words_rows:
        _forbid(logits, SparseRows.of([(i, t) for i in batch.bad_words_rows for t in _bad_next(batch.sequences[i])]))
    if batch.min_tokens_rows:
        _forbid(logits, SparseRows.of([(i, t) for i in batch.min_tokens_rows for t in _held_back(batch.sequences[i])]))
    if batch.bias is not None and batch.bias.values is not None:
        logits.index_put_((batch.bias.rows, batch.bias.tokens), batch.bias.values, accumulate=True)


def _forbid(logits: torch.Tensor, cells: SparseRows | None) -> None:
    if cells is not None:
        logits[cells.rows, cells.tokens] = _NEVER


def _bad_next(sequence: Sequence) -> list[int]:
    """Tokens that would complete a bad word after what was generated so far."""
    output = sequence.tokens
    start = sequence.num_prompt
    out = []
    for word in sequence.params.bad_words_ids:
        head = len(word) - 1
        if head == 0 or (sequence.num_output >= head and output[max(start, len(output) - head) :] == word[:-1]):
            out.append(word[-1])
    return out


def _held_back(sequence: Sequence) -> list[int]:
    if sequence.num_output >= sequence.params.min_tokens:
        return []
    return [*sequence.eos_ids, *(sequence.params.stop_token_ids or [])]


def penalise(logits: torch.Tensor, batch: SamplingBatch) -> None:
    """Repetition penalty over prompt and output (divide positive, multiply negative logits), then frequency and presence
    over the output: logit - frequency * count - presence * (count > 0)."""
    if not batch.penalised or batch.frequency is None or batch.presence is None or batch.repetition is None:
        return
    chosen = [batch.sequences[i] for i in batch.penalised]
    counts = torch.stack([_counts(s, logits.shape[1]) for s in chosen])
    seen = counts > 0
    rows = logits[batch.penalised]
    if bool((batch.repetition != 1).any()):
        repeated = seen | torch.stack([_prompt_mask(s, logits.shape[1]) for s in chosen])
        scaled = torch.where(rows > 0, rows / batch.repetition, rows * batch.repetition)
        rows = torch.where(repeated, scaled, rows)
    logits[batch.penalised] = rows - batch.frequency * counts - batch.presence * seen


def _counts(sequence: Sequence, vocab_size: int) -> torch.Tensor:
    if sequence.output_counts is None:
        output = torch.tensor(sequence.output_ids, dtype=torch.int64)
        sequence.output_counts = torch.bincount(output, minlength=vocab_size).float()
    return sequence.output_counts


def _prompt_mask(sequence: Sequence, vocab_size: int) -> torch.Tensor:
    if sequence.prompt_mask is None:
        mask = torch.zeros(vocab_size, dtype=torch.bool)
        mask[torch.tensor(sequence.tokens[: sequence.num_prompt])] = True
        sequence.prompt_mask = mask
    return sequence.prompt_mask


def narrow(logits: torch.Tensor, batch: SamplingBatch) -> None:
    """min_p, then top-k, then top-p, on logits already divided by the temperature."""
    if batch.min_p is not None:
        # p < min_p * p_max  <=>  logit < logit_max + log(min_p)
        floor = logits.amax(-1, keepdim=True) + batch.min_p.log()
        logits.masked_fill_(logits < floor, _NEVER)
    if len(batch.filtered) == logits.shape[0]:
        _top_k_top_p(logits, batch.top_k, batch.top_p)
    elif batch.filtered:
        rows = logits[batch.filtered]
        _top_k_top_p(rows, batch.top_k, batch.top_p)
        logits[batch.filtered] = rows


_CANDIDATES = 512  # a full sort of a 49k row takes milliseconds; nearly always the head of the order is enough


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
