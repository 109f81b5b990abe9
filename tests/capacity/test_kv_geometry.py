from __future__ import annotations

from typing import Any

import pytest

from headway.capacity.kv_geometry import KvGeometry, kv_geometry
from headway.errors import CapacityError

FALCON = {"model_type": "falcon", "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32}


def test_bytes_of_smollm2() -> None:
    """30 layers, 3 KV heads of 64, bf16: 2 * 30 * 3 * 64 * 2 bytes per token."""
    geometry = KvGeometry(30, 3, 64)
    assert geometry.bytes_per_token(2) == 23_040
    assert geometry.bytes_per_block(16, 2) == 368_640


@pytest.mark.parametrize(
    ("config", "geometry"),
    [
        (
            {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "num_key_value_heads": 2},
            KvGeometry(2, 2, 8),
        ),
        (
            {
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "hidden_size": 32,
                "num_key_value_heads": None,
                "head_dim": None,
            },
            KvGeometry(2, 4, 8),
        ),
        ({"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "head_dim": 16}, KvGeometry(2, 4, 16)),
        (FALCON | {"num_kv_heads": 4}, KvGeometry(2, 1, 8)),
        (FALCON | {"multi_query": False}, KvGeometry(2, 4, 8)),
        (FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2}, KvGeometry(2, 2, 8)),
        ({"n_layer": 3, "n_head": 4, "n_embd": 64}, KvGeometry(3, 4, 16)),
        ({"text_config": {"num_hidden_layers": 5, "num_attention_heads": 2, "hidden_size": 8}}, KvGeometry(5, 2, 4)),
    ],
)
def test_geometry_of_configs(config: dict[str, Any], geometry: KvGeometry) -> None:
    assert kv_geometry(config) == geometry


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"num_hidden_layers": 0, "num_attention_heads": 4, "hidden_size": 32},
        {"num_hidden_layers": 2, "num_attention_heads": "4", "hidden_size": 32},
    ],
)
def test_incomplete_configs_are_refused(config: dict[str, Any]) -> None:
    with pytest.raises(CapacityError) as caught:
        kv_geometry(config)
    assert caught.value.reason == "unknown_geometry"
