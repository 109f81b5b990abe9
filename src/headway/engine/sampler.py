"""Sampler: from the logits of one step to the next token of each sequence, with log-probabilities where asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from headway.engine.draws import stream, uniform
from headway.engine.logits_processing import penalise, restrict
from headway.engine.processor_rows import ProcessorRows
from headway.engine.sampling_batch import SamplingBatch
from headway.engine.sequence import Sequence
from headway.engine.structured.row_masks import keep_to_forms
from headway.kernels.sampling import SamplingKernels
from headway.kernels.torch_sampling import TORCH_SAMPLING

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
        self, vocab_size: int, *, seed: int = 0, logprobs_mode: str = "raw_logprobs", processors: ProcessorRows | None = None,
        kernels: SamplingKernels = TORCH_SAMPLING,
    ):  # fmt: skip
        self.vocab_size = vocab_size
        self.mode = logprobs_mode
        self._processors = processors
        self._kernels = kernels
        self.seed = seed
        self._batch: SamplingBatch | None = None

    @torch.inference_mode()
    def sample(self, logits: torch.Tensor, sequences: list[Sequence]) -> list[SampledToken]:
        """`logits` [N, V] float32, one row for each sequence; changed in place."""
        batch = self._batch
        if batch is None or batch.sequences != sequences:
            batch = self._batch = SamplingBatch.of(sequences, self.vocab_size)
        if batch.formed:
            keep_to_forms(logits, sequences, batch.formed, self._kernels)
        raw = logits[batch.logprob_rows] if batch.logprob_rows and self.mode.startswith("raw") else None
        restrict(logits, batch)
        wrong: dict[int, str | None] = {}
        if self._processors is not None:
            self._processors.update(sequences)
            wrong.update(self._processors.apply(logits, argmax_invariant=False))
        penalise(logits, batch)
        best, top = self._kernels.argmax(logits)
        failed = {i: _no_choice(value) for i, value in enumerate(top.tolist()) if not math.isfinite(value)} | wrong
        kept = bool(batch.logprob_rows) and raw is None
        tokens = best if batch.all_greedy else self._draw(logits, batch, best, failed, kept)
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
        self, logits: torch.Tensor, batch: SamplingBatch, best: torch.Tensor, failed: dict[int, str | None], kept: bool
    ) -> torch.Tensor:
        """Greedy rows keep `best`, decided before the temperature, which they do not have. Adds to `failed`. With `kept`, logits
        become what was drawn from."""
        choices, top = batch.choices, best
        if self._processors is not None:
            logits.div_(choices.temperature.unsqueeze(1))
            failed |= {i: error for i, error in self._processors.apply(logits, argmax_invariant=True).items() if i not in failed}
            choices, top = choices.tempered, self._kernels.argmax(logits)[0]
        numbers = torch.tensor([0.0 if s.params.greedy else self._uniform(s) for s in batch.sequences], dtype=torch.float64)
        tokens = self._kernels.draw(logits, choices, numbers, top, kept)
        return tokens if top is best else torch.where(choices.drawn, tokens, best)

    def _uniform(self, sequence: Sequence) -> float:
        return uniform(stream(self.seed, sequence.params.seed, sequence.order), sequence.num_output)

    def _logprobs(self, rows: torch.Tensor, batch: SamplingBatch, tokens: torch.Tensor) -> list[list[RankedLogprob]]:
        params = [batch.sequences[i].params for i in batch.logprob_rows]
        wanted = [self.vocab_size if p.logprobs == -1 else p.logprobs or 0 for p in params]
        chosen = tokens[batch.logprob_rows].tolist()
        extra = [batch.extra_ids.get(i, []) for i in batch.logprob_rows]
        return rank_rows(self._kernels, rows, chosen, wanted, extra, normalised=not self.mode.endswith("logits"))


def _no_choice(top: float) -> str | None:
    return None if top == float("-inf") else NOT_FINITE


def rank_rows(
    kernels: SamplingKernels, logits: torch.Tensor, chosen: list[int], wanted: list[int], extra: list[list[int]] | None = None, *,
    normalised: bool = True,
) -> list[list[RankedLogprob]]:  # fmt: skip
    """For each row of `logits` [N, V]: the chosen token with its rank (count of values >= its own), then `wanted` best, then `extra`.
    Values are log_softmax(logits), or the logits where they are not to be `normalised`."""
    asked = [[token, *(extra[i] if extra else [])] for i, token in enumerate(chosen)]
    found = kernels.rank(logits, asked, max(wanted, default=0), normalised)
    said = zip(found.values, found.ranks, strict=True)
    out = []
    for tokens, count, ids, values in zip(asked, wanted, found.best, found.best_values, strict=True):
        own, *others = [(token, *next(said)) for token in tokens]
        row = [own]
        row += [(t, v, r) for r, (t, v) in enumerate(zip(ids[:count], values[:count], strict=True), 1) if t != own[0]]
        out.append(row + others)
    return out
