"""Which kernels a model is built on when nobody names others."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from functools import cache
from typing import Final

import torch

from headway.errors import ConfigError
from headway.kernels.interface import Kernels
from headway.kernels.native.backend import native_kernels
from headway.kernels.native.library import VARIABLE, chosen_set, native_library
from headway.kernels.native.pointwise import DTYPES
from headway.kernels.torch_backend import TORCH
from headway.kernels.triton.place import NAME as TRITON
from headway.kernels.triton.place import triton_place

_log = logging.getLogger(__name__)
_UNASKED: Final = "auto"  # what HEADWAY_KERNELS is when it is not set


def engine_kernels(dtype: torch.dtype) -> Kernels:
    """Those of a language model of an engine. Triton's where HEADWAY_KERNELS names them: a model on a CUDA device. Else native ones for as many
    threads as torch has now, where they are built, run here and compute in `dtype`; else torch's. float32 is asked
    for by who wants what the weights say to the last digit: products of integers round what they read to 8 bits. One thread at a time uses
    what is returned. Raises ConfigError (`unknown_kernels`) for a HEADWAY_KERNELS that is not there."""
    if wants_triton():
        return _triton(triton_place())
    chosen = None if os.environ.get(VARIABLE, _UNASKED) == "torch" or dtype not in DTYPES else chosen_set()
    _tell(chosen, dtype)
    if chosen is None:
        return TORCH
    kernels = native_kernels(chosen, torch.get_num_threads())
    return without_integers(kernels) if dtype == torch.float32 else kernels


def default_kernels(dtype: torch.dtype) -> Kernels:
    """The same for everything else, which is on the CPU. Raises ConfigError (`unknown_kernels`) for kernels of another device."""
    kernels = engine_kernels(dtype)
    if kernels.device.type != "cpu":
        raise ConfigError(
            f"{VARIABLE}={TRITON}: only language models of an engine (headway serve, LLM) run on {kernels.device}",
            reason="unknown_kernels", param=VARIABLE, fix=f"Leave {VARIABLE} out here.",
        )  # fmt: skip
    return kernels


def exact_kernels(dtype: torch.dtype) -> Kernels:
    """The same without products of integers, which round what they read to 8 bits: for answers that must agree with recorded ones."""
    return without_integers(default_kernels(dtype))


def without_integers(kernels: Kernels) -> Kernels:
    return kernels if kernels.integers is None else replace(kernels, integers=None)


def wants_triton() -> bool:
    """Whether HEADWAY_KERNELS names Triton's kernels. They are never chosen unasked."""
    return os.environ.get(VARIABLE, _UNASKED).strip().lower() == TRITON


@cache
def _triton(device: torch.device) -> Kernels:
    from headway.kernels.triton.backend import triton_kernels  # imports triton, which is optional

    _log.info("Kernels: Triton's, on %s", device if device.type != "cpu" else "the CPU, in Triton's interpreter")
    return triton_kernels(device)


@cache
def _tell(chosen: str | None, dtype: torch.dtype) -> None:
    """Once for each answer."""
    if chosen is not None:
        _log.info("Kernels: native, %s", chosen)
    elif os.environ.get(VARIABLE, _UNASKED) == "torch":
        _log.info("Kernels: torch's, as %s says", VARIABLE if VARIABLE in os.environ else "the default")
    elif dtype not in DTYPES:
        _log.info("Kernels: torch's, the native ones do not compute in %s", str(dtype).removeprefix("torch."))
    else:
        _log.warning("Kernels: torch's; %s", native_library().missing)
