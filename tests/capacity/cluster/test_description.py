from __future__ import annotations

import math
from typing import Any

import pytest

from headway.capacity.cluster.description import cluster_of
from headway.capacity.cluster.kernel_numbers import kernel_numbers
from headway.errors import ConfigError

LINK = {"latency_us": 5, "bandwidth": "100GB/s"}
KERNELS: dict[str, Any] = {
    "set": "avx512_bf16", "threads": 2, "quiet": True, "roofs": {"memory_gb_s": 20.0, "cache_gb_s": 100.0, "bf16_tera_op_s": 1.5, "fp32_tera_op_s": 0.5},
    "kernels": [
        {"family": "linear", "kernel": "a", "bound_by": "memory", "share_of_floor": 0.9}, {"family": "linear", "kernel": "b", "bound_by": "memory", "share_of_floor": 0.7},
        {"family": "linear", "kernel": "c", "bound_by": "bf16", "share_of_floor": 0.5}, {"family": "attention", "kernel": "d", "bound_by": "memory", "share_of_floor": 0.1},
    ],
}  # fmt: skip


def described(node: dict[str, Any], **tables: Any) -> Any:
    return cluster_of({"node": node, **tables}, lambda path: {"kernels.json": KERNELS}[path])


def test_a_device_of_the_table() -> None:
    cluster = described({"count": 2, "devices": 8, "device": "h100", "flops_share": 0.5, "step_overhead_us": 50}, link=LINK, network={"measured": [[0, 1e-5], [1e6, 1.1e-4]]})
    assert (cluster.total, cluster.device.bandwidth, cluster.device.flops) == (16, 3350e9, pytest.approx(989.4e12 / 2))
    assert cluster.device.overhead == pytest.approx(50e-6)
    assert not cluster.device.ceiling
    assert cluster.network.bandwidth == pytest.approx(1e10)
    assert cluster.link(8) is cluster.inside
    assert cluster.link(9) is cluster.network


def test_a_machine_whose_kernels_were_measured() -> None:
    cluster = described({"kernels": "kernels.json", "memory": "16GiB"})
    assert (cluster.device.bandwidth, cluster.device.flops) == (pytest.approx(20e9 * 0.8), pytest.approx(1.5e12 * 0.5))
    assert (cluster.device.memory, cluster.total) == (16 << 30, 1)
    fast = KERNELS | {"kernels": [row | {"share_of_floor": 1.2} for row in KERNELS["kernels"]]}
    assert kernel_numbers(fast, "x").bandwidth_share == 1.0


@pytest.mark.parametrize(
    ("node", "tables"),
    [
        ({}, {}), ({"device": "h100", "count": 0}, {}), ({"device": "h100", "count": True}, {}), ({"device": "h100", "devices": 65}, {}), ({"device": "h100", "cores": 3}, {}),
        ({"device": "h100", "devices": 2}, {}), ({"device": "h100", "count": 2}, {}), ({"device": "h100"}, {"nodes": {}}), ({"device": "h100"}, {"link": []}),
        ({"device": "h100"}, {"link": {"latency_us": 1}}), ({"device": "h100"}, {"link": {"latency_us": -1, "bandwidth": "1GB/s"}}),
        ({"device": "h100"}, {"link": {"latency_us": math.nan, "bandwidth": "1GB/s"}}), ({"device": "h100"}, {"link": LINK | {"all_reduce": "star"}}),
        ({"device": "h100"}, {"link": {"measured": [[1, 2, 3]]}}), ({"device": "h100"}, {"link": {"measured": [["1", 2], [3, 4]]}}), ({"device": "h100"}, {"link": LINK | {"bandwidth": 3}}),
        ({"device": "h100", "bandwidth_share": 0}, {}), ({"device": "h100", "flops_share": 1.5}, {}), ({"bandwidth": "1GB/s", "flops": "1T"}, {}), ({"kernels": "kernels.json"}, {}),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(node: dict[str, Any], tables: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as error:
        described(node, **tables)
    assert error.value.reason == "cluster_invalid"


@pytest.mark.parametrize("change", [{"roofs": None}, {"kernels": {}}, {"kernels": []}, {"kernels": KERNELS["kernels"][:2]}, {"roofs": {"memory_gb_s": -1}}, {"kernels": [1]}])
def test_files_that_are_no_kernel_numbers(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"kernel numbers k\.json"):
        kernel_numbers(KERNELS | change, "k.json")
