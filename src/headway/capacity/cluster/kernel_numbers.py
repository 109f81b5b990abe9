"""What `headway bench kernels --json` measured -> the speeds that a plan reckons with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from statistics import median
from typing import Any, Final

from headway.errors import ConfigError

_MOST_ROWS: Final = 10_000
_FORMATS: Final = ("bf16", "fp32")  # of dense products, the preferred first


@dataclass(frozen=True, slots=True)
class KernelNumbers:
    """`bandwidth` in bytes per second that products whose weights come from memory reach, `flops` in operations per second that products
    bound by arithmetic reach; `bandwidth_share` and `flops_share` of what the machine can do at most."""

    bandwidth: float
    flops: float
    bandwidth_share: float
    flops_share: float
    arithmetic: str


def kernel_numbers(measured: Mapping[str, Any], path: str) -> KernelNumbers:
    """Medians over the linear kernels, since these are nearly all of a step. Raises ConfigError (`cluster_invalid`)."""
    roofs, rows = measured.get("roofs"), measured.get("kernels")
    if not isinstance(roofs, dict) or not isinstance(rows, list) or len(rows) > _MOST_ROWS or not all(isinstance(row, dict) for row in rows):
        raise _wrong(path, "it is not what `headway bench kernels --json` prints")
    linear = [row for row in rows if row.get("family") == "linear"]
    memory = _share(path, linear, "memory")
    kind = next((each for each in _FORMATS if any(row.get("bound_by") == each for row in linear)), None)
    if kind is None:
        raise _wrong(path, "no linear kernel in it is bound by arithmetic; measure all of --only linear")
    arithmetic = _share(path, linear, kind)
    return KernelNumbers(
        _figure(path, roofs, "memory_gb_s") * 1e9 * memory, _figure(path, roofs, f"{kind}_tera_op_s") * 1e12 * arithmetic, memory, arithmetic, kind
    )


def _share(path: str, rows: list[dict[str, Any]], bound: str) -> float:
    shares = [_figure(path, row, "share_of_floor") for row in rows if row.get("bound_by") == bound]
    if not shares:
        raise _wrong(path, f"no linear kernel in it is bound by {bound}; measure all of --only linear")
    return min(1.0, median(shares))


def _figure(path: str, figures: Mapping[str, Any], key: str) -> float:
    value = figures.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        raise _wrong(path, f"{key} must be a number over 0, found {value!r:.40}")
    return float(value)


def _wrong(path: str, what: str) -> ConfigError:
    return ConfigError(f"kernel numbers {path}: {what}", reason="cluster_invalid", param="cluster")
