"""ModelRunner: turns a StepPlan into one ForwardBatch, runs the model, and hands back the logits that are wanted."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from headway.engine.images.step_images import StepImages
from headway.engine.lora.step_adapters import StepAdapters
from headway.engine.pooling.reading import read_count, take_readouts
from headway.engine.sampler import RankedLogprob, rank_rows
from headway.engine.step_plan import Chunk, StepPlan
from headway.kernels.batch import ForwardBatch
from headway.kernels.paged_kv import PagedKV
from headway.kernels.sampling import SamplingKernels
from headway.kernels.torch_sampling import TORCH_SAMPLING
from headway.kvcache.runs import Run, forward_batch
from headway.models.causal_lm import CausalLM
from headway.models.recorded_forward import Forward

_LOGITS_SLICE = 128  # rows of prompt logits in memory at once: 128 x 49,152 x 4 bytes = 25 MB


@dataclass(slots=True)
class StepResult:
    """`logits` [N, V] float32, for each chunk of `sampling` one row and one more for each draft; `prompt_logprobs` for chunks of requests that want them; `read`: last chunks
    of prompts that are read, whose readouts have their result."""

    logits: torch.Tensor
    sampling: list[Chunk]
    prompt_logprobs: list[tuple[Chunk, list[list[RankedLogprob]]]]
    read: list[Chunk] = field(default_factory=list)


class ModelRunner:
    """Stateless between steps: all state is in the sequences, their block tables and the KV storage.

    Ids from `known_tokens` on are rows that pad the model's matrix: the tokenizer has no text for them, so they are no
    choice, and no part of the distribution that log-probabilities speak of.
    """

    def __init__(
        self, model: CausalLM, kv: PagedKV, block_size: int, known_tokens: int, forward: Forward | None = None,
        kernels: SamplingKernels = TORCH_SAMPLING, adapters: StepAdapters | None = None, images: StepImages | None = None,
    ):  # fmt: skip
        """`forward`: of the model, prepared for this storage; the model's own by default. `adapters` tells which rows they change,
        `images` which rows they give."""
        self.model = model
        self._forward = forward or model
        self._kernels = kernels
        self.kv = kv
        self.block_size = block_size
        self.known_tokens = known_tokens
        self._adapters = adapters
        self._images = images

    @torch.inference_mode()
    def execute(self, plan: StepPlan) -> StepResult:
        """Run the chunks of the plan. Keys and values of all of them are in the cache when this returns."""
        rows, sampling, scored, read = _wanted_rows(plan.chunks)
        hidden = self._forward(self.batch(plan.chunks, rows), self.kv)
        count = len(sampling) + sum(len(c.drafts) for c in sampling)
        logits = self._logits(hidden[:count])
        prompt_logprobs = []
        start = count
        for chunk, targets in scored:
            prompt_logprobs.append((chunk, self._score(hidden[start : start + len(targets)], targets, chunk)))
            start += len(targets)
        return StepResult(logits, sampling, prompt_logprobs, take_readouts(read, hidden[start:], self._logits) if read else [])

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        logits = self.model.logits(hidden)
        if self.known_tokens < logits.shape[1]:
            logits[:, self.known_tokens :] = float("-inf")
        return logits

    def clear(self, blocks: list[int]) -> None:
        """Zero blocks that may hold NaN: kernels read padding as 0 times whatever lies there."""
        if blocks:
            self.kv.clear(blocks)

    def batch(self, chunks: list[Chunk], rows: list[int]) -> ForwardBatch:
        """Flatten the chunks."""
        runs = [Run(c.sequence.tokens, c.sequence.table.blocks, c.start, c.count, c.drafts) for c in chunks]
        batch = forward_batch(runs, rows, self.block_size)
        if self._images is not None:
            batch = self._images.completed(batch, chunks)
        return batch if self._adapters is None else self._adapters.completed(batch, chunks)

    def _score(self, hidden: torch.Tensor, targets: list[int], chunk: Chunk) -> list[list[RankedLogprob]]:
        """Log-probabilities of given next tokens, a slice of rows at a time so that memory stays bounded."""
        wanted = chunk.sequence.params.prompt_logprobs or 0
        out: list[list[RankedLogprob]] = []
        for start in range(0, len(targets), _LOGITS_SLICE):
            part = targets[start : start + _LOGITS_SLICE]
            logits = self._logits(hidden[start : start + len(part)])
            width = logits.shape[1] if wanted == -1 else wanted
            out += rank_rows(self._kernels, logits, part, [width] * len(part))
        return out


def _wanted_rows(chunks: list[Chunk]) -> tuple[list[int], list[Chunk], list[tuple[Chunk, list[int]]], list[Chunk]]:
    """Rows of the flattened batch whose hidden state is needed: first those of chunks that sample, then the prompt
    positions that are to be scored, with the token that really follows each, then those of prompts that are read."""
    rows: list[int] = []
    sampling: list[Chunk] = []
    scored_rows: list[int] = []
    scored: list[tuple[Chunk, list[int]]] = []
    read_rows: list[int] = []
    read: list[Chunk] = []
    offset = 0
    for chunk in chunks:
        if chunk.sequence.request.readout is not None:
            if count := read_count(chunk):
                read_rows += range(offset + chunk.count - count, offset + chunk.count)
                read.append(chunk)
        elif chunk.samples:
            rows += range(offset + chunk.count - 1 - len(chunk.drafts), offset + chunk.count)
            sampling.append(chunk)
        sequence = chunk.sequence
        if sequence.params.prompt_logprobs is not None and sequence.index == 0:  # once for all n
            end = min(chunk.start + chunk.count, sequence.num_prompt - 1)
            if end > chunk.start:
                scored_rows += range(offset, offset + end - chunk.start)
                scored.append((chunk, sequence.tokens[chunk.start + 1 : end + 1]))
        offset += chunk.count
    return rows + scored_rows + read_rows, sampling, scored, read
