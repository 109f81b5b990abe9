from __future__ import annotations

import pytest

from headway.capacity.device_table import Device, devices, find_device
from headway.errors import ConfigError

GIB = 1 << 30


@pytest.mark.parametrize("device", devices().values(), ids=str)
def test_a_line_is_plausible_and_has_a_source(device: Device) -> None:
    assert 8 * GIB <= device.memory_bytes <= 300 * GIB
    assert 150e9 <= device.bandwidth <= 10e12
    assert device.source
    assert device.flops
    assert all(1e12 < speed < 6e15 for speed in device.flops.values())
    assert device.arithmetic("bf16") or device.arithmetic("fp16")
    if "fp8" in device.flops and device.vendor == "nvidia":
        assert tuple(map(int, device.capability.split("."))) >= (8, 9)
    if "bf16" in device.flops and device.vendor == "nvidia":
        assert tuple(map(int, device.capability.split("."))) >= (8, 0)


def test_every_spelling_finds_its_own_line() -> None:
    for name, device in devices().items():
        for spelling in (name, name.upper(), device.title, *device.aliases):
            assert find_device(spelling).name == name


@pytest.mark.parametrize(
    ("text", "name"),
    [("NVIDIA GeForce RTX 4090", "rtx4090"), ("rtx 4090", "rtx4090"), ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
     ("Tesla T4", "t4"), ("AMD Instinct MI300X", "mi300x"), ("H200", "h200")],
)  # fmt: skip
def test_names_as_drivers_and_people_write_them(text: str, name: str) -> None:
    assert find_device(text).name == name


def test_an_unknown_device_gets_the_nearest_names_and_the_way_out() -> None:
    with pytest.raises(ConfigError, match="rtx4090") as caught:
        find_device("rtx4095")
    assert caught.value.reason == "unknown_device"
    assert "--memory" in caught.value.message
