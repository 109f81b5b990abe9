"""The self-check of a fallback model: what it computes piece by piece in a paged cache against what transformers computes
at once with attention of its own. It finds whatever the trial run cannot see: state that is kept beside keys and values,
attention that adds something of its own, positions that are not taken from outside.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.paged_kv import PagedKV
from headway.models.fallback.attention import NAME
from headway.models.fallback.model import FallbackModel
from headway.models.fallback.refusal import first_line, refusal

_BLOCK: Final = 4
_LENGTHS: Final = (14, 6)
# Steps of two sequences: how many new tokens of each.
_STEPS: Final = ((8, 0), (5, 4), (1, 2))
# Median over a step of |logits - expected| / |expected|, rows centred. Summing in another order makes 1e-6 in float32 and
# up to 0.03 in bfloat16 (seeded models of 15 architectures); state that is lost makes about 1.
_TOLERANCE: Final = {torch.float32: 1e-3, torch.bfloat16: 0.15}


def check_fallback(name: str, model: FallbackModel, original: Any) -> None:
    """Raises ArtifactError (`unsupported_architecture`) when the two differ. `original` is the model inside."""
    vocabulary = model.config.vocab_size
    texts = [[1 + (37 * i + 11 * k) % (min(vocabulary, 1000) - 1) for i in range(length)] for k, length in enumerate(_LENGTHS)]
    try:
        expected = [_at_once(original, text) for text in texts]
        worst = max(_errors(model, texts, expected))
    except Exception as error:  # code of many authors: anything may be raised
        raise refusal(name, f"its self-check fails: {type(error).__name__}: {first_line(error)}") from error
    if not worst <= _TOLERANCE[model.dtype]:
        raise refusal(
            name, f"computed piece by piece its logits differ from transformers' own by {worst:.2g} (relative): it keeps something beside"
            " keys and values, or attends in a way of its own",
        )  # fmt: skip


def _at_once(original: Any, text: list[int]) -> torch.Tensor:
    """float32 [T, vocabulary] from transformers alone."""
    original.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            logits: torch.Tensor = original(input_ids=torch.tensor([text]), use_cache=False).logits
    finally:
        original.set_attn_implementation(NAME)
    return logits[0].float()


def _errors(model: FallbackModel, texts: list[list[int]], expected: list[torch.Tensor]) -> list[float]:
    """The median error of each step."""
    blocks = -(-max(_LENGTHS) // _BLOCK)
    kv = PagedKV(2 * blocks, _BLOCK, model.config.kv_shape, model.dtype)
    done = [0] * len(texts)
    found = []
    for step in _STEPS:
        rows, wanted = [], []
        for index, count in enumerate(step):
            rows += [(index, position) for position in range(done[index], done[index] + count)]
            wanted.append(expected[index][done[index] : done[index] + count])
            done[index] += count
        logits = model.logits(model(_batch(texts, rows, done, step, blocks), kv))
        found.append(_distance(logits, torch.cat(wanted)))
    return found


def _distance(logits: torch.Tensor, wanted: torch.Tensor) -> float:
    ours, theirs = logits - logits.mean(-1, keepdim=True), wanted - wanted.mean(-1, keepdim=True)
    return float(((ours - theirs).norm(dim=-1) / theirs.norm(dim=-1).clamp_min(1e-6)).median())


def _batch(
    texts: list[list[int]], rows: list[tuple[int, int]], done: list[int], step: tuple[int, ...], blocks: int
) -> ForwardBatch:
    """Sequence k has the blocks k * blocks, k * blocks + 1, ...; sequences without new tokens are left out."""
    active = [index for index, count in enumerate(step) if count]
    positions = torch.tensor([position for _, position in rows])
    return ForwardBatch(
        token_ids=torch.tensor([texts[index][position] for index, position in rows]),
        positions=positions,
        slots=torch.tensor([index * blocks * _BLOCK + position for index, position in rows]),
        query_lens=np.array([step[index] for index in active], dtype=np.int32),
        context_lens=np.array([done[index] for index in active], dtype=np.int32),
        block_tables=np.array([range(index * blocks, (index + 1) * blocks) for index in active], dtype=np.int32),
        logits_rows=torch.arange(len(rows)),
    )
