"""What the log says, once for a model, about weights that are unpacked while they are loaded."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import torch

from headway.artifacts.card import TensorInfo
from headway.quantization.packed_weight import PackedTensor
from headway.quantization.stored_format import stored_format

_log = logging.getLogger(__name__)


def log_unpacked(stored: Iterable[TensorInfo], dtype: torch.dtype) -> None:
    """Of the packed weights among `stored`; nothing when there are none."""
    packed = [each for each in stored if isinstance(each, PackedTensor)]
    if packed:
        _log.info(
            "%d weights are stored as %s; they are unpacked to %s while they are loaded, so memory and speed are those of an unquantized"
            " model", len(packed), stored_format(packed).title, dtype,
        )  # fmt: skip
