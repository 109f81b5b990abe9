"""Variables that change how a model server behaves, and those that look like it and are not known."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headway.doctor.evidence.context import masked
from headway.flags.environment import unknown_variables

_PREFIXES: Final = ("VLLM_", "HEADWAY_", "HF_", "NCCL_", "GLOO_", "CUDA_", "HIP_", "ROCR_", "NVIDIA_", "OMP_", "MKL_", "KMP_", "OPENBLAS_", "RAY_",
                    "PYTORCH_", "TORCH_", "SGLANG_", "LLAMA_", "GGML_", "TRANSFORMERS_", "TOKENIZERS_", "OTEL_")  # fmt: skip
_NAMES: Final = frozenset(
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "http_proxy", "https_proxy",
     "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "MALLOC_ARENA_MAX", "XDG_CACHE_HOME", "SSL_CERT_FILE", "LANG"}
)  # fmt: skip
# What people set and nobody reads.
_NOBODYS: Final = {"NCCL_TIMEOUT": "NCCL has no such variable"}


def environment_part(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that matter, secrets masked, sorted by name."""
    chosen = {name: env[name] for name in sorted(env) if name in _NAMES or name.startswith(_PREFIXES)}
    shown: dict[str, str] = masked(chosen)
    return shown


def process_environment(pid: int) -> dict[str, str]:
    """The environment a process was started with; empty when it may not be read."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in raw.split(b"\0") if entry)
    return {name: value for name, _, value in pairs}


def remarks(env: Mapping[str, str]) -> list[str]:
    """One sentence for each variable that nobody knows or reads, with the nearest known name. No values."""
    nobodys = [f"{name} is set and has no effect: {reason}" for name, reason in _NOBODYS.items() if name in env]
    return unknown_variables(env) + nobodys
