"""Devices that PyTorch drives: NVIDIA, AMD, Intel and Apple GPUs."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from headway.runtime.accelerators.accelerator import Accelerator, Device
from headway.runtime.loading.capabilities import sentence

# What the drivers' errors say when the device, and not the request, is broken. CUDA and HIP words.
_FAULTS: Final = ("cuda error", "hip error", "device-side assert", "illegal memory access", "unspecified launch failure")
_FP8_CAPABILITY: Final = (8, 9)
_FP4_MAJORS: Final = (10, 12)
_FP8_AMD: Final = ("gfx942", "gfx950")


class _TorchGpu(Accelerator):
    """What NVIDIA and AMD have in common: torch calls both `cuda`."""

    @abc.abstractmethod
    def _is_ours(self) -> bool:
        """Whether this torch was built for it."""

    def devices(self) -> Sequence[Device]:
        import torch

        if not self._is_ours() or not torch.cuda.is_available():
            return ()
        found = []
        for index in range(torch.cuda.device_count()):
            try:
                free, total = torch.cuda.mem_get_info(index)
            except RuntimeError:  # the driver lists it and cannot use it
                continue
            found.append(Device(f"{self.name}:{index}", index, torch.cuda.get_device_name(index), total, free))
        return tuple(found)

    def torch_device(self, device: Device) -> str:
        return f"cuda:{device.index}"

    def is_device_fault(self, error: BaseException) -> bool:
        text = str(error).lower()
        return isinstance(error, RuntimeError) and "out of memory" not in text and any(word in text for word in _FAULTS)

    def missing(self) -> str:
        import torch

        if not self._is_ours():
            return f"this PyTorch ({torch.__version__}) was built without {self.name}"
        return super().missing()


def _lacks_fp4(major: int) -> str | None:
    import torch

    if major not in _FP4_MAJORS:
        return sentence("nvfp4")
    if not hasattr(torch, "float4_e2m1fn_x2"):
        return sentence("fp4_tensors")
    return None if find_spec("triton") is not None else sentence("triton")


class Cuda(_TorchGpu):
    name = "cuda"
    auto_priority = 20

    def _is_ours(self) -> bool:
        import torch

        return torch.version.cuda is not None

    def lacks(self, device: Device, capability: str) -> str | None:
        import torch

        version = torch.cuda.get_device_capability(device.index)
        if capability == "nvfp4":
            return _lacks_fp4(version[0])
        has = {"lapack": True, "fp8": version >= _FP8_CAPABILITY}
        return None if has.get(capability, False) else sentence(capability)


class Rocm(_TorchGpu):
    name = "rocm"
    auto_priority = 10

    def _is_ours(self) -> bool:
        import torch

        return torch.version.hip is not None

    def lacks(self, device: Device, capability: str) -> str | None:
        import torch

        architecture = str(getattr(torch.cuda.get_device_properties(device.index), "gcnArchName", ""))
        has = {"lapack": True, "fp8": architecture.startswith(_FP8_AMD)}
        return None if has.get(capability, False) else sentence(capability)


class Xpu(Accelerator):
    name = "xpu"

    def devices(self) -> Sequence[Device]:
        import torch

        if not torch.xpu.is_available():
            return ()
        return tuple(Device(f"xpu:{i}", i, torch.xpu.get_device_name(i)) for i in range(torch.xpu.device_count()))

    def torch_device(self, device: Device) -> str:
        return device.name

    def lacks(self, device: Device, capability: str) -> str | None:
        return None if capability == "lapack" else sentence(capability)


class Mps(Accelerator):
    name = "mps"

    def devices(self) -> Sequence[Device]:
        import torch

        return (Device("mps", 0, "Apple GPU"),) if torch.backends.mps.is_available() else ()

    def torch_device(self, device: Device) -> str:
        return "mps"

    def lacks(self, device: Device, capability: str) -> str | None:
        return None if capability == "lapack" else sentence(capability)
