"""What changes the logits before a token is chosen, in the order of vLLM's sampler (contract: order decides the result).

All functions work in place on [N, V] float32 logits.
"""

from __future__ import annotations

import torch

from headway.engine.sampling_batch import SamplingBatch, SparseRows
from headway.engine.sequence import Sequence

_NEVER = float("-inf")


def restrict(logits: torch.Tensor, batch: SamplingBatch) -> None:
    """allowed_token_ids, bad_words, min_tokens, logit_bias, thinking_token_budget."""
    if batch.banned is not None and batch.banned_rows is not None:
        logits[batch.banned_rows] = logits[batch.banned_rows].masked_fill_(batch.banned, _NEVER)
    if batch.bad_words_rows:
        _forbid(logits, SparseRows.of([(i, t) for i in batch.bad_words_rows for t in _bad_next(batch.sequences[i])]))
    if batch.min_tokens_rows:
        _forbid(logits, SparseRows.of([(i, t) for i in batch.min_tokens_rows for t in _held_back(batch.sequences[i])]))
    if batch.bias is not None and batch.bias.values is not None:
        logits.index_put_((batch.bias.rows, batch.bias.tokens), batch.bias.values, accumulate=True)
    for i in batch.thinking:
        _force(logits[i], batch.sequences[i])


def _force(row: torch.Tensor, sequence: Sequence) -> None:
    """Where reasoning has used up its budget only the next token of its end mark is left, whatever else forbids it."""
    token = None if sequence.thinking is None else sequence.thinking.forced(sequence.tokens, sequence.num_prompt)
    if token is not None:
        row.fill_(_NEVER)
        row[token] = 0.0


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
