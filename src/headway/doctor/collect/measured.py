"""What this machine can do at most, measured in a few seconds: reading memory, multiplying matrices, reading the model's file."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Final

from headway.artifacts.cache_folders import headway_cache
from headway.host.host_roofs import keep_host_roofs, measure_host_roofs

_READ_AT_MOST: Final = 512 << 20
_SECONDS_AT_MOST: Final = 5.0
_PIECE: Final = 8 << 20


def measured_part(model: Path | None) -> dict[str, Any]:
    """`host.memory_bandwidth_gb_s`, `host.matrix_tflops` by format and, with a model on disk, `host.io`. Imports torch."""
    roofs = keep_host_roofs(measure_host_roofs(), headway_cache())
    part: dict[str, Any] = {
        "memory_bandwidth_gb_s": round(roofs.read_bandwidth / 1e9, 1),
        "matrix_tflops": {name: round(rate / 1e12, 3) for name, rate in roofs.matrix.items()},
    }
    largest = _largest_file(model) if model is not None else None
    if largest is not None:
        part["io"] = {"path": str(largest), "read_mb_s": round(file_read_rate(largest) / 1e6, 1)}
    return {"host": part}


def _largest_file(model: Path) -> Path | None:
    files = [model] if model.is_file() else [entry for entry in model.iterdir() if entry.is_file()] if model.is_dir() else []
    return max(files, key=lambda file: file.stat().st_size, default=None)


def file_read_rate(path: Path) -> float:
    """Bytes per second of reading up to 512 MiB from the start, at most five seconds, after asking the kernel to forget
    what it keeps of the file (which it may not do for pages that another process has mapped)."""
    with path.open("rb", buffering=0) as stream:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        start, done = time.perf_counter(), 0
        while done < _READ_AT_MOST and time.perf_counter() - start < _SECONDS_AT_MOST and (piece := stream.read(_PIECE)):
            done += len(piece)
        seconds = time.perf_counter() - start
    return done / seconds if seconds > 0 else 0.0
