"""Asking a model: its scores of requests, with its hidden states kept or compared with those of a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

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
    for index, states in hidden_states(model, requests):
        writer.add(checked(token_logprobs(head, states, requests[index].targets)), states if hidden else None)
        done(len(requests[index].tokens))
    return writer.finish()


def logprobs_of(model: CausalLM, head: Head, requests: Sequence[ScoringRequest], done: OnTokens) -> Iterator[Numbers]:
    """Of each request, in order. Raises NotNumbersError."""
    for index, states in hidden_states(model, requests):
        yield checked(token_logprobs(head, states, requests[index].targets))
        done(len(requests[index].tokens))


def comparisons_of(
    model: CausalLM, head: Head, requests: Sequence[ScoringRequest], base: Record, base_head: Head, done: OnTokens
) -> Iterator[TokenComparison]:
    """Of each request, in order; `base` are its scores by the baseline. Raises NotNumbersError."""
    for (index, states), base_states in zip(hidden_states(model, requests), base.hidden(), strict=True):
        found = token_comparison(head, states, base_head, base_states, requests[index].targets)
        checked(found.logprobs)
        yield found
        done(len(requests[index].tokens))


def checked(logprobs: Numbers) -> Numbers:
    """Raises NotNumbersError for NaN; minus infinity is a number."""
    if bool(np.isnan(logprobs).any()):
        raise NotNumbersError("its logits are not numbers (NaN)")
    return logprobs
