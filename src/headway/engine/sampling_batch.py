"""SamplingBatch: the parameters of the sequences of one step as tensors, so that sampling works on the whole batch at once.

What does not change from step to step is built once and reused while the same sequences are sampled together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from headway.engine.sampling_params import SamplingParams
from headway.engine.sequence import Sequence
from headway.kernels.sampling import Choices


@dataclass(slots=True)
class SparseRows:
    """Values for some (row, token) cells of the logits: rows [M], tokens [M] int64 and, for biases, values [M]."""

    rows: torch.Tensor
    tokens: torch.Tensor
    values: torch.Tensor | None = None

    @staticmethod
    def of(cells: list[tuple[int, int]], values: list[float] | None = None) -> SparseRows | None:
        if not cells:
            return None
        index = torch.tensor(cells, dtype=torch.int64)
        return SparseRows(index[:, 0], index[:, 1], None if values is None else torch.tensor(values, dtype=torch.float32))


@dataclass(slots=True)
class SamplingBatch:
    """Row i belongs to sequences[i]. A member is None when no row needs that step, so that the common case costs nothing."""

    sequences: list[Sequence]
    all_greedy: bool
    choices: Choices
    banned: torch.Tensor | None  # [rows with allowed_token_ids, V] bool, True = not allowed
    banned_rows: torch.Tensor | None
    bias: SparseRows | None
    bad_words_rows: list[int]
    min_tokens_rows: list[int]
    penalised: list[int]
    logprob_rows: list[int]
    frequency: torch.Tensor | None = None  # [P, 1] of the penalised rows
    presence: torch.Tensor | None = None
    repetition: torch.Tensor | None = None
    extra_ids: dict[int, list[int]] = field(default_factory=dict)  # row -> logprob_token_ids
    thinking: list[int] = field(default_factory=list)  # rows whose reasoning has a budget
    formed: list[int] = field(default_factory=list)  # rows whose answer must have a form

    @staticmethod
    def of(sequences: list[Sequence], vocab_size: int) -> SamplingBatch:
        params = [s.params for s in sequences]
        drawn = [not p.greedy for p in params]

        def column(values: list[float]) -> torch.Tensor:
            return torch.tensor(values, dtype=torch.float32).unsqueeze(1)

        def rows_where(flags: list[bool]) -> list[int]:
            return [i for i, flag in enumerate(flags) if flag]

        banned_rows = rows_where([p.allowed_token_ids is not None for p in params])
        bias_cells = [(i, t) for i, p in enumerate(params) for t in (p.logit_bias or {})]
        bias_values = [v for p in params for v in (p.logit_bias or {}).values()]
        penalised = rows_where([needs_counts(s) for s in sequences])
        return SamplingBatch(
            sequences=list(sequences),
            all_greedy=not any(drawn),
            choices=_choices(params, vocab_size),
            banned=_banned(sequences, banned_rows, vocab_size),
            banned_rows=torch.tensor(banned_rows) if banned_rows else None,
            bias=SparseRows.of(bias_cells, bias_values),
            bad_words_rows=rows_where([bool(p.bad_words_ids) for p in params]),
            min_tokens_rows=rows_where([p.min_tokens > 0 for p in params]),
            penalised=penalised,
            logprob_rows=rows_where([p.logprobs is not None or bool(p.logprob_token_ids) for p in params]),
            frequency=column([params[i].frequency_penalty for i in penalised]) if penalised else None,
            presence=column([params[i].presence_penalty for i in penalised]) if penalised else None,
            repetition=column([params[i].repetition_penalty for i in penalised]) if penalised else None,
            extra_ids={i: p.logprob_token_ids for i, p in enumerate(params) if p.logprob_token_ids},
            thinking=rows_where([s.thinking is not None for s in sequences]),
            formed=rows_where([s.form is not None for s in sequences]),
        )


def _choices(params: list[SamplingParams], vocab_size: int) -> Choices:
    def each(value: Callable[[SamplingParams], float], greedy: float, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor([greedy if p.greedy else value(p) for p in params], dtype=dtype)

    return Choices(
        drawn=torch.tensor([not p.greedy for p in params]),
        temperature=each(lambda p: p.temperature, 1.0, torch.float32),
        min_p=each(lambda p: p.min_p, 0.0, torch.float32),
        top_k=each(lambda p: min(p.top_k, vocab_size) if p.top_k > 0 else vocab_size, vocab_size, torch.int64),
        top_p=each(lambda p: p.top_p, 1.0, torch.float32),
    )


def needs_counts(sequence: Sequence) -> bool:
    """Whether the sequence's penalties need to know which tokens it has."""
    p = sequence.params
    return p.frequency_penalty != 0 or p.presence_penalty != 0 or p.repetition_penalty != 1


def _banned(sequences: list[Sequence], rows: list[int], vocab_size: int) -> torch.Tensor | None:
    if not rows:
        return None
    mask = torch.ones(len(rows), vocab_size, dtype=torch.bool)
    for i, row in enumerate(rows):
        mask[i, torch.tensor(sequences[row].params.allowed_token_ids)] = False
    return mask
