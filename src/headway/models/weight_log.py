"""What the log says, once for a model, about the form that its weights have in memory."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence

from headway.artifacts.card import TensorInfo
from headway.capacity.weight_bytes import IntegerShare
from headway.models.fill import Stack
from headway.models.unpacking_log import log_unpacked

_log = logging.getLogger(__name__)


def log_weights(
    stacks: Sequence[Stack], dense: Sequence[Stack], tensors: Mapping[str, TensorInfo], share: IntegerShare, kernels: str, method: str | None
) -> None:
    """`dense`: those of `stacks` that are floats in memory; `share`: the others; `kernels`: the name of the backend; `method`: of
    quantizing while loading."""
    if share.parameters:
        _log.info(
            "Integer weights: %.1f %% of all, %.2f bits each with their scales; %s kernels multiply them with activations of 8 bits",
            100.0 * share.parameters / sum(math.prod(stack.shape) for stack in stacks), 8.0 * share.nbytes / share.parameters, kernels,
        )  # fmt: skip
    if dense:
        log_unpacked((part.stored(tensors) for stack in dense for part in stack.parts), dense[0].dtype)
    if method is not None and share.parameters:
        _log.info("--quantization %s: matrices are kept as what %s holds, and computed with as such", method, method)
    elif method is not None:
        _log.warning(
            "--quantization %s: the matrices of the layers are rounded to what %s holds and kept in %s, so answers are those of a quantized"
            " model, and memory and speed those of an unquantized one", method, method, dense[0].dtype,
        )  # fmt: skip
