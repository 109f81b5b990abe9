"""Run the model once before the first request, so that no request pays for first-use work (thread pools, oneDNN primitives)."""

from __future__ import annotations

import numpy as np
import torch

from headway.engine.model_runner import ModelRunner
from headway.kernels.batch import ForwardBatch
from headway.kvcache.block_pool import NULL_BLOCK


@torch.inference_mode()
def warm_up(runner: ModelRunner) -> None:
    """One prefill of a block and one decode step, in the null block, which is cleared again."""
    size = runner.block_size
    for start, count in ((0, size - 1), (size - 1, 1)):
        if count:
            hidden = runner.model(_batch(start, count, size), runner.kv)
            runner.model.logits(hidden)
    runner.clear([NULL_BLOCK])


def _batch(start: int, count: int, block_size: int) -> ForwardBatch:
    positions = torch.arange(start, start + count)
    return ForwardBatch(
        token_ids=torch.zeros(count, dtype=torch.int64),
        positions=positions,
        slots=positions + NULL_BLOCK * block_size,
        query_lens=np.array([count], dtype=np.int32),
        context_lens=np.array([start + count], dtype=np.int32),
        block_tables=np.array([[NULL_BLOCK]], dtype=np.int32),
        logits_rows=torch.tensor([count - 1]),
    )
