"""Where models go: named devices, the automatic order, budget, memory, capabilities, engines."""

from __future__ import annotations

from typing import Any

import pytest

from headway.errors import ConfigError, HeadwayError, PlacementError
from headway.runtime.accelerators.cpu import Cpu
from headway.runtime.family import ModelSpec
from headway.runtime.loading.capabilities import sentence
from headway.runtime.loading.load_failure import failure_reason, is_final
from headway.runtime.loading.placement import (
    GIB,
    RESERVE_BYTES,
    Spot,
    engines_for,
    memory_estimate,
    named_devices,
    place,
)
from headway.runtime.plugins import PluginSet
from tests.runtime.toy_plugins import ToyFamily, toy_plugins

CPU = {"cpu": "headway.runtime.accelerators.cpu:Cpu"}


def spec(parameters: int = 2, **more: Any) -> ModelSpec:
    return ModelSpec(("embeddings",), parameters, (), 8, **more)


def spot(plugins: PluginSet, device: str = "auto", needs: tuple[str, ...] = (), parameters: int = 2, budget: float | None = None) -> Spot:
    return place(ToyFamily(), spec(parameters), named_devices(device, plugins), engines_for("auto", plugins), needs, budget)


def refused(plugins: PluginSet, **more: Any) -> HeadwayError:
    with pytest.raises(HeadwayError) as caught:
        spot(plugins, **more)
    return caught.value


def test_the_estimate_is_four_bytes_for_each_parameter_and_a_reserve() -> None:
    assert memory_estimate(1000) == 4000 + 2 * GIB
    assert RESERVE_BYTES == 2 * GIB


def test_auto_takes_the_smallest_priority_and_passes_over_what_cannot() -> None:
    plugins = toy_plugins({"old": "OldGpu", **CPU})
    assert spot(plugins).device.name == "old:0"
    assert spot(plugins, needs=("lapack",)).device.name == "cpu"


def test_devices_without_a_priority_are_taken_only_by_name() -> None:
    plugins = toy_plugins({"tiny": "TinyGpu", **CPU})
    assert [device.name for _, device in named_devices("auto", plugins)] == ["cpu"]
    assert [device.name for _, device in named_devices("tiny", plugins)] == ["tiny:0"]


@pytest.mark.parametrize("asked", ["absent", "absent:0", "old:1"])
def test_a_named_device_that_is_not_there(asked: str) -> None:
    plugins = toy_plugins({"old": "OldGpu", "absent": "AbsentGpu", **CPU})
    error = refused(plugins, device=asked)
    assert failure_reason(error).startswith(f"PlacementError: device not available: {asked}")
    assert not is_final(error)
    assert "--device auto" in error.message
    assert "cpu" in error.message


def test_wrong_device_names_list_what_there_is() -> None:
    with pytest.raises(ConfigError, match="no accelerator 'tpu'; available: cpu"):
        named_devices("tpu:0", toy_plugins())
    with pytest.raises(ConfigError, match="expected a number"):
        named_devices("cpu:x", toy_plugins())


def test_cuda_without_cuda_says_that_pytorch_lacks_it() -> None:
    plugins = toy_plugins({"cuda": "headway.runtime.accelerators.torch_gpus:Cuda", **CPU})
    error = refused(plugins, device="cuda:0")
    assert "device not available: cuda:0" in error.message


def test_a_budget_refuses_for_good() -> None:
    error = refused(toy_plugins(), budget=1.0)
    assert "does not fit, out of memory" in failure_reason(error)
    assert error.reason == "over_budget"
    assert is_final(error)
    assert spot(toy_plugins(), budget=2.5).device.name == "cpu"


def test_memory_that_is_taken_now_may_be_free_later() -> None:
    error = refused(toy_plugins({"tiny": "TinyGpu"}), device="tiny:0")
    assert "does not fit, out of memory" in failure_reason(error)
    assert "1.00 MiB free" in error.message
    assert not is_final(error)


@pytest.mark.parametrize(
    ("need", "says"),
    [
        ("lapack", "built without LAPACK"),
        ("fp8", "FP8 weights need an NVIDIA GPU of compute capability 8.9 or later or an AMD Instinct MI300 or MI350 series GPU"),
        ("nvfp4", "NVFP4 packages need FP4 tensor cores; serve NVFP4 packages on a Blackwell GPU"),
    ],
)
def test_what_no_device_can_is_final(need: str, says: str) -> None:
    error = refused(toy_plugins({"old": "OldGpu"}), needs=(need,))
    assert isinstance(error, PlacementError)
    assert says in failure_reason(error)
    assert is_final(error)


@pytest.mark.parametrize("need", ["fp8", "nvfp4"])
def test_the_cpu_refuses_them_with_the_same_sentence(need: str) -> None:
    cpu = Cpu()
    assert cpu.lacks(cpu.devices()[0], need) == sentence(need)


def test_the_cpu_has_lapack_when_pytorch_has(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    cpu = Cpu()
    device = cpu.devices()[0]
    assert cpu.lacks(device, "lapack") is None
    monkeypatch.setattr(torch._C, "has_lapack", False)
    assert "built without LAPACK" in str(cpu.lacks(device, "lapack"))


def test_a_mixture_of_full_and_incapable_devices_may_be_tried_again() -> None:
    plugins = toy_plugins({"old": "OldGpu", "tiny": "TinyGpu"})
    devices = [*named_devices("old", plugins), *named_devices("tiny", plugins)]
    with pytest.raises(PlacementError) as caught:
        place(ToyFamily(), spec(), devices, engines_for("auto", plugins), ("fp8",), None)
    assert caught.value.reason == "out_of_memory"
    assert not is_final(caught.value)


def test_an_engine_that_refuses_keeps_its_reason() -> None:
    plugins = toy_plugins({"absent": "AbsentGpu", "old": "OldGpu"})

    class CpuOnly(ToyFamily):
        accelerators = frozenset({"cpu"})

    with pytest.raises(PlacementError) as caught:
        place(CpuOnly(), spec(), named_devices("old", plugins), engines_for("auto", plugins), (), None)
    assert caught.value.reason == "no_engine"
    assert is_final(caught.value)
    assert "native: the family toy runs on cpu only, not on old" in caught.value.message


def test_unknown_engines_list_what_there_is() -> None:
    with pytest.raises(ConfigError, match="no engine 'onnxruntime'; available: native"):
        engines_for("onnxruntime", toy_plugins())
