"""A cluster as a file describes it: equal nodes of equal devices, the links inside a node and between nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, cast

from headway.capacity.cluster.kernel_numbers import kernel_numbers
from headway.capacity.cluster.link import ALGORITHMS, Algorithm, Link, fitted_link
from headway.capacity.device_table import find_device
from headway.capacity.quantity import parse_bandwidth, parse_bytes, parse_flops
from headway.errors import ConfigError

MOST_NODES: Final = 1024
MOST_DEVICES: Final = 64  # of one node
_MOST_POINTS: Final = 1000
_NODE: Final = frozenset({"count", "devices", "device", "kernels", "memory", "bandwidth", "flops", "bandwidth_share", "flops_share", "step_overhead_us"})
_LINK: Final = frozenset({"latency_us", "bandwidth", "measured", "all_reduce"})


@dataclass(frozen=True, slots=True)
class DeviceSpeed:
    """Of one device: bytes of memory, bytes per second read, operations per second, and seconds that a step costs besides. `origin` says where
    the figures are from; `ceiling`: they are what the device can do at most, and no engine gets there."""

    title: str
    memory: int
    bandwidth: float
    flops: float
    overhead: float
    origin: str
    ceiling: bool


@dataclass(frozen=True, slots=True)
class Cluster:
    """`inside` connects the devices of a node, `network` the nodes."""

    nodes: int
    devices: int
    device: DeviceSpeed
    inside: Link
    network: Link

    @property
    def total(self) -> int:
        return self.nodes * self.devices

    def link(self, ranks: int) -> Link:
        """That neighbours among `ranks` devices use at worst."""
        return self.inside if ranks <= self.devices else self.network


def cluster_of(described: Mapping[str, Any], read_json: Callable[[str], Mapping[str, Any]]) -> Cluster:
    """`described`: the tables node, link and network. `read_json`: the file that `node.kernels` names.

    Raises ConfigError (`cluster_invalid`, `unknown_device`) that names the key.
    """
    _known("the description", described, frozenset({"node", "link", "network"}))
    node = _table(described, "node")
    _known("node", node, _NODE)
    nodes, devices = _whole(node, "count", MOST_NODES), _whole(node, "devices", MOST_DEVICES)
    inside = _link(described, "link") if devices > 1 or "link" in described else Link(0.0, 1e12)
    network = _link(described, "network") if nodes > 1 or "network" in described else inside
    return Cluster(nodes, devices, _device(node, read_json), inside, network)


def _device(node: Mapping[str, Any], read_json: Callable[[str], Mapping[str, Any]]) -> DeviceSpeed:
    overhead = _number("node.step_overhead_us", node.get("step_overhead_us", 0.0), 0.0, 1e9) * 1e-6
    shares = [_number(f"node.{key}", node.get(key, 1.0), 1e-6, 1.0) for key in ("bandwidth_share", "flops_share")]
    memory = None if "memory" not in node else parse_bytes(_text(node, "memory"), "memory")
    if "device" in node:
        device = find_device(_text(node, "device"))
        flops = device.arithmetic("bf16") or device.arithmetic("fp16") or 0.0
        title, found, speeds, origin, ceiling = device.title, device.memory_bytes, (device.bandwidth, flops), f"data sheet: {device.source}", True
    elif "kernels" in node:
        path = _text(node, "kernels")
        numbers = kernel_numbers(read_json(path), path)
        title, found, speeds, ceiling = f"a device measured in {path}", 0, (numbers.bandwidth, numbers.flops), False
        origin = f"kernels measured: {numbers.bandwidth_share:.0%} of the memory's bandwidth, {numbers.flops_share:.0%} of the {numbers.arithmetic} arithmetic"
    elif {"bandwidth", "flops"} <= set(node):
        speeds = (parse_bandwidth(_text(node, "bandwidth"), "bandwidth"), parse_flops(_text(node, "flops"), "flops"))
        title, found, origin, ceiling = "a device as given", 0, "given", False
    else:
        raise _wrong("node needs device (a name of the table), or kernels (what `headway bench kernels --json` printed), or bandwidth and flops")
    if not (memory or found):
        raise _wrong("node.memory is missing: the memory of one device, as 24GiB")
    return DeviceSpeed(title, memory or found, speeds[0] * shares[0], speeds[1] * shares[1], overhead, origin, ceiling and shares == [1.0, 1.0])


def _link(described: Mapping[str, Any], name: str) -> Link:
    fields = _table(described, name)
    _known(name, fields, _LINK)
    algorithm = fields.get("all_reduce", "best")
    if algorithm not in ALGORITHMS:
        raise _wrong(f"{name}.all_reduce must be one of {', '.join(ALGORITHMS)}, found {algorithm!r:.40}")
    if "measured" in fields:
        points = fields["measured"]
        if not isinstance(points, list) or len(points) > _MOST_POINTS or not all(isinstance(point, list) and len(point) == 2 for point in points):
            raise _wrong(f"{name}.measured must be a list of [bytes, seconds], at most {_MOST_POINTS}")
        pairs = [(_number(f"{name}.measured", n, 0.0, 1e15), _number(f"{name}.measured", t, 1e-12, 1e6)) for n, t in points]
        return fitted_link(pairs, cast(Algorithm, algorithm), name)
    if "bandwidth" not in fields or "latency_us" not in fields:
        raise _wrong(f"{name} needs latency_us and bandwidth, or measured")
    latency = _number(f"{name}.latency_us", fields["latency_us"], 0.0, 1e9) * 1e-6
    return Link(latency, parse_bandwidth(_text(fields, "bandwidth"), f"{name}.bandwidth"), cast(Algorithm, algorithm))


def _table(described: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = described.get(name)
    if not isinstance(value, dict):
        raise _wrong(f"the table {name} is missing" if value is None else f"{name} must be a table")
    return value


def _known(where: str, fields: Mapping[str, Any], known: frozenset[str]) -> None:
    if unknown := set(fields) - known:
        raise _wrong(f"{where} has unknown keys {', '.join(sorted(unknown))[:80]}; known are {', '.join(sorted(known))}")


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields[key]
    if not isinstance(value, str) or len(value) > 4096:
        raise _wrong(f"{key} must be a text, found {value!r:.40}")
    return value


def _whole(fields: Mapping[str, Any], key: str, most: int) -> int:
    value = fields.get(key, 1)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise _wrong(f"node.{key} must be a whole number from 1 to {most}, found {value!r:.40}")
    return value


def _number(key: str, value: object, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or not least <= value <= most:
        raise _wrong(f"{key} must be a number from {least:g} to {most:g}, found {value!r:.40}")
    return float(value)


def _wrong(what: str) -> ConfigError:
    return ConfigError(f"cluster: {what}", reason="cluster_invalid", param="cluster")
