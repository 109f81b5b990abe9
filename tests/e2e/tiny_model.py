"""A whole model folder that a server loads in a moment: two random layers, a byte-level tokenizer, a chat template."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from tests.artifacts.trained_tokenizers import save

CONTEXT = 8192
_TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}<|im_start|>"


def tiny_model(folder: Path) -> Path:
    """The folder `folder/tiny`; deterministic. Texts of random weights are noise, sometimes with an end in them."""
    home = folder / "tiny"
    save("byte_level", home, chat_template=_TEMPLATE)
    config = LlamaConfig(
        vocab_size=420, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=CONTEXT, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(5)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(home)
    return home
