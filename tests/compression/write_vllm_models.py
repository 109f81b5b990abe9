"""The models that vLLM read when `recorded/vllm_cpu.json` was made.

    python -m tests.compression.write_vllm_models FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from transformers import LlamaConfig

from headway.compression.method import METHODS
from tests.compression.tiny_runs import compressed
from tests.engine.tiny_folder import write_byte_tokenizer
from tests.models.tiny_models import make_tiny_model

# As much as the kernels of vLLM want: heads of 64, outputs in multiples of 32, and inputs that 128 divides.
SIZES = {"vocab_size": 160, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 2, "num_key_value_heads": 1,
         "max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "num_hidden_layers": 3}  # fmt: skip


def write_models(folder: Path) -> None:
    """Random weights; a folder for each method, and `dense`."""
    model = make_tiny_model("dense", LlamaConfig(**SIZES, rope_parameters={"rope_type": "default", "rope_theta": 1e5}), folder)
    write_byte_tokenizer(model.folder)
    for method in METHODS:
        compressed(model.folder, method, folder / method)


if __name__ == "__main__":
    write_models(Path(sys.argv[1]))
