"""The section `quantization_config` of config.json: what is stored how, in the words of compressed-tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.compression.method import Method

_FULL: dict[str, Any] = {
    "num_bits": 8, "type": "int", "symmetric": True, "group_size": None, "strategy": "channel", "block_structure": None, "dynamic": False,
    "actorder": None, "observer": "minmax", "observer_kwargs": {},
}  # fmt: skip


def claim(method: Method, group: int | None, ignored: Sequence[str], *, act_order: bool) -> dict[str, Any]:
    """`ignored`: modules that stay dense. `act_order` only tells how the numbers were found (compressed-tensors: "static")."""
    weights = {
        **_FULL, "num_bits": method.bits, "type": method.kind, "symmetric": method.symmetric,
        "strategy": "channel" if group is None else "group", "group_size": group, "actorder": "static" if act_order else None,
    }  # fmt: skip
    # Inputs are rounded while the model runs, each token with a scale of its own, by engines that have kernels for it.
    inputs = None if method.grouped else {
        **_FULL, "type": method.kind, "strategy": "token", "dynamic": True, "observer": None,
    }  # fmt: skip
    return {
        "quant_method": "compressed-tensors",
        "format": method.form,
        "quantization_status": "compressed",
        "config_groups": {
            "group_0": {"targets": ["Linear"], "weights": weights, "input_activations": inputs, "output_activations": None, "format": method.form}
        },
        "ignore": list(ignored),
        "kv_cache_scheme": None,
        "global_compression_ratio": None,
    }
