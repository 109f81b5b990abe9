"""Accelerator: the plug-in that knows one kind of device."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

ACCELERATORS_GROUP = "headway.accelerators"


@dataclass(frozen=True, slots=True)
class Device:
    """`name` is what `--device` takes ("cpu", "cuda:1"); bytes are None when the device does not tell."""

    name: str
    index: int
    about: str
    total_bytes: int | None = None
    free_bytes: int | None = None


class Accelerator(abc.ABC):
    """Found through the entry-point group `headway.accelerators`; the built-ins are found the same way."""

    name: ClassVar[str]
    auto_priority: ClassVar[int | None] = None  # smaller is taken first by `--device auto`; None: only when named
    validated: ClassVar[bool] = False  # whether this code was ever run on such a device
    tolerance: ClassVar[float] = 0.02  # by how much answers may differ from recorded ones
    repeats_exactly: ClassVar[bool] = True  # whether equal forwards give equal bits

    @abc.abstractmethod
    def devices(self) -> Sequence[Device]:
        """The devices of this kind that there are now; none when the machine or PyTorch has none. Never raises."""

    @abc.abstractmethod
    def torch_device(self, device: Device) -> str:
        """What torch calls it."""

    def lacks(self, device: Device, capability: str) -> str | None:
        """None when the device has the capability, else the sentence that says why not and what to do."""
        return f"{device.name} does not offer {capability}"

    def kernels(self, device: Device) -> Mapping[str, str | Exception | None]:
        """Kernel libraries that answers depend on: name -> version, what the import raised, or None (not installed)."""
        return {}

    def untuned(self, device: Device) -> Mapping[str, str]:
        """Kernel library -> the kernel for which it has no tuned configuration on this device."""
        return {}

    def is_device_fault(self, error: BaseException) -> bool:
        """Whether the device itself is broken, so that only a new process helps. Out of memory is no fault."""
        return False

    def missing(self) -> str:
        """Why `devices` is empty, as the end of a sentence."""
        return f"this machine has no {self.name} device"
