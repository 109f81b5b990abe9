"""What the log says, once for a model, about weights that are unpacked while they are loaded."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import torch

from headway.quantization.packed_weight import PackedTensor
from headway.quantization.stored_format import stored_format

_log = logging.getLogger(__name__)


def log_unpacked(packed: Sequence[PackedTensor], dtype: torch.dtype) -> None:
    """Nothing for a model without packed weights."""
    if packed:
        _log.info(
            "%d weights are stored as %s; they are unpacked to %s while they are loaded, so memory and speed are those of an unquantized"
            " model", len(packed), stored_format(packed).title, dtype,
        )  # fmt: skip
