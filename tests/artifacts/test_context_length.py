from __future__ import annotations

from typing import Any

import pytest

from headway.artifacts.context_length import context_length


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ({}, None), ({"model_type": "falcon"}, 2_048),
        ({"max_position_embeddings": 8192}, 8192),
        ({"n_positions": 1024}, 1024),
        ({"max_position_embeddings": 4096, "seq_length": 2048}, 2048),
        ({"max_position_embeddings": "many"}, None),
        ({"max_position_embeddings": -1}, None),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4.0}}, 16384),
        (
            {
                "max_position_embeddings": 32768,
                "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192},
            },
            32768,
        ),
        ({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 131072),
        ({"max_position_embeddings": 4096, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}, 4096),
        (
            {
                "model_type": "gemma3_text",
                "max_position_embeddings": 131072,
                "rope_scaling": {"rope_type": "linear", "factor": 8.0},
            },
            131072,
        ),
        ({"max_position_embeddings": 64, "rope_scaling": {"rope_type": "linear", "factor": float("nan")}}, 64),
        ({"max_position_embeddings": 9, "text_config": {"num_hidden_layers": 2, "max_position_embeddings": 512}}, 512),
    ],
)
def test_context_length(config: dict[str, Any], length: int | None) -> None:
    assert context_length(config) == length
