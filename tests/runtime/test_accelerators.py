"""The built-in accelerators, on a torch that claims to have devices it does not have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from headway.runtime.accelerators import torch_gpus
from headway.runtime.accelerators.accelerator import Device
from headway.runtime.accelerators.cpu import Cpu
from headway.runtime.accelerators.torch_gpus import Cuda, Mps, Rocm, Xpu

DEVICE = Device("cuda:0", 0, "a GPU")


@pytest.fixture
def nvidia(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Two NVIDIA devices, of which the second cannot be asked for its memory."""

    def memory(index: int) -> tuple[int, int]:
        if index == 1:
            raise RuntimeError("the device is lost")
        return 3, 8

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", memory)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"GPU {index}")
    return monkeypatch


def test_devices_that_torch_has(nvidia: pytest.MonkeyPatch) -> None:
    assert list(Cuda().devices()) == [Device("cuda:0", 0, "GPU 0", 8, 3)]
    assert Cuda().torch_device(DEVICE) == "cuda:0"
    assert list(Rocm().devices()) == []
    assert "built without rocm" in Rocm().missing()


def test_amd_devices_are_called_cuda_by_torch(nvidia: pytest.MonkeyPatch) -> None:
    nvidia.setattr(torch.version, "cuda", None)
    nvidia.setattr(torch.version, "hip", "7.2")
    assert [device.name for device in Rocm().devices()] == ["rocm:0"]
    assert Rocm().torch_device(Rocm().devices()[0]) == "cuda:0"
    assert list(Cuda().devices()) == []
    assert "built without cuda" in Cuda().missing()


@pytest.mark.parametrize(
    ("version", "fp8", "nvfp4", "tensors", "triton", "says"),
    [
        ((7, 5), False, False, True, True, "NVFP4 packages need FP4 tensor cores; serve NVFP4 packages on a Blackwell GPU"),
        ((8, 6), False, False, True, True, "Blackwell"),
        ((8, 9), True, False, True, True, "Blackwell"),
        ((9, 0), True, False, True, True, "Blackwell"),
        ((11, 0), True, False, True, True, "Blackwell"),
        ((10, 0), True, True, True, True, ""),
        ((12, 1), True, True, True, True, ""),
        ((10, 0), True, False, False, True, "PyTorch that has FP4 tensors"),
        ((10, 0), True, False, True, False, "Triton"),
    ],
)
def test_what_generations_of_nvidia_can(
    version: tuple[int, int], fp8: bool, nvfp4: bool, tensors: bool, triton: bool, says: str, nvidia: pytest.MonkeyPatch
) -> None:
    nvidia.setattr(torch.cuda, "get_device_capability", lambda index: version)
    if tensors:
        nvidia.setattr(torch, "float4_e2m1fn_x2", object(), raising=False)
    else:
        nvidia.delattr(torch, "float4_e2m1fn_x2", raising=False)
    nvidia.setattr(torch_gpus, "find_spec", lambda name: object() if triton else None)
    assert (Cuda().lacks(DEVICE, "fp8") is None) is fp8
    refusal = Cuda().lacks(DEVICE, "nvfp4")
    assert (refusal is None) is nvfp4
    assert says in (refusal or "")
    assert Cuda().lacks(DEVICE, "lapack") is None
    assert "does not offer wings" in str(Cuda().lacks(DEVICE, "wings"))


@pytest.mark.parametrize(("architecture", "fp8"), [("gfx942:sramecc+", True), ("gfx950", True), ("gfx90a", False)])
def test_what_generations_of_amd_can(architecture: str, fp8: bool, nvidia: pytest.MonkeyPatch) -> None:
    nvidia.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(gcnArchName=architecture))
    refusal = Rocm().lacks(DEVICE, "fp8")
    assert (refusal is None) is fp8
    assert fp8 or "AMD Instinct MI300 or MI350" in str(refusal)
    assert Rocm().lacks(DEVICE, "nvfp4") is not None


@pytest.mark.parametrize(
    ("error", "is_fault"),
    [
        (RuntimeError("CUDA error: an illegal memory access was encountered"), True),
        (RuntimeError("HIP error: unspecified launch failure"), True),
        (RuntimeError("CUDA error: device-side assert triggered"), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), False),
        (RuntimeError("CUDA error: out of memory"), False),
        (RuntimeError("shapes do not match"), False),
        (ValueError("CUDA error: x"), False),
    ],
)
def test_faults_of_the_device(error: BaseException, is_fault: bool) -> None:
    assert Cuda().is_device_fault(error) is is_fault
    assert Rocm().is_device_fault(error) is is_fault
    assert not Cpu().is_device_fault(error)


@pytest.mark.parametrize(("accelerator", "module"), [(Xpu(), "xpu"), (Mps(), "backends.mps")])
def test_the_others_are_there_when_torch_says_so(accelerator: Any, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place: Any = torch
    for part in module.split("."):
        place = getattr(place, part)
    monkeypatch.setattr(place, "is_available", lambda: False)
    assert list(accelerator.devices()) == []
    assert accelerator.name in accelerator.missing()
    monkeypatch.setattr(place, "is_available", lambda: True)
    if accelerator.name == "xpu":
        monkeypatch.setattr(torch.xpu, "device_count", lambda: 1)
        monkeypatch.setattr(torch.xpu, "get_device_name", lambda index: "an Intel GPU")
    [device] = accelerator.devices()
    assert accelerator.torch_device(device) == device.name
    assert accelerator.auto_priority is None


def test_the_cpu_is_always_there() -> None:
    [device] = Cpu().devices()
    assert (device.name, Cpu().torch_device(device), Cpu.validated, Cpu.tolerance) == ("cpu", "cpu", True, 1e-3)
    assert device.free_bytes is not None
    assert device.total_bytes is not None
    assert 0 < device.free_bytes <= device.total_bytes
