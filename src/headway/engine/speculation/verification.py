"""Verification: which drafts are right, and why answers do not change.

A sequence of n tokens x_1..x_n that decodes computes one token, x_n, and draws x_{n+1} = F(p(. | x_1..x_n), u_{n+1}): a function F (penalties,
filters, inverse of the cumulative distribution; the largest logit for greedy requests) of the model's distribution and of a uniform
number that depends on nothing but the request's stream and the place (`draws`). With drafts d_1..d_k it computes x_n, d_1, ..., d_k in one
pass, and row j = 0..k draws y_j = F(p(. | x_1..x_n, d_1..d_j), u_{n+1+j}): from the target's own distribution with the number of that place.
Draft d_{j+1} is accepted while y_j = d_{j+1}; a is how many are. Given out are y_0..y_a.

Claim: these are the very tokens that the sequence would have got without speculation. By induction: row 0 is the ordinary step. If y_0..y_{j-1}
are the ordinary tokens and all equal d_1..d_j, row j has the ordinary prefix and the ordinary number, so y_j is the ordinary token; the
first row whose prefix is another one, behind a draft that was not accepted, is not given out. So the answer does not depend on the
proposer at all, however it guesses: every distribution over answers is kept exactly, and a seeded request repeats itself with and
without speculation.

Speculative sampling with p_target / p_draft (Leviathan et al. 2023, arXiv:2211.17192) keeps the distribution but not the tokens. For a proposer
that names one token, p_draft = 1 there, both accept with the same probability, the target's of that token. A draft model that
samples could be accepted more often by that rule, the overlap of two distributions instead of the target's share of the draft
model's best token; that is not used.

One reservation, as for every change of the batch: a pass over 1 + k tokens may round logits otherwise than one over a single token, so
choices between nearly equal tokens may fall otherwise, unless --batch-invariant is on.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Many

import torch

from headway.engine.sampler import SampledToken
from headway.engine.sequence import Sequence
from headway.engine.speculation.sequence_state import state_of
from headway.engine.step_plan import Chunk


def rows_of(chunks: Many[Chunk]) -> list[Sequence]:
    """What the sampler shall see for the rows of these chunks, 1 + len(drafts) for each."""
    rows: list[Sequence] = []
    for chunk in chunks:
        if chunk.drafts:
            rows += state_of(chunk.sequence).rows.of(chunk.sequence, chunk.drafts)
        else:
            rows.append(chunk.sequence)
    return rows


def verified(chunks: Many[Chunk], drawn: Many[SampledToken]) -> list[tuple[Sequence, SampledToken]]:
    """The tokens that the sequences get, in order; `drawn` has one for each row of `rows_of`. Sets `rejected` of the chunks."""
    out: list[tuple[Sequence, SampledToken]] = []
    rows = iter(drawn)
    for chunk in chunks:
        if chunk.drafts:
            out += ((chunk.sequence, token) for token in _accepted(chunk, rows))
        else:
            out.append((chunk.sequence, next(rows)))
    return out


def _accepted(chunk: Chunk, rows: Iterator[SampledToken]) -> list[SampledToken]:
    drawn = [next(rows) for _ in range(1 + len(chunk.drafts))]
    right = 0
    while right < len(chunk.drafts) and drawn[right].token_id == chunk.drafts[right]:
        right += 1
    chunk.rejected = len(chunk.drafts) - right
    counts = chunk.sequence.output_counts
    if counts is not None:  # the sampler counted the token of row 0; those of the other rows went into copies
        with torch.inference_mode():
            for token in drawn[1 : right + 1]:
                counts[token.token_id] += 1
    return drawn[: right + 1]
