"""Two tiny Qwen3 models for vLLM and for Headway: bytes as tokens, and the few words that vLLM's labels need.

    python -m tests.runtime.decisions.label_logits.write_vllm_fixtures FOLDER

In `ties` the first labels have equal weights, so the first options of every question are equally likely.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from headway.runtime.readers.fixtures.tiny_backbone import random_tensor

KINDS = ("tiny", "ties")
_MERGES = [("y", "e"), ("ye", "s"), ("n", "o")]
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_TIED = (("A", "B", "C"), ("yes", "no"), ("0", "1", "2"))
_CHAT = (
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_CONFIG: dict[str, Any] = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 8192, "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "dtype": "float32",
}  # fmt: skip


def write_all(root: Path) -> None:
    for kind in KINDS:
        _write(root / kind, tied=kind == "ties")


def _write(folder: Path, *, tied: bool) -> None:
    import transformers

    folder.mkdir(parents=True)
    ids = _write_tokenizer(folder)
    config = {**_CONFIG, "vocab_size": len(ids), "eos_token_id": ids["<|im_end|>"], "pad_token_id": ids["<|endoftext|>"]}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    fields = {key: value for key, value in config.items() if key not in ("architectures", "dtype")}
    with torch.device("meta"):
        model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**fields))
    chance = torch.Generator().manual_seed(17)
    weights = {name: random_tensor(name, tuple(value.shape), chance) for name, value in model.state_dict().items()}
    for first, *others in _TIED if tied else ():
        for other in others:
            weights["lm_head.weight"][ids[other]] = weights["lm_head.weight"][ids[first]]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _write_tokenizer(folder: Path) -> dict[str, int]:
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(merge) for merge in _MERGES)]
    backend = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, _MERGES))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(list(_SPECIAL))
    backend.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    (folder / "chat_template.jinja").write_text(_CHAT)
    return backend.get_vocab()


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
