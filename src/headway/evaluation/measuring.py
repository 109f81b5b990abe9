"""Asking a model: its scores of requests, with its hidden states kept or compared with those of a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from headway.errors import HeadwayError
from headway.evaluation.hidden_states import hidden_states
from headway.evaluation.record import Record, RecordWriter
from headway.evaluation.scoring import Numbers, ScoringRequest
from headway.evaluation.token_scores import Head, TokenComparison, token_comparison, token_logprobs
from headway.models.causal_lm import CausalLM

OnTokens = Callable[[int], None]
"""Told of tokens that are done."""


class NotNumbersError(HeadwayError):
    """A model whose scores are no numbers; nothing more is asked of it."""

    reason = "not_numbers"


def record_logprobs(model: CausalLM, head: Head, requests: Sequence[ScoringRequest], writer: RecordWriter, done: OnTokens, *, hidden: bool) -> Record:
    """Of a baseline. Raises NotNumbersError."""
    for batch, states in hidden_states(model, requests):
        logprobs = checked(token_logprobs(head, states, _targets(batch)))
        writer.add(_split(logprobs, batch), states if hidden else None)
        done(_tokens(batch))
    return writer.finish()


def logprobs_of(model: CausalLM, head: Head, requests: Sequence[ScoringRequest], done: OnTokens) -> Iterator[Numbers]:
    """Of each request, in order. Raises NotNumbersError."""
    for batch, states in hidden_states(model, requests):
        yield from _split(checked(token_logprobs(head, states, _targets(batch))), batch)
        done(_tokens(batch))


def comparisons_of(
    model: CausalLM, head: Head, requests: Sequence[ScoringRequest], base: Record, base_head: Head, done: OnTokens
) -> Iterator[TokenComparison]:
    """Of each batch of requests, in order; `base` is what the baseline made of them. Raises NotNumbersError."""
    kept = base.hidden()
    for batch, states in hidden_states(model, requests):
        found = token_comparison(head, states, base_head, torch.cat([next(kept) for _ in batch]), _targets(batch))
        checked(found.logprobs)
        yield found
        done(_tokens(batch))


def _targets(batch: Sequence[ScoringRequest]) -> list[int]:
    return [target for request in batch for target in request.targets]


def _tokens(batch: Sequence[ScoringRequest]) -> int:
    return sum(len(request.tokens) for request in batch)


def _split(logprobs: Numbers, batch: Sequence[ScoringRequest]) -> list[Numbers]:
    return np.split(logprobs, np.cumsum([len(request.targets) for request in batch])[:-1])


def checked(logprobs: Numbers) -> Numbers:
    """Raises NotNumbersError for NaN; minus infinity is a number."""
    if bool(np.isnan(logprobs).any()):
        raise NotNumbersError("its logits are not numbers (NaN)")
    return logprobs
