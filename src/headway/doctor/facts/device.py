"""What the program computes on: the kind of device, and the cards that the context lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.launch import Launch

PLATFORM: Final = sight("detected platform", pattern=r"[Aa]utomatically detected platform (?P<name>\w+)")
CPU_SIGNS: Final = sight(
    "CPU KV cache size", "auto thread-binding list", "less than desired CPU memory utilization", "VLLM_CPU_KVCACHE_SPACE", "OpenMP thread binding info",
    "triton-cpu is expected on x86 CPUs", "doesn't include CPU backend. Disabling Triton",
)  # fmt: skip
SIGHTS: Final = (PLATFORM, CPU_SIGNS)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A card as the context lists it; GiB, None = unknown. `capability` 86 for 8.6. `processes`: (pid, name, GiB)."""

    index: int
    name: str
    memory: float | None
    used: float | None
    capability: int | None
    processes: tuple[tuple[int, str, float], ...]
    path: str

    @property
    def free(self) -> float | None:
        return None if self.memory is None or self.used is None else self.memory - self.used


@dataclass(frozen=True, slots=True)
class Device:
    """`kind`: cuda | rocm | cpu | xpu | tpu | ... or "" when nothing says it."""

    kind: str = ""
    gpus: Sequence[Gpu] = ()

    @property
    def is_cpu(self) -> bool:
        return self.kind == "cpu"

    def gpu(self, index: int) -> Gpu | None:
        return next((gpu for gpu in self.gpus if gpu.index == index), None)


def device_of(log: Log, context: Context, launch: Launch) -> Device:
    gpus = tuple(_gpu(row, f"host.gpus.{at}", at) for at, row in enumerate(context.items("host.gpus")) if isinstance(row, Mapping))
    return Device(_kind(log, context, launch, gpus), gpus)


def _kind(log: Log, context: Context, launch: Launch, gpus: Sequence[Gpu]) -> str:
    if hit := log.first(PLATFORM):
        return hit["name"].lower()
    if log.sees(CPU_SIGNS) or launch.value("device") == "cpu" or context.has("env.VLLM_CPU_KVCACHE_SPACE"):
        return "cpu"
    if context.text("versions.vllm").endswith("cpu") or launch.version.endswith("cpu") or launch.program == "headway":
        return "cpu"
    return "cuda" if gpus else ""


def _gpu(row: Mapping[str, Any], path: str, at: int) -> Gpu:
    processes = []
    listed = row.get("processes")
    for process in listed if isinstance(listed, list) else ():
        if isinstance(process, Mapping) and isinstance(process.get("pid"), int):
            processes.append((process["pid"], str(process.get("name") or process.get("command") or ""), _number(process.get("used_gib")) or 0.0))
    index = row.get("index")
    return Gpu(
        index if isinstance(index, int) else at, str(row.get("name") or ""), _number(row.get("memory_gib")), _number(row.get("used_gib")),
        capability(str(row.get("capability") or "")), tuple(processes), path,
    )  # fmt: skip


def capability(text: str) -> int | None:
    """`8.6`, `sm_86` and `86` as 86; None when it is none."""
    found = re.search(r"(\d+)\.(\d)|(?:sm_?)?(\d{2,3})", text)
    if found is None:
        return None
    return int(found[1]) * 10 + int(found[2]) if found[1] else int(found[3])


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
