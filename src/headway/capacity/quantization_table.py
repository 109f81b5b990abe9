"""Weight formats: bits per weight, who serves them, what they usually cost in accuracy and who says so."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from headway.capacity.device_table import Device
from headway.capacity.model_shape import ModelShape


@dataclass(frozen=True, slots=True)
class Quantization:
    """Bits per weight: `bits` of linear layers with their scales, `nominal` of the codes alone, `table_bits` of embeddings and head."""

    name: str
    title: str
    nominal: float
    bits: float
    table_bits: float
    engines: tuple[str, ...]
    minimum: str | None
    arithmetic: str
    cost: str
    cost_zh: str
    detail: str
    source: str

    def weight_bytes(self, shape: ModelShape) -> int:
        """Bytes of a checkpoint of this format."""
        tables = shape.embeddings + shape.head
        return round((shape.quantizable * self.bits + tables * self.table_bits) / 8)

    def nominal_bytes(self, shape: ModelShape) -> int:
        """Parameters times bits of a code: the rule of thumb, without scales and as if tables were packed as well."""
        return round(shape.parameters * self.nominal / 8)

    def refused_by(self, device: Device) -> str | None:
        """Why the device has no kernels for it, or None. Capabilities are compared on CUDA devices only."""
        if self.minimum is None or device.vendor != "nvidia" or _number(device.capability) >= _number(self.minimum):
            return None
        return f"needs compute capability {self.minimum}, {device.name} has {device.capability}"


def _number(capability: str) -> tuple[int, ...]:
    return tuple(int(part) for part in capability.split("."))


@cache
def quantizations() -> Mapping[str, Quantization]:
    """Name -> format, in the order of the table."""
    table = tomllib.loads(files("headway.capacity").joinpath("quantizations.toml").read_text("utf-8"))
    return {name: _quantization(name, fields) for name, fields in table.items()}


def _quantization(name: str, fields: Mapping[str, Any]) -> Quantization:
    return Quantization(**{"minimum": None, **fields, "name": name, "engines": tuple(fields["engines"])})
