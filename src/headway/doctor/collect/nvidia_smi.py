"""Accelerators as `nvidia-smi` lists them: for a machine with a driver whose Python library is not installed."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any, Final

from headway.errors import DoctorError

_SECONDS: Final = 10
_GPU_FIELDS: Final = ("index", "uuid", "name", "memory.total", "memory.used", "utilization.gpu", "driver_version", "compute_cap")
_NOT_IN_OLD_DRIVERS: Final = "compute_cap"  # those before 495
_PROCESS_FIELDS: Final = ("gpu_uuid", "pid", "process_name", "used_memory")
_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?)(?: ?(MiB|%))?")
_UNIT: Final = re.compile(r" \[[^\]]*\]$")
_ERROR_CHARS: Final = 200


def gpus_by_command() -> dict[str, Any]:
    """`driver` and `gpus` of a host. Raises DoctorError (`gpus_unknown`) when the command is absent or fails."""
    try:
        cards = _asked("gpu", _GPU_FIELDS)
    except DoctorError as error:
        if _NOT_IN_OLD_DRIVERS not in error.message:
            raise
        cards = _asked("gpu", tuple(field for field in _GPU_FIELDS if field != _NOT_IN_OLD_DRIVERS))
    return gpus_of(cards, _asked("compute-apps", _PROCESS_FIELDS))


def _asked(what: str, fields: tuple[str, ...]) -> str:
    command = shutil.which("nvidia-smi")
    if command is None:
        raise DoctorError("nvidia-smi is not installed", reason="gpus_unknown")
    try:
        done = subprocess.run([command, f"--query-{what}={','.join(fields)}", "--format=csv"], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DoctorError(f"nvidia-smi gives no answer: {error}", reason="gpus_unknown") from error
    if done.returncode:
        said = " ".join((done.stdout + done.stderr).split())[:_ERROR_CHARS]
        raise DoctorError(f"nvidia-smi fails: {said}", reason="gpus_unknown")
    return done.stdout


def gpus_of(cards: str, processes: str = "") -> dict[str, Any]:
    """The CSV texts (with header, with units) of `--query-gpu` and `--query-compute-apps` as `driver` and `gpus`, GiB.
    What the driver does not tell (`[N/A]`, `[Not Supported]`) is left out."""
    rows = _rows(cards)
    gpus = [_card(place, row) for place, row in enumerate(rows)]
    running: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(processes):
        if row.get("pid", "").isdecimal():
            name = row.get("process_name", "")
            part = {"pid": int(row["pid"]), "used_gib": _gib(row.get("used_gpu_memory", row.get("used_memory", "")))}
            running.setdefault(row.get("gpu_uuid", ""), []).append(part | ({} if name.startswith("[") else {"name": name}))
    for gpu, row in zip(gpus, rows, strict=True):
        if processes.strip():
            gpu["processes"] = [_known(process) for process in running.get(row.get("uuid", ""), ())]
    driver = next((row["driver_version"] for row in rows if row.get("driver_version")), None)
    return {"gpus": gpus} | ({"driver": driver} if driver else {})


def _card(place: int, row: Mapping[str, str]) -> dict[str, Any]:
    index, use = _number(row.get("index", "")), _number(row.get("utilization.gpu", ""))
    cap = row.get("compute_cap", "")
    return _known(
        {
            "index": place if index is None else int(index),
            "name": row.get("name") or None,
            "memory_gib": _gib(row.get("memory.total", "")),
            "used_gib": _gib(row.get("memory.used", "")),
            "capability": cap if _number(cap) is not None else None,
            "util_percent": None if use is None else int(use),
        }
    )


def _known(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if value is not None}


def _rows(text: str) -> list[dict[str, str]]:
    """By column: `memory.total [MiB]` is `memory.total`."""
    lines = [line for line in text.splitlines() if line.strip()]
    return [
        {_UNIT.sub("", str(name)): str(value) for name, value in row.items() if name is not None and value is not None}
        for row in csv.DictReader(lines, skipinitialspace=True)
    ]


def _number(text: str) -> float | None:
    found = _NUMBER.fullmatch(text.strip())
    return float(found[1]) if found else None


def _gib(text: str) -> float | None:
    mib = _number(text)
    return None if mib is None else round(mib / 1024, 2)
