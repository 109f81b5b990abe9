"""The VLLM_SRUN_* variables: which the worker reads, which are the router's, which are gone."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

READ: Final[Mapping[str, str]] = {
    "VLLM_SRUN_API_KEY": "as --api-key",
    "VLLM_SRUN_AUTOTUNE_CACHE": "as --autotune-cache",
}
OF_THE_ROUTER: Final = frozenset(
    {"VLLM_SRUN_COMMAND", "VLLM_SRUN_DIR", "VLLM_SRUN_CACHE_DIR", "VLLM_SRUN_CPU_THREADS", "VLLM_SRUN_READY_TIMEOUT", "VLLM_SRUN_RESULT_CACHE"}
)
REMOVED: Final[Mapping[str, str]] = {
    "VLLM_SRUN_CPU_PROCESSES": "it was removed; a worker has one process, --threads (in the router VLLM_SRUN_CPU_THREADS) says how many threads",
}


def strange_variables(environment: Mapping[str, str]) -> list[str]:
    """One sentence for each VLLM_SRUN_* variable that changes nothing here because nobody knows it, or because it is gone."""
    known = {*READ, *OF_THE_ROUTER}
    sentences = []
    for name in sorted(environment):
        if name in REMOVED:
            sentences.append(f"{name} has no effect: {REMOVED[name]}")
        elif name.startswith("VLLM_SRUN_") and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            sentences.append(f"Unknown environment variable {name}" + (f". Did you mean {near[0]}?" if near else ""))
    return sentences
