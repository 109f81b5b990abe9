"""Where Triton's kernels can run here: on a CUDA device, or in Triton's interpreter on the CPU, for tests."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Final

import torch

from headway.errors import ConfigError
from headway.kernels.native.library import VARIABLE

NAME: Final = "triton"  # what the variable is set to
INTERPRETER: Final = "TRITON_INTERPRET"  # read by Triton itself when it is imported
_TRUE: Final = frozenset({"1", "true", "on", "y", "yes"})
_FIX: Final = f"Leave {VARIABLE} out for the kernels of the CPU."


def interpreted() -> bool:
    """Whether kernels are run step by step in numpy: slow, and the same arithmetic."""
    return os.environ.get(INTERPRETER, "").strip().lower() in _TRUE


def triton_place() -> torch.device:
    """The CUDA device, or the CPU where the interpreter is switched on. Raises ConfigError (`unknown_kernels`) where there is neither,
    or no Triton."""
    if find_spec("triton") is None:
        raise _refusal("the package triton is not installed", "Install it with `pip install 'headway[gpu]'`.")
    if interpreted():
        return torch.device("cpu")
    if not torch.cuda.is_available():
        build = "this torch is built without CUDA" if torch.version.cuda is None else "torch finds no CUDA device"
        raise _refusal(f"{build}, and on a CPU these kernels run in Triton's interpreter only ({INTERPRETER}=1, for tests)", _FIX)
    return torch.device("cuda", torch.cuda.current_device())


def _refusal(found: str, fix: str) -> ConfigError:
    return ConfigError(f"{VARIABLE}={NAME} needs a CUDA device: {found}", reason="unknown_kernels", param=VARIABLE, fix=fix)
