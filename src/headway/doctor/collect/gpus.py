"""Accelerators through NVIDIA's management library, else by `nvidia-smi`. Nothing is initialised on them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from headway.doctor.collect.nvidia_smi import gpus_by_command
from headway.errors import DoctorError

_GIB: Final = 2**30


def gpus_part(root: Path = Path("/")) -> dict[str, Any]:
    """`gpus` and `driver` of a host; `gpus: []` where there is no sign of a card. With a sign, but nobody who can tell more,
    `gpus_unknown` says why, and there is no `gpus`: nothing may be concluded from it."""
    try:
        return _by_library()
    except Exception as error:  # of a library that is not ours
        why = "pynvml is not installed" if isinstance(error, ModuleNotFoundError) else f"NVML: {type(error).__name__}: {error}"
    try:
        return gpus_by_command()
    except DoctorError as error:
        return {"gpus_unknown": f"{why}; {error.message}"} if _has_a_sign(root) else {"gpus": []}


def _has_a_sign(root: Path) -> bool:
    """Of NVIDIA's driver: its entry in /proc, or a device."""
    return (root / "proc/driver/nvidia/version").exists() or any((root / "dev").glob("nvidia[0-9]*"))


def _by_library() -> dict[str, Any]:
    library = import_module("pynvml")
    library.nvmlInit()
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
