"""Whether answers must be equal to the last bit whatever runs beside them, and the parts that make them so."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

import torch

from headway.engine.row_sampler import RowSampler
from headway.engine.sampler import Sampler
from headway.errors import ConfigError
from headway.kernels.choice import engine_kernels
from headway.kernels.interface import Kernels
from headway.kernels.invariant_backend import INVARIANT

_log = logging.getLogger(__name__)
_VARIABLE = "VLLM_BATCH_INVARIANT"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The kernels that a model is built on, and the sampler that reads its logits."""

    kernels: Kernels
    sampler: type[Sampler]


def arithmetic(asked: bool, dtype: torch.dtype) -> Arithmetic:
    """`asked` by --batch-invariant; the environment variable VLLM_BATCH_INVARIANT=1 asks as well. Raises ConfigError for
    another value of the variable."""
    value = os.environ.get(_VARIABLE, "0")
    if value not in ("", "0", "1"):
        raise ConfigError(f"{_VARIABLE} must be 0 or 1, found {value[:100]!r}", param=_VARIABLE)
    if not asked and value != "1":
        return Arithmetic(engine_kernels(dtype), Sampler)
    _log.info("Batch-invariant mode: the same request gets the same bits whatever runs beside it; computing takes longer")
    return Arithmetic(INVARIANT, RowSampler)
