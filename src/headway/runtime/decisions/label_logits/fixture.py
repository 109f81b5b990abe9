"""Tiny language models with random weights and a chat template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file

from headway.runtime.readers.fixtures.tiny_backbone import random_tensor
from headway.runtime.readers.fixtures.tiny_tokenizer import write_tiny_tokenizer

VARIANTS: Final[dict[str, str]] = {"llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM"}
_CODES: Final = 281  # letters, and as many pairs of letters as make 255 codes
_CHAT: Final = (
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_SIZES: Final[dict[str, Any]] = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
}  # fmt: skip


def write_language_model(folder: Path, variant: str, seed: int) -> None:
    """A folder as transformers saves one."""
    import transformers

    special = {"pad_token": "<|endoftext|>", "eos_token": "<|im_end|>"}
    vocabulary = write_tiny_tokenizer(folder, special, ("<|im_start|>",), _CODES)
    kind = variant
    fields = {**_SIZES, "vocab_size": vocabulary, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
    with torch.device("meta"):
        model = getattr(transformers, VARIANTS[variant])(transformers.CONFIG_MAPPING[kind].from_dict(fields))
    chance = torch.Generator().manual_seed(seed)
    save_file({name: random_tensor(name, tuple(value.shape), chance) for name, value in model.state_dict().items()}, folder / "model.safetensors")
    (folder / "chat_template.jinja").write_text(_CHAT, encoding="utf-8")
    config = {"model_type": kind, "architectures": [VARIANTS[variant]], **fields}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
