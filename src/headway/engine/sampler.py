"""Sampler: from the logits of one step to the next token of each sequence, with log-probabilities where asked for."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headway.engine.draws import stream, uniform
from headway.engine.logits_processing import narrow, penalise, restrict
from headway.engine.processor_rows import ProcessorRows
from headway.engine.sampling_batch import SamplingBatch
from headway.engine.sequence import Sequence

NO_TOKEN = -1
NOTHING_ALLOWED = "no token is allowed"  # stop_reason where allowed_token_ids, bad_words and the like leave nothing
NOT_FINITE = "the model computed no finite number for the next token"

RankedLogprob = tuple[int, float, int]  # token id, natural log-probability, 1-based rank


@dataclass(frozen=True, slots=True)
class SampledToken:
    """The next token of one sequence; `logprobs` has the token itself first, then the alternatives by rank.

    `token_id` is NO_TOKEN when there is none to choose: without `error` what the request itself asked for forbids every
    token, which ends it; with `error` something went wrong.
    """

    token_id: int
    logprobs: list[RankedLogprob] | None = None
    error: str | None = None


class Sampler:
    """Order of operations as in vLLM (contract/engine 2.3). One uniform number per token is turned into a draw by the
    inverse of the cumulative distribution: the same distribution as vLLM's exponential race, whose 49k random numbers
    per row cost 30 ms at batch 32 on two cores (docs/lab.md).

    Where the uniform numbers come from: `draws`. What else runs in the batch never decides them.
    """

    def __init__(
        self, vocab_size: int, *, seed: int = 0, logprobs_mode: str = "raw_logprobs", processors: ProcessorRows | None = None
    ):
        self.vocab_size = vocab_size
        self.mode = logprobs_mode
        self._processors = processors
        self.seed = seed
        self._batch: SamplingBatch | None = None

    @torch.inference_mode()
    def sample(self, logits: torch.Tensor, sequences: list[Sequence]) -> list[SampledToken]:
        """`logits` [N, V] float32, one row for each sequence; changed in place."""
        batch = self._batch
        if batch is None or batch.sequences != sequences:
            batch = self._batch = SamplingBatch.of(sequences, self.vocab_size)
        raw = logits[batch.logprob_rows] if batch.logprob_rows and self.mode.startswith("raw") else None
        restrict(logits, batch)
        wrong: dict[int, str | None] = {}
        if self._processors is not None:
            self._processors.update(sequences)
            wrong.update(self._processors.apply(logits, argmax_invariant=False))
        penalise(logits, batch)
        best = logits.argmax(-1)
        top = logits.gather(1, best.unsqueeze(1)).squeeze(1)
        failed = {i: _no_choice(top[i]) for i in torch.nonzero(~top.isfinite()).flatten().tolist()} | wrong
        tokens = best if batch.all_greedy else self._draw(logits, batch, best, failed)
        ids: list[int] = tokens.tolist()
        for i in batch.penalised:
            counts = sequences[i].output_counts
            if counts is not None:
                counts[ids[i]] += 1
        found = iter(self._logprobs(raw if raw is not None else logits[batch.logprob_rows], batch, tokens)) if batch.logprob_rows else iter(())
        wanted = set(batch.logprob_rows)
        out = [SampledToken(t, next(found) if i in wanted else None) for i, t in enumerate(ids)]
        for i, error in failed.items():
            out[i] = SampledToken(NO_TOKEN, error=error)
        return out

    def _draw(
        self, logits: torch.Tensor, batch: SamplingBatch, best: torch.Tensor, failed: dict[int, str | None]
    ) -> torch.Tensor:
        """Greedy rows keep `best`, decided before the temperature, which they do not have. For the others the first token at
        which the cumulative probability exceeds u; in float64, so that rare tokens keep their share. Adds to `failed`."""
        logits.div_(batch.temperature)
        if self._processors is not None:
            failed |= {i: error for i, error in self._processors.apply(logits, argmax_invariant=True).items() if i not in failed}
        narrow(logits, batch)
        numbers = [0.0 if s.params.greedy else self._uniform(s) for s in batch.sequences]
        probs = logits.softmax(-1)
        cumulative = probs.cumsum(-1, dtype=torch.float64)
        targets = torch.tensor(numbers, dtype=torch.float64) * cumulative[:, -1]
        at = torch.searchsorted(cumulative, targets.unsqueeze(1), right=True).clamp_max_(logits.shape[1] - 1)
        # u may round up to the total, and the search then runs past the last token that can be drawn.
        at = torch.where(probs.gather(1, at) > 0, at, best.unsqueeze(1)).squeeze(1)
        return torch.where(batch.greedy, best, at)

    def _uniform(self, sequence: Sequence) -> float:
        return uniform(stream(self.seed, sequence.params.seed, sequence.order), sequence.num_output)

    def _logprobs(self, rows: torch.Tensor, batch: SamplingBatch, tokens: torch.Tensor) -> list[list[RankedLogprob]]:
        table = rows if self.mode.endswith("logits") else rows.log_softmax(-1)
        params = [batch.sequences[i].params for i in batch.logprob_rows]
        wanted = [self.vocab_size if p.logprobs == -1 else p.logprobs or 0 for p in params]
        chosen = tokens[batch.logprob_rows].tolist()
        extra = [batch.extra_ids.get(i, []) for i in batch.logprob_rows]
        return rank_rows(table, chosen, wanted, extra)


def _no_choice(top: torch.Tensor) -> str | None:
    return None if float(top) == float("-inf") else NOT_FINITE


def rank_rows(
    table: torch.Tensor, chosen: list[int], wanted: list[int], extra: list[list[int]] | None = None
) -> list[list[RankedLogprob]]:
    """For each row of `table` [N, V]: the chosen token with its rank (count of values >= its own), then `wanted` best."""
    picked = torch.tensor(chosen).unsqueeze(1)
    own = table.gather(1, picked)
    ranks = torch.count_nonzero(table >= own, dim=1).tolist()
    own_values = own.squeeze(1).tolist()
    width = max(wanted, default=0)
    values, ids = table.topk(width, dim=1) if width else (None, None)
    best_values = values.tolist() if values is not None else [[]] * len(chosen)
    best_ids = ids.tolist() if ids is not None else [[]] * len(chosen)
    out = []
    for i, token in enumerate(chosen):
        row = [(token, own_values[i], ranks[i])]
        row += [(t, v, r) for r, (t, v) in enumerate(zip(best_ids[i][: wanted[i]], best_values[i][: wanted[i]], strict=True), 1) if t != token]
        for t in (extra[i] if extra else []):
            value = float(table[i, t])
            row.append((t, value, int((table[i] >= value).sum())))
        out.append(row)
    return out
