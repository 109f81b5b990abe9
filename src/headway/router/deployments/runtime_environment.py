"""RuntimeEnvironment: what the variables of the process say about model runtimes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headway.artifacts.cache_folders import headway_cache
from headway.errors import ConfigError
from headway.host.cpu_budget import cpu_budget
from headway.router.config.duration import DurationError, seconds

_MOST_DEFAULT_THREADS = 16
_DEFAULT_COMMAND = (sys.executable, "-m", "headway.cli.srun")


@dataclass(frozen=True, slots=True)
class RuntimeEnvironment:
    """`ready_timeout` in seconds; `threads` for each worker on a CPU; `result_cache` entries for each deployment, 0 = none; `folder` None = a
    private folder that is made when it is needed; `key` is sent to every runtime."""

    command: tuple[str, ...] = _DEFAULT_COMMAND
    folder: Path | None = None
    cache: Path | None = None
    threads: int = 1
    ready_timeout: float = 600.0
    result_cache: int = 4096
    key: str | None = None


def runtime_environment(variables: Mapping[str, str] = os.environ) -> RuntimeEnvironment:
    """Raises ConfigError for a variable that cannot be used."""
    budget = cpu_budget(environment=variables).threads
    command = shlex.split(variables.get("VLLM_SRUN_COMMAND", ""))
    folder = variables.get("VLLM_SRUN_DIR", "")
    cache = variables.get("VLLM_SRUN_CACHE_DIR", "")
    ready = variables.get("VLLM_SRUN_READY_TIMEOUT", "")
    return RuntimeEnvironment(
        command=tuple(command) or _DEFAULT_COMMAND,
        folder=Path(folder) if folder else None,
        cache=Path(cache) if cache else headway_cache() / "model-runtime",
        threads=_count(variables, "VLLM_SRUN_CPU_THREADS", 1, budget, max(1, min(_MOST_DEFAULT_THREADS, budget // 2))),
        ready_timeout=_bound(ready) if ready else 600.0,
        result_cache=_count(variables, "VLLM_SRUN_RESULT_CACHE", 0, 10_000_000, 4096),
        key=variables.get("VLLM_SRUN_API_KEY") or None,
    )


def _bound(text: str) -> float:
    try:
        found = seconds(text)
    except DurationError as error:
        raise ConfigError(f"VLLM_SRUN_READY_TIMEOUT: {error.message}", param="VLLM_SRUN_READY_TIMEOUT") from None
    if found == 0:
        raise ConfigError("VLLM_SRUN_READY_TIMEOUT must be more than 0", param="VLLM_SRUN_READY_TIMEOUT")
    return found


def _count(variables: Mapping[str, str], name: str, least: int, most: int, default: int) -> int:
    text = variables.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and least <= int(text[:12]) <= most):
        raise ConfigError(f"{name} must be a whole number from {least} to {most}, found {text[:40]!r}", param=name)
    return int(text)
