"""RecordedEncoding: a pass through all layers of an encoder as one program of native kernels, for batches that are small."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import torch

from headway.kernels.native.row_inputs import RowInputs
from headway.kernels.native.tape import Recording, Tape
from headway.kernels.native.views_only import NotRecordable, ViewsOnly

_log = logging.getLogger(__name__)
# Where the calls from Python weigh: beyond, computing takes so long that they do not, and the memory that is kept would grow.
_TOKENS: Final = 512
_ROWS: Final = 64


class RecordedEncoding:
    """Runs what `inputs` holds."""

    def __init__(self, recording: Recording, inputs: RowInputs, hidden: torch.Tensor, tape: Tape):
        self.inputs = inputs
        self._recording = recording
        self._hidden = hidden
        self._tape = tape

    def run(self, tokens: int, rows: int) -> torch.Tensor:
        """[tokens, hidden]. Raises IndexError for an id or a position beyond its table."""
        self._recording.run(tokens, 1, rows)
        self._tape.refuse_wrong_row(0)
        return self._hidden[:tokens].clone()


def record_encoding(encode: Callable[[RowInputs], torch.Tensor], tape: Tape) -> RecordedEncoding | None:
    """`encode`: all layers over all of `inputs` -> [tokens, hidden]. None where it computes anything that is no native kernel."""
    inputs = RowInputs(_TOKENS, _ROWS)
    try:
        # The three sizes must be told apart (Tape.record).
        with torch.inference_mode(), tape.record(_TOKENS, _TOKENS + 1, _ROWS) as recording, ViewsOnly():  # type: ignore[no-untyped-call]
            hidden = encode(inputs)
    except NotRecordable as reason:
        _log.debug("Small batches run kernel by kernel: %s is no native kernel", reason)
        return None
    return RecordedEncoding(recording, inputs, hidden, tape)
