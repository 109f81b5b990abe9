"""Decode steps of fixed sizes: the buffers that they read, the size that a batch is padded to, and what is not captured. A replay is imitated
by running the pass again on the same buffers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.interface import Kernels
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kernels.triton.decode_buffers import DecodeBuffers, decode_buffers
from headway.models.graphed_forward import Captured, GraphedForward, graph_forward, most_captured, padded_sizes
from tests.kernels.batches import Chunk, make_batch
from tests.models.runs import BLOCK, Session, difference, tokens
from tests.models.tiny_models import TinyModel
from tests.models.triton.test_models import loaded


def imitated(run: Callable[[], torch.Tensor]) -> Captured:
    hidden = run().clone()

    def replay() -> None:
        hidden.copy_(run())

    return Captured(replay, hidden)


def test_sizes() -> None:
    assert padded_sizes(1) == (1,)
    assert padded_sizes(5) == (1, 2, 3, 4, 5)
    assert padded_sizes(40) == (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40)
    assert [most_captured(count) for count in (1, 256, 1000)] == [1, 256, 256]
    for most in range(1, 300):
        sizes = padded_sizes(most)
        assert sizes[-1] == most
        assert all(1 - (below + 1) / size <= 1 / 3 for below, size in pairwise(sizes))


def storage(blocks: int = 12) -> PagedKV:
    return PagedKV(blocks, BLOCK, KVShape(1, 2, 16), torch.float32)


def decodes(count: int) -> list[Chunk]:
    return [Chunk([7 + i], 5 + i, [4 * i, 4 * i + 1, 4 * i + 3]) for i in range(count)]


def test_a_batch_is_loaded_and_padded() -> None:
    buffers = decode_buffers(storage(), 4, 3 * BLOCK)
    with torch.inference_mode():
        buffers.load(make_batch(decodes(3), BLOCK), 4)
        buffers.load(made := make_batch(decodes(2), BLOCK), 3)
    found = buffers.batch(3)
    assert found.token_ids.tolist() == [7, 8, 0]
    assert found.positions.tolist() == [4, 5, 0]
    assert found.slots.tolist() == [*made.slots.tolist(), -1]
    assert found.plan.slots is found.slots
    assert found.plan.context_lens.tolist() == [5, 6, 0]
    assert found.plan.block_tables[:2, :2].tolist() == made.block_tables.tolist()
    assert found.plan.query_lens.tolist() == [1, 1, 1]
    assert found.plan.first_rows.tolist() == found.logits_rows.tolist() == [0, 1, 2]
    assert found.context_lens.tolist() == [3 * BLOCK] * 3
    assert found.on(torch.device("cpu")) is found


def test_what_fits() -> None:
    buffers = DecodeBuffers(storage(), 2, 3)
    batch = make_batch(decodes(2), BLOCK)
    assert buffers.fits(batch)
    assert not buffers.fits(make_batch(decodes(3), BLOCK))  # sequences
    assert not buffers.fits(make_batch([Chunk([1], 13, [0, 1, 2, 3])], BLOCK))  # blocks
    assert not buffers.fits(make_batch([Chunk([1, 2], 5, [0, 1])], BLOCK))  # tokens of a sequence
    assert not buffers.fits(replace(batch, logits_rows=torch.tensor([1, 0])))
    assert not buffers.fits(replace(batch, logits_rows=torch.tensor([0])))
    with pytest.raises(ValueError, match="positive sizes"):
        DecodeBuffers(storage(), 0, 3)


def test_padded_steps_compute_what_the_model_computes(one_layer: TinyModel, kernels: Kernels) -> None:
    """Prefills, and decodes of three sequences and of one, for which there are graphs of two and four."""
    model, texts = loaded(one_layer, kernels), [tokens(seed, 4) for seed in range(3)]
    session = Session(model, [4] * 3)
    buffers = decode_buffers(session.kv, 4, 2 * BLOCK)
    plain: list[int] = []

    def forward(batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        plain.append(len(batch.query_lens))
        return model.forward(batch, kv)

    with torch.inference_mode():
        graphs = {size: imitated(partial(model.forward, buffers.batch(size), session.kv)) for size in (2, 4)}
        session.forward = GraphedForward(graphs, buffers, session.kv, forward)
        found = [session.step(*[(i, texts[i][:2], 2) for i in range(3)])]
        for length, count in ((3, 3), (4, 1)):
            found.append(session.step(*[(i, texts[i][:length], 1) for i in range(count)]))
    assert plain == [3]
    for i, length in enumerate((4, 3, 3)):
        logits = torch.cat([rows[i] for rows in found if len(rows) > i])
        assert difference(logits, one_layer.logits(texts[i][:length])) <= 1e-4
    nobodys = sorted(set(range(session.kv.num_blocks)) - {block for table in session.tables for block in table})
    assert not any(layer[:, :, nobodys].any() for layer in session.kv.layers)


def test_every_size_is_captured_the_largest_first() -> None:
    kv, seen = storage(), []

    def forward(batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        seen.append(len(batch.query_lens))
        return torch.full((len(batch.query_lens), 1), float(len(seen)))

    found = graph_forward(forward, DecodeBuffers(kv, 5, 3), kv, imitated)
    assert seen == [5, 4, 3, 2, 1]
    with torch.inference_mode():
        assert found(make_batch(decodes(2), BLOCK), kv).tolist() == [[6.0], [6.0]]
    assert seen[5:] == [2]


def test_other_storage_runs_kernel_by_kernel() -> None:
    asked: list[PagedKV] = []

    def plain(batch: object, kv: PagedKV) -> torch.Tensor:
        asked.append(kv)
        return torch.zeros(1, 1)

    kv, other = storage(), storage()
    forward = GraphedForward({1: Captured(lambda: None, torch.ones(1, 1))}, DecodeBuffers(kv, 1, 3), kv, plain)
    batch = make_batch([Chunk([1], 5, [0, 1])], BLOCK)
    assert forward(batch, kv).item() == 1
    assert forward(batch, other).item() == 0
    assert forward(make_batch([Chunk([1, 2], 5, [0, 1])], BLOCK), kv).item() == 0
    assert asked == [other, kv]
