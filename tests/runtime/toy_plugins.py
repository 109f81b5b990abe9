"""Plug-ins for tests of loading: a family around `ArithmeticModel` whose packages say how they fail, and made-up devices.

A package is a folder with `toy.json`: `{"fault": NAME, "files": [...], ...}`.
"""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from headway.errors import PackageError
from headway.runtime.accelerators.accelerator import ACCELERATORS_GROUP, Accelerator, Device
from headway.runtime.accelerators.cpu import Cpu
from headway.runtime.engines.engine import ENGINES_GROUP
from headway.runtime.family import FAMILIES_GROUP, ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.loading.capabilities import sentence
from headway.runtime.package import Package
from headway.runtime.plugins import GROUPS, Plugins, PluginSet
from headway.runtime.row import Outcome, Row
from tests.runtime.arithmetic_model import ArithmeticModel

CARD = "toy.json"
WEIGHTS = "model.safetensors"
HERE = "tests.runtime.toy_plugins"
HOLD = tuple(map(ord, "hold"))  # with the fault "hold", texts that begin so keep their pass until the file $TOY_MARK is gone


def write_toy(folder: Path, **fields: Any) -> Path:
    """A package; `fault` names what goes wrong with it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CARD).write_text(json.dumps(fields))
    (folder / WEIGHTS).write_bytes(tensor_file())
    return folder


def tensor_file(dtype: str = "F32", elements: int = 1024) -> bytes:
    """A safetensors file with one tensor."""
    size = elements * {"F32": 4, "F8_E4M3": 1, "BF16": 2}[dtype]
    header = json.dumps({"w": {"dtype": dtype, "shape": [elements], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(index % 251 for index in range(size))


class ToyModel(ArithmeticModel):
    def __init__(self, fault: str | None, parameters: int):
        super().__init__()
        self.facts = type(self.facts)(
            parameters, "float32", self.facts.limits, heads=self.facts.heads, embedding=self.facts.embedding
        )
        self._fault = fault
        self._runs = 0

    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        self._runs += 1
        if self._fault == "hold" and any(row.token_ids[:4] == HOLD for row in rows):
            mark = Path(os.environ["TOY_MARK"])
            mark.write_text("in a forward pass")
            while mark.exists():
                time.sleep(0.005)
        outcomes = super().forward(rows)
        if self._fault == "leak":
            return [value + 0.5 * (len(rows) - 1) for value in outcomes]
        if self._fault == "rounding":
            return [value * (1 + 2e-7 * (len(rows) - 1)) for value in outcomes]
        if self._fault == "unstable":
            return [value + self._runs for value in outcomes]
        if self._fault == "device" and any("sender" in "".join(map(chr, row.token_ids)) for row in rows):
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        if self._fault == "not_finite":
            return [np.full_like(value, np.nan) for value in outcomes]
        return outcomes


class ToyFamily(ModelFamily):
    name: ClassVar[str] = "toy"
    surfaces: ClassVar[tuple[Surface, ...]] = ("embeddings", "classify")
    option_names: ClassVar[frozenset[str]] = frozenset({"colour", "base_path"})
    accelerators: ClassVar[frozenset[str]] = frozenset({"cpu", "old", "tiny"})
    placements: ClassVar[list[Placement]] = []  # of all loads of this process

    def detect(self, package: Package) -> bool:
        return package.has(CARD)

    def describe(self, package: Package) -> ModelSpec:
        card = package.json(CARD) or {}
        if card.get("fault") == "describe":
            raise PackageError("the toy is broken", reason="toy_broken")
        return ModelSpec(
            ("embeddings", "classify"), card.get("parameters", 2), (CARD, WEIGHTS, *card.get("files", ())), 1000,
            capabilities=tuple(card.get("needs", ())), licence=card.get("licence"),
        )  # fmt: skip

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        card = package.json(CARD) or {}
        fault = card.get("fault")
        self.placements.append(placement)
        progress(1, 2)
        if fault == "raises":
            raise RuntimeError("the driver is busy")
        if fault == "memory":
            raise MemoryError
        if fault == "allocates":
            torch.ones(1 << 38, dtype=torch.uint8)
        if fault == "slow":
            Path(os.environ["TOY_MARK"]).write_text("loading")
            time.sleep(float(card["seconds"]))
        return ToyModel(fault, 3 if fault == "count" else spec.parameters)

    def fixture_variants(self) -> Sequence[str]:
        return ("plain", "leak")

    def write_fixture(self, folder: Path, variant: str, seed: int) -> None:
        write_toy(folder, fault=None if variant == "plain" else variant, seed=seed)


class OldGpu(Accelerator):
    """One device of an old generation: none of the capabilities, all of the memory."""

    name: ClassVar[str] = "old"
    auto_priority: ClassVar[int | None] = 5
    found_kernels: ClassVar[Mapping[str, str | Exception | None]] = {}
    found_untuned: ClassVar[Mapping[str, str]] = {}

    def devices(self) -> Sequence[Device]:
        return (Device("old:0", 0, "an old GPU", 1 << 40, 1 << 40),)

    def torch_device(self, device: Device) -> str:
        return "cpu"

    def lacks(self, device: Device, capability: str) -> str | None:
        return sentence(capability)

    def kernels(self, device: Device) -> Mapping[str, str | Exception | None]:
        told = json.loads(os.environ.get("TOY_KERNELS", "{}"))  # for workers that are processes of their own
        return {**self.found_kernels, **{name: ImportError(found[1:]) if (found or "").startswith("!") else found for name, found in told.items()}}

    def untuned(self, device: Device) -> Mapping[str, str]:
        return {**self.found_untuned, **json.loads(os.environ.get("TOY_UNTUNED", "{}"))}

    def is_device_fault(self, error: BaseException) -> bool:
        return "illegal memory access" in str(error)


class TinyGpu(OldGpu):
    """It can everything and has no room."""

    name: ClassVar[str] = "tiny"
    auto_priority: ClassVar[int | None] = None

    def devices(self) -> Sequence[Device]:
        return (Device("tiny:0", 0, "a small GPU", 1 << 20, 1 << 20),)

    def lacks(self, device: Device, capability: str) -> str | None:
        return None


class AbsentGpu(OldGpu):
    name: ClassVar[str] = "absent"

    def devices(self) -> Sequence[Device]:
        return ()


class WrongBase:
    name = "wrongbase"


class ClumsyFamily(ToyFamily):
    name: ClassVar[str] = "clumsy"

    def detect(self, package: Package) -> bool:
        return 1 // 0 == 0


class CallsItselfOtherwise(ToyFamily):
    name: ClassVar[str] = "otherwise"


def entry(group: str, name: str, target: str) -> EntryPoint:
    return EntryPoint(name, target if ":" in target else f"{HERE}:{target}", group)


def plugins_of(group: str, **targets: str) -> Plugins[Any]:
    return Plugins(group, GROUPS[group], [entry(group, name, target) for name, target in targets.items()])


def toy_plugins(accelerators: Mapping[str, str] | None = None, families: Mapping[str, str] | None = None) -> PluginSet:
    """The toy family, the native engine, and the CPU unless other devices are named."""
    return PluginSet(
        plugins_of(FAMILIES_GROUP, **(families or {"toy": "ToyFamily"})),
        plugins_of(ENGINES_GROUP, native="headway.runtime.engines.native:NativeEngine"),
        plugins_of(ACCELERATORS_GROUP, **(accelerators or {"cpu": "headway.runtime.accelerators.cpu:Cpu"})),
    )


class EveryCpu(Cpu):
    """A CPU that says it can everything, under the name of the real one."""

    def lacks(self, device: Device, capability: str) -> str | None:
        return None
