"""Accelerators through NVIDIA's management library, where it is installed. Nothing is initialised on them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

_GIB: Final = 2**30


def gpus_part() -> dict[str, Any]:
    """`gpus` and `driver` of a host; `gpus: []` without a library or a card. Untested on a GPU here."""
    try:
        library = import_module("pynvml")
        library.nvmlInit()
    except Exception:
        return {"gpus": []}
    try:
        cards = [_card(library, index) for index in range(library.nvmlDeviceGetCount())]
        return {"driver": _text(library.nvmlSystemGetDriverVersion()), "gpus": cards}
    finally:
        library.nvmlShutdown()


def _card(library: Any, index: int) -> dict[str, Any]:
    handle = library.nvmlDeviceGetHandleByIndex(index)
    memory = library.nvmlDeviceGetMemoryInfo(handle)
    major, minor = library.nvmlDeviceGetCudaComputeCapability(handle)
    return {
        "index": index,
        "name": _text(library.nvmlDeviceGetName(handle)),
        "memory_gib": round(memory.total / _GIB, 2),
        "used_gib": round(memory.used / _GIB, 2),
        "capability": f"{major}.{minor}",
        "util_percent": library.nvmlDeviceGetUtilizationRates(handle).gpu,
        "processes": [
            {"pid": process.pid, "used_gib": round((process.usedGpuMemory or 0) / _GIB, 2)}
            for process in library.nvmlDeviceGetComputeRunningProcesses(handle)
        ],
    }


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
