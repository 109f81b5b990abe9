"""A tiny package with option markers and random weights: a ModernBERT encoder and the head."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file

from headway.runtime.readers.fixtures.tiny_backbone import random_tensor
from headway.runtime.readers.fixtures.tiny_tokenizer import write_tiny_tokenizer
from headway.runtime.readers.laya.head import head_shapes
from headway.runtime.readers.laya.settings import SETTINGS_FILES

VARIANTS: Final = dict(zip(("laya", "julia"), SETTINGS_FILES, strict=True))
_SPECIAL: Final = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
_HEAD_LAYERS: Final = 2
_SETTINGS: Final[dict[str, Any]] = {
    "encoder": "fixture", "head_layers": _HEAD_LAYERS, "max_len": 256, "head_max_len": 128, "act_costs": {"abstain": 0.1},
    "temperature": [1.5, 0.75, 1.25], "temperature_by_options": {"choice:3-5": 1.75, "choice:11+": 0.1}, "option_layout": "sequential",
}  # fmt: skip
_ENCODER: Final[dict[str, Any]] = {
    "model_type": "modernbert", "architectures": ["ModernBertModel"], "hidden_size": 128, "intermediate_size": 96,
    "num_hidden_layers": 3, "num_attention_heads": 2, "local_attention": 16, "global_attn_every_n_layers": 3,
    "max_position_embeddings": 512, "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "norm_eps": 1e-5,
}  # fmt: skip


def write_laya(folder: Path, variant: str, seed: int) -> None:
    tokens = write_tiny_tokenizer(folder / "tokenizer", _SPECIAL)
    (folder / "tokenizer" / "tokenizer_config.json").write_text(
        json.dumps({**_SPECIAL, "tokenizer_class": "PreTrainedTokenizerFast"}, indent=2) + "\n"
    )
    pad, _, first, last, _ = range(tokens - len(_SPECIAL), tokens)  # special tokens are the last ones, in their order
    encoder = {
        **_ENCODER, "vocab_size": tokens, "pad_token_id": pad, "bos_token_id": first, "eos_token_id": last,
        "cls_token_id": first, "sep_token_id": last,
    }  # fmt: skip
    settings = {**_SETTINGS, **({"architecture": "JuliaDecisionModel"} if variant == "julia" else {})}
    (folder / "encoder").mkdir(parents=True, exist_ok=True)
    (folder / "encoder" / "config.json").write_text(json.dumps(encoder, indent=2) + "\n")
    (folder / VARIANTS[variant]).write_text(json.dumps(settings, indent=2) + "\n")
    save_file(_weights(encoder, seed), folder / "model.safetensors")


def _weights(encoder: dict[str, Any], seed: int) -> dict[str, torch.Tensor]:
    import transformers

    with torch.device("meta"):
        model = transformers.AutoModel.from_config(transformers.ModernBertConfig(**{k: v for k, v in encoder.items() if k != "architectures"}))
    shapes = {f"encoder.{name}": tuple(value.shape) for name, value in model.state_dict().items()}
    shapes |= head_shapes(encoder["hidden_size"], _HEAD_LAYERS, actions=1 + len(_SETTINGS["act_costs"]))
    chance = torch.Generator().manual_seed(seed)
    # The act head reads the first token's state as it is; with larger weights every answer would be 0 or 1.
    weights = {name: random_tensor(name, shape, chance, 0.03 if name.startswith("act_head.") else 0.2) for name, shape in shapes.items()}
    return weights | {"temperature": torch.tensor(_SETTINGS["temperature"])}
