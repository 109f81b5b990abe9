"""GraphedForward: steps in which every sequence has one new token, as graphs that a GPU runs without the host in between.

A graph has fixed sizes, so there is one for each of a few batch sizes, and a batch is padded to the next; everything else runs kernel by
kernel."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.paged_kv import PagedKV
from headway.models.recorded_forward import Forward

_log = logging.getLogger(__name__)
_MOST: Final = 256  # sequences of a captured step: beyond it the kernels take longer than the host needs to launch them


@dataclass(frozen=True, slots=True)
class Captured:
    """`replay` computes `hidden` anew from what its inputs hold then."""

    replay: Callable[[], None]
    hidden: torch.Tensor


Capture = Callable[[Callable[[], torch.Tensor]], Captured]


class GraphedForward:
    """Replays steps over the storage that was captured, and hands all others on to the plain pass. The hidden states that it returns live
    until the next call. `buffers` is what `Kernels.decode_buffers` makes."""

    def __init__(self, graphs: Mapping[int, Captured], buffers: Any, kv: PagedKV, plain: Forward):
        self._graphs = graphs
        self._sizes = sorted(graphs)
        self._buffers = buffers
        self._kv = kv
        self._plain = plain

    def __call__(self, batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        """[N, hidden] of the wanted rows."""
        if kv is not self._kv or not self._buffers.fits(batch):
            return self._plain(batch, kv)
        count = len(batch.query_lens)
        size = self._sizes[bisect_left(self._sizes, count)]
        self._buffers.load(batch, size)
        captured = self._graphs[size]
        captured.replay()
        return captured.hidden[:count]


def padded_sizes(most: int) -> tuple[int, ...]:
    """Batch sizes with a graph for steps of up to `most` sequences: powers of two and the middles between them, so that at most a third of
    a step is padding, and `most` itself."""
    sizes = {min(size, most) for power in range(most.bit_length() + 1) for size in (1 << power, 3 << power >> 1)}
    return tuple(sorted(sizes))


def graph_forward(forward: Forward, buffers: Any, kv: PagedKV, capture: Capture) -> GraphedForward:
    """Capture `forward` at every padded size. The largest comes first: smaller ones share its memory."""
    with torch.inference_mode():
        graphs = {size: capture(partial(forward, buffers.batch(size), kv)) for size in reversed(padded_sizes(buffers.sequences))}
    _log.info("Decode steps of up to %d sequences are %d CUDA graphs", buffers.sequences, len(graphs))
    return GraphedForward(graphs, buffers, kv, forward)


def most_captured(sequences: int) -> int:
    """Of steps with up to so many sequences, the largest that is captured."""
    return min(sequences, _MOST)


def cuda_capture(device: torch.device) -> Capture:
    """All graphs share one pool of memory: no two of them run at once."""
    pool = torch.cuda.graph_pool_handle()

    def capture(run: Callable[[], torch.Tensor]) -> Captured:
        here, beside = torch.cuda.current_stream(device), torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        beside.wait_stream(here)
        with torch.cuda.stream(beside):  # compiles kernels and makes handles, which capturing must not
            run()
        here.wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            hidden = run()
        return Captured(graph.replay, hidden)

    return capture
