"""Devices that people serve models on, from a table: memory, bandwidth, arithmetic, what they can compute in."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from headway.errors import ConfigError

_MIB: Final = 1 << 20
_NOISE: Final = re.compile(r"nvidia|geforce|tesla|quadro|amd|intel|instinct|radeon|gpu|[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Device:
    """`memory_bytes` as its driver reports it; `bandwidth` in bytes per second; `flops`: format -> dense operations per second
    with accumulation in float32 (int32 for int8), as its maker states them; `capability` is the compute capability, or gfx name.
    """

    name: str
    title: str
    vendor: str
    memory_bytes: int
    bandwidth: float
    flops: Mapping[str, float]
    capability: str
    source: str
    aliases: tuple[str, ...] = ()

    def arithmetic(self, dtype: str) -> float | None:
        """Operations per second in `dtype` ("bf16", "fp16", "fp8", "int8"), None when the device has no units for it."""
        return self.flops.get(dtype)


@cache
def devices() -> Mapping[str, Device]:
    """Name -> device, in the order of the table."""
    table = tomllib.loads(files("headway.capacity").joinpath("devices.toml").read_text("utf-8"))
    return {name: _device(name, fields) for name, fields in table.items()}


def _device(name: str, fields: Mapping[str, Any]) -> Device:
    return Device(
        name=name,
        title=fields["title"],
        vendor=fields["vendor"],
        memory_bytes=int(fields["memory_mib"] * _MIB),
        bandwidth=fields["bandwidth_gb_s"] * 1e9,
        flops={dtype: value * 1e12 for dtype, value in fields["tflops"].items()},
        capability=fields["capability"],
        source=fields["source"],
        aliases=tuple(fields.get("aliases", ())),
    )


def find_device(text: str) -> Device:
    """The device that people mean by "rtx4090", "NVIDIA GeForce RTX 4090", "H100 80GB HBM3" and the like.

    Raises ConfigError (`unknown_device`) with the nearest names.
    """
    wanted = _plain(text)
    known = _names()
    if wanted in known:
        return devices()[known[wanted]]
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    shown = list(dict.fromkeys(known[name] for name in near)) or list(devices())[:12]
    raise ConfigError(
        f"no device {text!r:.80} in the table of {len(devices())}",
        reason="unknown_device",
        param="device",
        fix=f"Nearest: {', '.join(shown)}. Any other device can be described: --memory 24GiB --bandwidth 936GB/s --flops 71T.",
    )


@cache
def _names() -> Mapping[str, str]:
    """Every spelling, plain -> name of the table."""
    return {_plain(spelling): name for name, device in devices().items() for spelling in (name, device.title, *device.aliases)}


def _plain(text: str) -> str:
    return _NOISE.sub("", text.lower())
