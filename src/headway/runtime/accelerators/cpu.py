"""The CPU of this machine."""

from __future__ import annotations

from collections.abc import Sequence

from headway.host.cpu_budget import cpu_budget
from headway.host.instruction_set import instruction_set
from headway.host.memory_budget import memory_budget
from headway.runtime.accelerators.accelerator import Accelerator, Device
from headway.runtime.loading.capabilities import sentence


class Cpu(Accelerator):
    name = "cpu"
    auto_priority = 100
    validated = True
    tolerance = 1e-3

    def devices(self) -> Sequence[Device]:
        memory = memory_budget()
        about = f"{instruction_set().model}, {cpu_budget()}"
        return (Device("cpu", 0, about, memory.limit, memory.available),)

    def torch_device(self, device: Device) -> str:
        return "cpu"

    def lacks(self, device: Device, capability: str) -> str | None:
        if capability == "lapack":
            import torch

            return None if torch._C.has_lapack else sentence("lapack")
        return sentence(capability)
