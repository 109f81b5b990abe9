"""RecordedForward: a forward pass as one program of native kernels, so that a step costs one call instead of one for each kernel."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.native.step_inputs import StepInputs
from headway.kernels.native.tape import Recording, Tape
from headway.kernels.native.views_only import NotRecordable, ViewsOnly
from headway.kernels.paged_kv import PagedKV

_log = logging.getLogger(__name__)
Forward = Callable[[ForwardBatch, PagedKV], torch.Tensor]


@dataclass(frozen=True, slots=True)
class StepLimits:
    """Most tokens and sequences of a step, most positions of a sequence."""

    tokens: int
    sequences: int
    positions: int


class RecordedForward:
    """Runs batches over the storage that it was recorded with, and hands others on to the plain pass. The hidden states that it returns
    live until the next call."""

    def __init__(self, recording: Recording, inputs: StepInputs, kv: PagedKV, hidden: torch.Tensor, plain: Forward):
        self._recording = recording
        self._inputs = inputs
        self._kv = kv
        self._hidden = hidden
        self._plain = plain

    def __call__(self, batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
        """[N, hidden] of the wanted rows."""
        if kv is not self._kv or not self._inputs.fits(batch):
            return self._plain(batch, kv)
        self._recording.run(*self._inputs.load(batch))
        return self._hidden[: len(batch.logits_rows)]


def record_forward(forward: Forward, tape: Tape, kv: PagedKV, limits: StepLimits) -> Forward:
    """`forward` itself when it computes anything that is no native kernel."""
    tokens, outputs = limits.tokens, limits.tokens + 1
    # The three sizes must be told apart (Tape.record).
    sequences = limits.sequences if limits.sequences not in (tokens, outputs) else outputs + 1
    inputs = StepInputs(tokens, outputs, sequences, -(-limits.positions // kv.block_size), kv.block_size)
    batch = inputs.as_batch()
    try:
        with torch.inference_mode(), tape.record(tokens, outputs, sequences) as recording, ViewsOnly():  # type: ignore[no-untyped-call]
            hidden = forward(batch, kv)
    except NotRecordable as reason:
        _log.info("The forward pass runs kernel by kernel: it computes %s, which is no native kernel", reason)
        return forward
    _log.info("The forward pass is one program of %d kernels; %.0f MB of memory", len(recording.program), recording.arena.nbytes / 1e6)
    return RecordedForward(recording, inputs, kv, hidden, forward)
